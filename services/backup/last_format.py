"""Converts backups of schemas before the baseline: where tables went, and what fills columns that came."""

from collections.abc import Mapping, Sequence
from typing import LiteralString

REVISION = "0033"
ADDED_SINCE = "0100"
"""The schema from which on tables and columns were only added, until the baseline."""
_FILLED: Sequence[tuple[str, LiteralString]] = (
    ("0101", "UPDATE turns SET to_file = false"),
    (
        "0112",
        """
        UPDATE users u SET external_id = normalize(external_id, NFC)
        WHERE external_id IS NOT NFC NORMALIZED AND NOT EXISTS (
            SELECT FROM users o WHERE o.tenant_id = u.tenant_id AND o.id <> u.id
            AND normalize(o.external_id, NFC) = normalize(u.external_id, NFC))
        """,
    ),
    (
        "0112",
        """
        UPDATE conversations c SET session_key = normalize(session_key, NFC)
        WHERE session_key IS NOT NFC NORMALIZED AND NOT EXISTS (
            SELECT FROM conversations o WHERE o.tenant_id = c.tenant_id AND o.user_id = c.user_id AND o.id <> c.id
            AND normalize(o.session_key, NFC) = normalize(c.session_key, NFC))
        """,
    ),
)
"""Statements for rows of schemas before a revision, where the default of a column is not what they need."""

GONE = frozenset(
    {
        *("shards", "tenant_shards", "tenant_moves", "shard_mark", "closed_tenants", "parked_jobs"),
        *("compression_runs", "compression_drafts", "compression_sources", "maintained_users"),
        "tone_states",
    }
)
"""Tables that held no user data, or only data that can be derived again."""

RENAMED: Mapping[str, str] = {"upkeep_policies": "maintenance_policies"}
"""Old names of tables by their new ones. New tables are empty, and new columns have their defaults."""

_BEFORE: Sequence[LiteralString] = (
    """
    CREATE TABLE fading_runs (
        id uuid, tenant_id uuid, user_id uuid, reason text, action text, days integer, importance double precision,
        episode_ids uuid[], created_at timestamptz, undone_at timestamptz, forgotten_at timestamptz
    )
    """,
    "ALTER TABLE episodes DROP CONSTRAINT episodes_episode_type_check",
    "ALTER TABLE upkeep_policies DROP CONSTRAINT upkeep_policies_fading_check, ADD COLUMN proposals text",
    "ALTER TABLE users ADD COLUMN sealed_at timestamptz",
    "ALTER TABLE forget_receipts ADD COLUMN rebuilds text[]",
    "ALTER TABLE knowledge_bases ADD COLUMN questions jsonb, ADD COLUMN documents_changed_at timestamptz",
    "ALTER TABLE encryption ADD COLUMN sealed_at timestamptz",
    "ALTER TABLE messages RENAME COLUMN private_note TO inner_voice",
    "ALTER TABLE messages RENAME COLUMN note_made_by TO voice_made_by",
)
"""Statements that make tables for the old rows."""

