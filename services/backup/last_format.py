"""Backups of the last schema before the baseline: what became of its tables and columns."""

from collections.abc import Mapping, Sequence
from typing import LiteralString

REVISION = "0033"

GONE = frozenset({"shards", "tenant_shards", "tenant_moves", "shard_mark", "closed_tenants", "parked_jobs"})
"""Tables that held nothing of a user's."""

NEW_COLUMNS: Mapping[str, frozenset[str]] = {"episodes": frozenset({"superseded_in", "archived_by"})}

# `superseded_by` named a memory, a section of core memory, or a run. What it named may be gone since; what it
# superseded then stays out of memory.
_RUNS: LiteralString = "SELECT id FROM compression_runs UNION ALL SELECT id FROM fading_runs"
STATEMENTS: Sequence[LiteralString] = (
    "ALTER TABLE episodes DISABLE TRIGGER USER",
    f"UPDATE episodes SET archived_by = superseded_by, superseded_by = NULL WHERE superseded_by IN ({_RUNS})",  # noqa: S608 — our own text only
    "UPDATE episodes SET superseded_in = superseded_by, superseded_by = NULL "
    "WHERE superseded_by IN (SELECT id FROM core_memory_blocks)",
    "UPDATE episodes e SET superseded_by = NULL, retracted_at = coalesce(e.retracted_at, clock_timestamp()) "
    "WHERE e.superseded_by IS NOT NULL AND NOT EXISTS (SELECT FROM episodes by WHERE by.id = e.superseded_by)",
    f"""
    UPDATE memory_versions v SET was = v.was || jsonb_build_object(
        'superseded_by', CASE WHEN named.kind IS NULL THEN v.was->'superseded_by' END,
        'superseded_in', CASE WHEN named.kind = 'block' THEN v.was->'superseded_by' END,
        'archived_by', CASE WHEN named.kind = 'run' THEN v.was->'superseded_by' END)
    FROM memory_versions o LEFT JOIN (
        SELECT id, 'run' AS kind FROM ({_RUNS}) AS runs UNION ALL SELECT id, 'block' FROM core_memory_blocks
    ) AS named ON named.id = (o.was->>'superseded_by')::uuid
    WHERE o.id = v.id AND v.episode_id IS NOT NULL
    """,  # noqa: S608 — our own text only
    "ALTER TABLE episodes ENABLE TRIGGER USER",
)
