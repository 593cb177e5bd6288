"""The statements of fading."""

from typing import LiteralString

# At night, what was brought back once is left alone.
_UNUSED: LiteralString = """
e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s
AND e.pinned_at IS NULL AND e.importance < %(importance)s::real
AND greatest(e.learned_at, e.last_recalled_at) < %(before)s
AND (%(reason)s <> 'night' OR NOT EXISTS (
    SELECT FROM fading_runs r WHERE r.user_id = e.user_id AND e.id = ANY(r.episode_ids)))
"""

PREVIEW: LiteralString = f"""
SELECT e.id, x.name AS expert, s.name AS space, e.episode_type, e.importance, e.learned_at, e.last_recalled_at,
       coalesce(e.content, said.text, '') AS content, count(*) OVER () AS total
FROM remembered_episodes e JOIN experts x ON x.id = e.expert_id LEFT JOIN spaces s ON s.id = e.space_id
LEFT JOIN LATERAL (
    SELECT string_agg(coalesce(m.speaker, m.role) || ': ' || m.content, E'\\n' ORDER BY m.created_at, m.id) AS text
    FROM remembered_messages m WHERE m.id = ANY(e.source_message_ids) AND m.completed AND e.content IS NULL
) AS said ON true
WHERE {_UNUSED} ORDER BY greatest(e.learned_at, e.last_recalled_at), e.id LIMIT %(limit)s
"""  # noqa: S608 — our own text only

# A removal of the user locks it, too.
LOCK_USER: LiteralString = """
SELECT id FROM users WHERE id = %(user_id)s AND tenant_id = %(tenant_id)s FOR KEY SHARE
"""

# Without a place in the index; the index's job takes out what is archived.
FADE: LiteralString = f"""
WITH unused AS (SELECT e.id FROM remembered_episodes e WHERE {_UNUSED} FOR UPDATE)
UPDATE episodes e SET archived_by = %(run_id)s, indexed_at = NULL FROM unused WHERE e.id = unused.id
RETURNING e.id, e.expert_id, e.space_id
"""  # noqa: S608 — our own text only

ADD_RUN: LiteralString = """
INSERT INTO fading_runs (id, tenant_id, user_id, reason, action, days, importance, episode_ids)
VALUES (%(run_id)s, %(tenant_id)s, %(user_id)s, %(reason)s, %(action)s, %(days)s, %(importance)s, %(episode_ids)s)
"""

RUNS: LiteralString = """
SELECT r.id, r.reason, r.action, r.days, r.importance, r.episode_ids, r.created_at, r.undone_at, r.forgotten_at,
       r.undone_at IS NULL AND r.forgotten_at IS NULL AND cardinality(r.episode_ids) > 0 AS can_be_undone
FROM fading_runs r
WHERE r.tenant_id = %(tenant_id)s AND r.user_id = %(user_id)s
  AND (%(run_id)s::uuid IS NULL OR r.id = %(run_id)s)
  AND (%(after_at)s::timestamptz IS NULL OR (r.created_at, r.id) < (%(after_at)s, %(after_id)s::uuid))
ORDER BY r.created_at DESC, r.id DESC LIMIT %(limit)s
"""

LOCK_RUN: LiteralString = """
SELECT undone_at IS NOT NULL, forgotten_at IS NOT NULL, action FROM fading_runs
WHERE id = %(run_id)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s FOR UPDATE
"""

BRING_BACK: LiteralString = """
UPDATE episodes SET archived_by = NULL, indexed_at = NULL
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND archived_by = %(run_id)s
RETURNING id, expert_id, space_id
"""

UNDONE: LiteralString = """
UPDATE fading_runs SET undone_at = clock_timestamp() WHERE id = %(run_id)s AND tenant_id = %(tenant_id)s
"""

RESTORE: LiteralString = """
UPDATE episodes e SET archived_by = NULL, indexed_at = NULL FROM fading_runs r
WHERE e.id = %(episode_id)s AND e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s
  AND r.id = e.archived_by AND e.retracted_at IS NULL
RETURNING e.expert_id, e.space_id, r.id
"""

EPISODE: LiteralString = """
SELECT id FROM episodes
WHERE id = %(episode_id)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND retracted_at IS NULL
"""

OLD_REMOVALS: LiteralString = """
SELECT id, user_id FROM fading_runs
WHERE tenant_id = %(tenant_id)s AND created_at < %(before)s AND action = 'remove' AND undone_at IS NULL
  AND forgotten_at IS NULL
ORDER BY created_at LIMIT %(limit)s
"""

STILL_REMOVED: LiteralString = """
SELECT id FROM episodes
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND archived_by = %(run_id)s ORDER BY id
"""

FORGOTTEN: LiteralString = """
UPDATE fading_runs SET forgotten_at = clock_timestamp() WHERE id = %(run_id)s AND tenant_id = %(tenant_id)s
"""
