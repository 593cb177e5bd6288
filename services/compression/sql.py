"""The statements of `CompressionStore`."""

from typing import LiteralString

RUN: LiteralString = """
r.id, x.name AS expert, r.status, r.reason, r.dry_run, r.report, r.created_at, r.finished_at, r.undone_at,
r.forgotten_at, r.status = 'done' AND NOT r.dry_run AND r.forgotten_at IS NULL AS can_be_undone
"""

# One that was given up, or whose process is gone, makes place for the next.
END_LOST: LiteralString = """
UPDATE compression_runs SET status = 'failed', finished_at = clock_timestamp(),
    report = report || '{"problem": "its process ended before it did"}'
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND expert_id = %(expert_id)s
  AND status IN ('waiting', 'running') AND lease_until < clock_timestamp()
"""

# What a run staged that did not come to its end.
FORGET_STAGED: LiteralString = """
DELETE FROM compression_drafts d USING compression_runs r
WHERE r.id = d.run_id AND r.tenant_id = %(tenant_id)s AND r.user_id = %(user_id)s AND r.expert_id = %(expert_id)s
  AND r.status = 'failed'
"""

ADD_RUN: LiteralString = """
INSERT INTO compression_runs (id, tenant_id, user_id, expert_id, status, reason, dry_run, lease_until)
SELECT %(id)s, tenant_id, id, %(expert_id)s, 'waiting', %(reason)s, %(dry_run)s,
    clock_timestamp() + interval '6 hours'
FROM users WHERE id = %(user_id)s AND tenant_id = %(tenant_id)s FOR KEY SHARE
ON CONFLICT DO NOTHING RETURNING id
"""

# A worker that was lost has another token.
TAKE: LiteralString = """
UPDATE compression_runs SET status = 'running', token = %(token)s,
    lease_until = clock_timestamp() + %(lease)s::interval
WHERE id = %(run_id)s AND tenant_id = %(tenant_id)s AND status IN ('waiting', 'running')
RETURNING id, tenant_id, user_id, expert_id, reason, dry_run, token
"""

FORGET_STAGED_OF: LiteralString = """
DELETE FROM compression_drafts WHERE run_id = %(run_id)s AND tenant_id = %(tenant_id)s
"""

KEEP: LiteralString = """
UPDATE compression_runs SET lease_until = clock_timestamp() + %(lease)s::interval
WHERE id = %(run_id)s AND tenant_id = %(tenant_id)s AND status = 'running' AND token = %(token)s
RETURNING id
"""

# By night, what was undone is left as it is for as long as that is known.
MEMBERS: LiteralString = """
SELECT e.id, e.episode_type, e.importance, e.created_at, cardinality(e.source_message_ids) AS source_count,
       e.space_id, e.content IS NOT NULL AS written, md5(coalesce(e.content, m.said)) AS content_hash,
       coalesce(e.content, m.text) AS text,
       coalesce(e.content, m.said) AS said
FROM (
    SELECT * FROM remembered_episodes
    WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND expert_id = %(expert_id)s AND pinned_at IS NULL
      AND (NOT %(is_night)s OR NOT EXISTS (
          SELECT FROM compression_sources s JOIN compression_runs r ON r.id = s.run_id AND r.status = 'undone'
          WHERE s.episode_id = remembered_episodes.id))
    ORDER BY created_at DESC, id DESC LIMIT %(most)s
) AS e
LEFT JOIN LATERAL (
    SELECT string_agg(
               coalesce(p.speaker, p.role) || ': ' || p.content, E'\\n' ORDER BY p.created_at, p.id
           ) AS text, string_agg(p.content, E'\\n' ORDER BY p.created_at, p.id) AS said
    FROM remembered_messages p WHERE p.id = ANY(e.source_message_ids) AND p.completed AND e.content IS NULL
) AS m ON true
WHERE coalesce(e.content, m.text) IS NOT NULL
ORDER BY e.created_at, e.id
"""

LIVING: LiteralString = """
SELECT count(*) FROM remembered_episodes
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND expert_id = %(expert_id)s
"""

STAGE: LiteralString = """
INSERT INTO compression_drafts (id, tenant_id, user_id, run_id, content, made_by)
SELECT %(draft_id)s, tenant_id, user_id, id, %(content)s, %(made_by)s FROM compression_runs
WHERE id = %(run_id)s AND tenant_id = %(tenant_id)s AND status = 'running' AND token = %(token)s
RETURNING id
"""

STAGE_SOURCES: LiteralString = """
INSERT INTO compression_sources (run_id, episode_id, tenant_id, user_id, draft_id, outcome, source_count,
    content_hash)
SELECT %(run_id)s, s.id, %(tenant_id)s, %(user_id)s, %(draft_id)s, s.outcome, s.source_count, s.content_hash
FROM unnest(%(ids)s::uuid[], %(outcomes)s::text[], %(counts)s::integer[], %(hashes)s::text[])
    AS s (id, outcome, source_count, content_hash)
"""