# `superseded_by` named a memory, a section of core memory, or a run, which may be gone since; what it superseded
# then stays out of memory. The same holds for what a run removed, which cannot be undone any more: such a run is
# left out. A run that was undone is kept, because upkeep leaves alone what was brought back once. Policies that
# removed memories archive them from now on.
_AFTER: Sequence[LiteralString] = (
    "ALTER TABLE episodes DISABLE TRIGGER USER",
    "ALTER TABLE upkeep_runs NO FORCE ROW LEVEL SECURITY",
    "ALTER TABLE upkeep_changes NO FORCE ROW LEVEL SECURITY",
    """
    INSERT INTO upkeep_runs (id, tenant_id, user_id, reason, days, importance, created_at, undone_at)
    SELECT id, tenant_id, user_id, reason, days, importance, created_at, undone_at
    FROM fading_runs WHERE action = 'archive' OR undone_at IS NOT NULL
    """,
    """
    INSERT INTO upkeep_changes (run_id, episode_id, tenant_id, user_id)
    SELECT DISTINCT r.id, each.id, r.tenant_id, r.user_id
    FROM fading_runs r CROSS JOIN LATERAL unnest(r.episode_ids) AS each (id)
    WHERE r.action = 'archive' OR r.undone_at IS NOT NULL
    """,
    "UPDATE upkeep_policies SET fading = 'archive' WHERE fading = 'remove'",
    """
    ALTER TABLE upkeep_policies DROP COLUMN proposals,
        ADD CONSTRAINT upkeep_policies_fading_check CHECK (fading IN ('never', 'archive'))
    """,
    "DROP TABLE fading_runs",
    "ALTER TABLE users DROP COLUMN sealed_at",
    "ALTER TABLE forget_receipts DROP COLUMN rebuilds",
    "ALTER TABLE knowledge_bases DROP COLUMN questions, DROP COLUMN documents_changed_at",
    "ALTER TABLE encryption DROP COLUMN sealed_at",
    "ALTER TABLE messages RENAME COLUMN inner_voice TO private_note",
    "ALTER TABLE messages RENAME COLUMN voice_made_by TO note_made_by",
    """
    UPDATE memory_operations SET old_value = replace(
        replace(old_value::text, '"inner_voice":', '"private_note":'), '"voices":', '"notes":')::jsonb
    WHERE old_value::text LIKE '%"inner_voice":%'
    """,
    "UPDATE episodes SET archived_by = superseded_by, superseded_by = NULL "
    "WHERE superseded_by IN (SELECT id FROM upkeep_runs)",
    "UPDATE episodes SET superseded_in = superseded_by, superseded_by = NULL "
    "WHERE superseded_by IN (SELECT id FROM core_memory_blocks)",
    "UPDATE episodes e SET superseded_by = NULL, retracted_at = coalesce(e.retracted_at, clock_timestamp()) "
    "WHERE e.superseded_by IS NOT NULL AND NOT EXISTS (SELECT FROM episodes by WHERE by.id = e.superseded_by)",
    """
    UPDATE memory_versions v SET was = v.was || jsonb_build_object(
        'superseded_by', CASE WHEN named.kind IS NULL THEN v.was->'superseded_by' END,
        'superseded_in', CASE WHEN named.kind = 'block' THEN v.was->'superseded_by' END,
        'archived_by', CASE WHEN named.kind = 'run' THEN v.was->'superseded_by' END)
    FROM memory_versions o LEFT JOIN (
        SELECT id, 'run' AS kind FROM upkeep_runs UNION ALL SELECT id, 'block' FROM core_memory_blocks
    ) AS named ON named.id = (o.was->>'superseded_by')::uuid
    WHERE o.id = v.id AND v.episode_id IS NOT NULL
    """,
    # A merged text is replaced by the texts that it was merged from.
    """
    UPDATE episodes e SET superseded_by = NULL, indexed_at = NULL FROM episodes made
    WHERE made.id = e.superseded_by AND made.episode_type = 'consolidated'
    """,
    "DELETE FROM episodes WHERE episode_type = 'consolidated'",
    "UPDATE experts SET parts_off = array_remove(parts_off, 'tone')",
    """
    UPDATE experiments SET variants = (
        SELECT jsonb_agg(CASE WHEN v.variant->'settings' ? 'parts_off' THEN jsonb_set(
            v.variant, '{settings,parts_off}', (v.variant#>'{settings,parts_off}') - 'tone') ELSE v.variant END
        ORDER BY v.place) FROM jsonb_array_elements(variants) WITH ORDINALITY AS v (variant, place))
    """,
    """
    ALTER TABLE episodes ADD CONSTRAINT episodes_episode_type_check
        CHECK (episode_type IN ('turn', 'preference', 'decision', 'context', 'outcome'))
    """,
    "ALTER TABLE episodes ENABLE TRIGGER USER",
)

FORCED: Sequence[LiteralString] = (
    "ALTER TABLE upkeep_runs FORCE ROW LEVEL SECURITY",
    "ALTER TABLE upkeep_changes FORCE ROW LEVEL SECURITY",
)
"""Statements to run when the foreign keys exist, which must see these rows."""


def before(revision: str) -> Sequence[LiteralString]:
    """Return the statements to run before the rows of a schema are there."""
    return _BEFORE if revision == REVISION else ()


def after(revision: str) -> Sequence[LiteralString]:
    """Return the statements to run when the rows of a schema are there, before the foreign keys."""
    mapped = _AFTER if revision == REVISION else ()
    return [*mapped, *(statement for since, statement in _FILLED if revision < since)]
