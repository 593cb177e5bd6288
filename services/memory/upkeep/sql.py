"""The statements of upkeep."""

from typing import LiteralString

from services.memory.episodes.episode import TEXT_OF_TURN

# The nightly run leaves memories alone that a user has brought back once.
_UNUSED: LiteralString = """
e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s
AND e.pinned_at IS NULL AND e.importance < %(importance)s::real
AND greatest(e.learned_at, e.last_recalled_at) < %(before)s
AND (%(reason)s <> 'night' OR NOT EXISTS (
    SELECT FROM upkeep_changes c WHERE c.episode_id = e.id AND c.kept_id IS NULL))
"""

PREVIEW: LiteralString = f"""
SELECT e.id, x.name AS expert, s.name AS space, e.episode_type, e.importance, e.learned_at, e.last_recalled_at,
       coalesce(e.content, said.text, '') AS content, count(*) OVER () AS total
FROM remembered_episodes e JOIN experts x ON x.id = e.expert_id LEFT JOIN spaces s ON s.id = e.space_id
{TEXT_OF_TURN}
WHERE {_UNUSED} ORDER BY greatest(e.learned_at, e.last_recalled_at), e.id LIMIT %(limit)s
"""  # noqa: S608 — our own text only

# A removal of the user locks it, too.
LOCK_USER: LiteralString = """
SELECT id FROM users WHERE id = %(user_id)s AND tenant_id = %(tenant_id)s FOR KEY SHARE
"""

# Without a place in the index; the index's job takes out what is remembered no longer. What changed since it was
# compared, or is pinned, stays.
MERGE: LiteralString = """
WITH given AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(kept_ids)s::uuid[], %(in_core)s::boolean[], %(hashes)s::text[],
        %(kept_hashes)s::text[]) AS g (id, kept_id, in_core, hash, kept_hash)
), locked AS (
    SELECT e.id FROM remembered_episodes e JOIN given g ON g.id = e.id
    WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.pinned_at IS NULL
      AND md5(e.content) = g.hash
    ORDER BY e.id FOR UPDATE OF e
)
UPDATE episodes e SET superseded_by = CASE WHEN NOT g.in_core THEN g.kept_id END,
    superseded_in = CASE WHEN g.in_core THEN g.kept_id END, indexed_at = NULL
FROM given g JOIN locked l ON l.id = g.id
WHERE e.id = g.id AND CASE WHEN g.in_core
    THEN EXISTS (SELECT FROM core_memory_blocks b WHERE b.id = g.kept_id AND b.user_id = %(user_id)s)
    ELSE EXISTS (SELECT FROM remembered_episodes k
                 WHERE k.id = g.kept_id AND k.user_id = %(user_id)s AND md5(k.content) = g.kept_hash) END
RETURNING e.id, e.expert_id, e.space_id, g.kept_id
"""

FADE: LiteralString = f"""
WITH unused AS (SELECT e.id FROM remembered_episodes e WHERE {_UNUSED} FOR UPDATE)
UPDATE episodes e SET archived_by = %(run_id)s, indexed_at = NULL FROM unused WHERE e.id = unused.id
RETURNING e.id, e.expert_id, e.space_id
"""  # noqa: S608 — our own text only

ADD_RUN: LiteralString = """
INSERT INTO upkeep_runs (id, tenant_id, user_id, reason, days, importance)
VALUES (%(run_id)s, %(tenant_id)s, %(user_id)s, %(reason)s, %(days)s, %(importance)s)
"""

ADD_CHANGES: LiteralString = """
INSERT INTO upkeep_changes (run_id, episode_id, tenant_id, user_id, kept_id)
SELECT %(run_id)s, g.id, %(tenant_id)s, %(user_id)s, g.kept_id
FROM unnest(%(ids)s::uuid[], %(kept_ids)s::uuid[]) AS g (id, kept_id)
"""

REMOVE_RUN: LiteralString = """
DELETE FROM upkeep_runs WHERE id = %(run_id)s AND tenant_id = %(tenant_id)s
"""

RUNS: LiteralString = """
SELECT r.id, r.reason, r.days, r.importance, changed.merged_ids, changed.faded_ids, r.created_at, r.undone_at,
       r.undone_at IS NULL
           AND cardinality(changed.merged_ids) + cardinality(changed.faded_ids) > 0 AS can_be_undone
FROM upkeep_runs r CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(c.episode_id ORDER BY c.episode_id) FILTER (WHERE c.kept_id IS NOT NULL), '{}')
               AS merged_ids,
           coalesce(array_agg(c.episode_id ORDER BY c.episode_id) FILTER (WHERE c.kept_id IS NULL), '{}')
               AS faded_ids
    FROM upkeep_changes c WHERE c.run_id = r.id AND c.tenant_id = r.tenant_id
) AS changed
WHERE r.tenant_id = %(tenant_id)s AND r.user_id = %(user_id)s
  AND (%(run_id)s::uuid IS NULL OR r.id = %(run_id)s)
  AND (%(after_at)s::timestamptz IS NULL OR (r.created_at, r.id) < (%(after_at)s, %(after_id)s::uuid))
ORDER BY r.created_at DESC, r.id DESC LIMIT %(limit)s
"""

LOCK_RUN: LiteralString = """
SELECT undone_at FROM upkeep_runs
WHERE id = %(run_id)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s FOR UPDATE
"""

# If the memory that was kept has been replaced since, the one that returns is replaced as well.
UNMERGE: LiteralString = """
UPDATE episodes e SET superseded_by = kept.superseded_by, superseded_in = kept.superseded_in,
    archived_by = kept.archived_by, indexed_at = NULL
FROM upkeep_changes c LEFT JOIN episodes kept ON kept.id = c.kept_id
WHERE c.run_id = %(run_id)s AND c.tenant_id = %(tenant_id)s AND e.id = c.episode_id
  AND e.user_id = %(user_id)s AND c.kept_id IN (e.superseded_by, e.superseded_in)
RETURNING e.id, e.expert_id, e.space_id
"""

UNFADE: LiteralString = """
UPDATE episodes SET archived_by = NULL, indexed_at = NULL
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND archived_by = %(run_id)s
  AND (%(episode_id)s::uuid IS NULL OR id = %(episode_id)s)
RETURNING id, expert_id, space_id
"""

UNDONE: LiteralString = """
UPDATE upkeep_runs SET undone_at = clock_timestamp() WHERE id = %(run_id)s AND tenant_id = %(tenant_id)s
"""

ARCHIVED_BY: LiteralString = """
SELECT archived_by FROM episodes
WHERE id = %(episode_id)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND retracted_at IS NULL
FOR UPDATE
"""

# Pairs that were merged and taken apart again: no night merges them once more.
TAKEN_APART: LiteralString = """
SELECT c.episode_id, c.kept_id FROM upkeep_changes c JOIN upkeep_runs r ON r.id = c.run_id
WHERE c.tenant_id = %(tenant_id)s AND c.user_id = %(user_id)s AND c.kept_id IS NOT NULL AND r.undone_at IS NOT NULL
"""