# An erasure locks the user first, too.
LOCK_USER: LiteralString = """
SELECT id FROM users WHERE id = %(user_id)s AND tenant_id = %(tenant_id)s FOR KEY SHARE
"""

LOCK_RUN: LiteralString = """
SELECT id FROM compression_runs
WHERE id = %(run_id)s AND tenant_id = %(tenant_id)s AND status = 'running' AND token = %(token)s FOR UPDATE
"""

LOCK_SOURCES: LiteralString = """
SELECT e.id FROM episodes e JOIN compression_sources s ON s.episode_id = e.id
WHERE s.run_id = %(run_id)s AND s.tenant_id = %(tenant_id)s ORDER BY e.id FOR UPDATE OF e
"""

# A draft stands for its sources as they were read, and for no others.
FORGET_OUTDATED: LiteralString = """
DELETE FROM compression_drafts d
WHERE d.run_id = %(run_id)s AND d.tenant_id = %(tenant_id)s AND (
    NOT EXISTS (SELECT FROM compression_sources s WHERE s.draft_id = d.id)
    OR EXISTS (
        SELECT FROM compression_sources s WHERE s.draft_id = d.id AND NOT EXISTS (
            SELECT FROM remembered_episodes e WHERE e.id = s.episode_id AND e.pinned_at IS NULL
              AND cardinality(e.source_message_ids) = s.source_count AND md5(coalesce(e.content, (
                  SELECT string_agg(p.content, E'\\n' ORDER BY p.created_at, p.id) FROM remembered_messages p
                  WHERE p.id = ANY(e.source_message_ids) AND p.completed
              ))) = s.content_hash)))
RETURNING d.id
"""

# As old as the newest that it represents: a text that is written again says nothing new. All are of one space.
CONSOLIDATE: LiteralString = """
INSERT INTO episodes (id, tenant_id, user_id, expert_id, space_id, conversation_id, episode_type, content,
    importance, origin, source_message_ids, created_at, last_recalled_at, recall_count, made_by)
SELECT d.id, d.tenant_id, d.user_id, %(expert_id)s, (array_agg(e.space_id))[1],
    CASE WHEN count(DISTINCT e.conversation_id) = 1 AND count(e.conversation_id) = count(*)
         THEN (array_agg(e.conversation_id))[1] END,
    'consolidated', d.content, max(e.importance), 'derived', ARRAY(
        SELECT DISTINCT each.id FROM compression_sources own JOIN episodes o ON o.id = own.episode_id
        CROSS JOIN LATERAL unnest(o.source_message_ids) AS each (id)
        WHERE own.draft_id = d.id ORDER BY each.id
    ), max(e.created_at) FILTER (WHERE s.outcome = 'represented'), max(e.last_recalled_at), sum(e.recall_count),
    d.made_by
FROM compression_drafts d JOIN compression_sources s ON s.draft_id = d.id JOIN episodes e ON e.id = s.episode_id
WHERE d.run_id = %(run_id)s AND d.tenant_id = %(tenant_id)s
GROUP BY d.id, d.tenant_id
"""

# Without a place in the index; the index's job takes out what is superseded.
SUPERSEDE: LiteralString = """
UPDATE episodes e SET superseded_by = s.draft_id, indexed_at = NULL
FROM compression_sources s
WHERE s.run_id = %(run_id)s AND s.tenant_id = %(tenant_id)s AND s.draft_id IS NOT NULL AND e.id = s.episode_id
"""

MADE: LiteralString = """
SELECT s.draft_id, s.episode_id, s.outcome FROM compression_sources s
WHERE s.run_id = %(run_id)s AND s.tenant_id = %(tenant_id)s AND s.draft_id IS NOT NULL
ORDER BY s.draft_id, s.episode_id
"""

UNSTAGE: LiteralString = """
UPDATE compression_drafts SET content = NULL WHERE run_id = %(run_id)s AND tenant_id = %(tenant_id)s
"""

FINISH: LiteralString = """
UPDATE compression_runs SET status = %(status)s, report = %(report)s, finished_at = clock_timestamp()
WHERE id = %(run_id)s AND tenant_id = %(tenant_id)s AND status = 'running' AND token = %(token)s
"""

RUNS: LiteralString = f"""
SELECT {RUN} FROM compression_runs r JOIN experts x ON x.id = r.expert_id
WHERE r.tenant_id = %(tenant_id)s AND r.user_id = %(user_id)s
  AND (%(run_id)s::uuid IS NULL OR r.id = %(run_id)s)
  AND (%(after_at)s::timestamptz IS NULL OR (r.created_at, r.id) < (%(after_at)s, %(after_id)s::uuid))
ORDER BY r.created_at DESC, r.id DESC LIMIT %(limit)s
"""  # noqa: S608 — our own text only
