"""What an export reads. Columns have the names of the fields of the lines that they become."""

from typing import LiteralString

USER: LiteralString = """
SELECT id, external_id AS name, timezone, locale, display_name, memory, created_at FROM users
WHERE tenant_id = %(tenant_id)s AND external_id = %(name)s
"""

SPACE: LiteralString = """
SELECT id FROM spaces WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND name = %(space)s
"""

SESSIONS: LiteralString = """
SELECT c.id, c.session_key AS session_id, e.name AS expert, s.name AS space, c.title, c.renamed,
       c.pinned_at IS NOT NULL AS pinned, c.created_at
FROM conversations c JOIN experts e ON e.id = c.expert_id LEFT JOIN spaces s ON s.id = c.space_id
WHERE c.user_id = %(user_id)s AND c.tenant_id = %(tenant_id)s
  AND (%(space)s::text IS NULL OR s.name = %(space)s) ORDER BY c.created_at, c.session_key
"""

# Without messages whose words were deleted. A page ends early where messages carry images. Their stored size is
# known without reading them.
MESSAGES: LiteralString = """
SELECT m.id, m.role, m.content, m.created_at, m.speaker, m.external_id, m.completed, m.parts,
       m.retracted_at IS NOT NULL AS retracted, m.memory_text,
       (SELECT count(*) FROM conversation_branches b JOIN conversation_branches o
            ON o.conversation_id = b.conversation_id AND (o.created_at, o.id) <= (b.created_at, b.id)
        WHERE b.id = m.branch_id) AS branch,
       CASE f.rating WHEN 1 THEN 'up' WHEN -1 THEN 'down' END AS rating, f.comment, f.tags,
       f.updated_at AS rated_at,
       m.id = ANY(ARRAY(
           SELECT unnest(e.source_message_ids) FROM episodes e
           WHERE e.conversation_id = %(conversation_id)s AND e.tenant_id = %(tenant_id)s
             AND e.episode_type = 'turn' AND e.pinned_at IS NOT NULL)) AS pinned
FROM (
    SELECT id, size, sum(size) OVER (ORDER BY created_at, id) AS total FROM (
        SELECT id, created_at, pg_column_size(content) + pg_column_size(parts) AS size FROM messages
        WHERE conversation_id = %(conversation_id)s AND tenant_id = %(tenant_id)s
          AND NOT (content = '' AND parts = '[]' AND retracted_at IS NOT NULL)
          AND (created_at, id) > (%(at)s::timestamptz, %(id)s::uuid)
        ORDER BY created_at, id LIMIT %(limit)s
    ) AS page
) AS sized JOIN messages m ON m.id = sized.id LEFT JOIN feedback f ON f.message_id = m.id
WHERE sized.total - sized.size < %(bytes)s
ORDER BY m.created_at, m.id
"""

CORE_MEMORY: LiteralString = """
SELECT b.id, e.name AS expert, s.name AS space, b.section, b.content, b.updated_at,
       ARRAY(SELECT digest FROM core_memory_pins p
             WHERE p.block_id = b.id AND p.tenant_id = %(tenant_id)s) AS pins
FROM core_memory_blocks b JOIN experts e ON e.id = b.expert_id LEFT JOIN spaces s ON s.id = b.space_id
WHERE b.user_id = %(user_id)s AND b.tenant_id = %(tenant_id)s
  AND (%(space)s::text IS NULL OR s.name = %(space)s) ORDER BY e.name, s.name NULLS FIRST, b.section
"""

# What took its place says what was superseded.
EPISODES: LiteralString = """
SELECT p.id, x.name AS expert, z.name AS space, c.session_key AS session_id, p.episode_type, p.content,
       p.importance, p.origin, p.created_at, p.archived_by IS NOT NULL AS archived,
       p.pinned_at IS NOT NULL AS pinned,
       coalesce((
           SELECT jsonb_agg(jsonb_build_object(
               'session_id', k.session_key, 'external_id', m.external_id, 'created_at', m.created_at,
               'role', m.role, 'content', m.content
           ) ORDER BY s.place)
           FROM unnest(p.source_message_ids) WITH ORDINALITY AS s (id, place)
           JOIN messages m ON m.id = s.id JOIN conversations k ON k.id = m.conversation_id
       ), '[]') AS sources
FROM (
    SELECT * FROM episodes
    WHERE user_id = %(user_id)s AND tenant_id = %(tenant_id)s AND episode_type <> 'turn'
      AND retracted_at IS NULL AND superseded_by IS NULL AND superseded_in IS NULL
      AND (%(space)s::text IS NULL OR space_id = (
          SELECT s.id FROM spaces s WHERE s.user_id = %(user_id)s AND s.name = %(space)s))
      AND (created_at, id) > (%(at)s::timestamptz, %(id)s::uuid)
    ORDER BY created_at, id LIMIT %(limit)s
) AS p
JOIN experts x ON x.id = p.expert_id LEFT JOIN conversations c ON c.id = p.conversation_id
LEFT JOIN spaces z ON z.id = p.space_id
ORDER BY p.created_at, p.id
"""


# Of a turn, its messages: its episode is made again from them.
EXCLUSIONS: LiteralString = """
WITH excluded AS (
    SELECT x.created_at, c.session_key, c.space_id, coalesce(m.id, x.message_id) AS message_id,
           CASE WHEN e.episode_type <> 'turn' THEN e.id END AS episode_id
    FROM recall_exclusions x JOIN conversations c ON c.id = x.conversation_id
    LEFT JOIN episodes e ON e.id = x.episode_id
    LEFT JOIN messages m ON e.episode_type = 'turn' AND m.id = ANY(e.source_message_ids)
    WHERE c.user_id = %(user_id)s AND x.tenant_id = %(tenant_id)s
)
SELECT x.session_key AS session_id,
       CASE WHEN e.id IS NOT NULL THEN jsonb_build_object(
           'created_at', e.created_at, 'content', e.content
       ) END AS memory,
       CASE WHEN m.id IS NOT NULL THEN jsonb_build_object(
           'session_id', k.session_key, 'external_id', m.external_id, 'created_at', m.created_at,
           'role', m.role, 'content', m.content
       ) END AS message
FROM (SELECT DISTINCT ON (session_key, message_id, episode_id) * FROM excluded) AS x
LEFT JOIN remembered_episodes e ON e.id = x.episode_id
LEFT JOIN messages m ON m.id = x.message_id LEFT JOIN conversations k ON k.id = m.conversation_id
WHERE (e.id IS NOT NULL OR m.id IS NOT NULL)
  AND (%(space)s::text IS NULL OR (x.space_id = coalesce(e.space_id, k.space_id) AND x.space_id = (
      SELECT s.id FROM spaces s WHERE s.user_id = %(user_id)s AND s.name = %(space)s)))
ORDER BY x.session_key, coalesce(e.created_at, m.created_at), coalesce(e.id, m.id)
"""
