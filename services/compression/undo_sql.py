"""The statements that undo a run, and that forget how to."""

from typing import LiteralString

LOCK_RUN: LiteralString = """
SELECT r.status, r.dry_run, r.forgotten_at IS NOT NULL AS forgotten, r.expert_id FROM compression_runs r
WHERE r.id = %(run_id)s AND r.tenant_id = %(tenant_id)s AND r.user_id = %(user_id)s FOR UPDATE
"""

LOCK_EPISODES: LiteralString = """
SELECT e.id FROM episodes e
WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.id IN (
    SELECT id FROM compression_drafts WHERE run_id = %(run_id)s
    UNION ALL SELECT episode_id FROM compression_sources WHERE run_id = %(run_id)s)
ORDER BY e.id FOR UPDATE
"""

BUILT_ON: LiteralString = """
SELECT s.run_id FROM compression_drafts d
JOIN episodes e ON e.id = d.id
JOIN compression_sources s ON s.episode_id = e.id
WHERE d.run_id = %(run_id)s AND d.tenant_id = %(tenant_id)s AND s.run_id <> %(run_id)s
  AND e.superseded_by = s.draft_id
LIMIT 1
"""

# What took the place of a text in the meantime holds against its sources, too.
RESTORE: LiteralString = """
UPDATE episodes e SET superseded_by = made.superseded_by, superseded_in = made.superseded_in,
    archived_by = made.archived_by, indexed_at = NULL
FROM compression_drafts d JOIN episodes made ON made.id = d.id
WHERE d.run_id = %(run_id)s AND d.tenant_id = %(tenant_id)s AND e.superseded_by = d.id
RETURNING e.id
"""

RESTORE_RETIRED: LiteralString = """
UPDATE episodes e SET archived_by = NULL, indexed_at = NULL
WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.archived_by = %(run_id)s
RETURNING e.id
"""

REMOVE_MADE: LiteralString = """
DELETE FROM episodes e USING compression_drafts d
WHERE d.run_id = %(run_id)s AND d.tenant_id = %(tenant_id)s AND e.id = d.id RETURNING e.id
"""

UNDONE: LiteralString = """
UPDATE compression_runs SET status = 'undone', undone_at = clock_timestamp()
WHERE id = %(run_id)s AND tenant_id = %(tenant_id)s
"""

STAGED_BY_LOST: LiteralString = """
DELETE FROM compression_drafts d USING compression_runs r
WHERE r.id = d.run_id AND d.tenant_id = %(tenant_id)s AND d.content IS NOT NULL
  AND (r.status = 'failed' OR r.lease_until < clock_timestamp())
"""

OLD: LiteralString = """
SELECT r.id, r.user_id FROM compression_runs r
WHERE r.tenant_id = %(tenant_id)s AND r.finished_at < %(before)s AND r.forgotten_at IS NULL
ORDER BY r.finished_at LIMIT %(limit)s
"""

LOCK_OLD: LiteralString = """
SELECT status FROM compression_runs
WHERE id = %(run_id)s AND tenant_id = %(tenant_id)s AND forgotten_at IS NULL FOR UPDATE
"""

# A text that was itself merged stands between its sources and the newer one, which holds all that it held.
HAND_DOWN: LiteralString = """
UPDATE episodes e SET superseded_by = s.draft_id
FROM compression_sources s JOIN episodes between_them ON between_them.id = s.episode_id
WHERE s.run_id = %(run_id)s AND s.tenant_id = %(tenant_id)s AND s.draft_id IS NOT NULL
  AND between_them.episode_type = 'consolidated' AND between_them.superseded_by = s.draft_id
  AND e.superseded_by = between_them.id
"""

REMOVE_BETWEEN: LiteralString = """
DELETE FROM episodes e USING compression_sources s
WHERE s.run_id = %(run_id)s AND s.tenant_id = %(tenant_id)s AND s.draft_id IS NOT NULL
  AND e.id = s.episode_id AND e.episode_type = 'consolidated' AND e.superseded_by = s.draft_id
RETURNING e.id
"""

FORGET_SOURCES: LiteralString = """
DELETE FROM compression_sources WHERE run_id = %(run_id)s AND tenant_id = %(tenant_id)s
"""

FORGET_DRAFTS: LiteralString = """
DELETE FROM compression_drafts WHERE run_id = %(run_id)s AND tenant_id = %(tenant_id)s
"""

# What a run that made nothing has to tell is not kept.
FORGOTTEN: LiteralString = """
WITH nothing AS (
    DELETE FROM compression_runs WHERE id = %(run_id)s AND tenant_id = %(tenant_id)s
      AND (status <> 'done' OR dry_run
           OR coalesce((report->>'superseded')::int, 0) + coalesce((report->>'retired')::int, 0) = 0)
    RETURNING id
)
UPDATE compression_runs SET forgotten_at = clock_timestamp()
WHERE id = %(run_id)s AND tenant_id = %(tenant_id)s AND NOT EXISTS (SELECT FROM nothing)
"""
