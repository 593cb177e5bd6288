"""The statements of `Lineage` and its audit, over the views `lineage` and `derived_items`."""

from typing import LiteralString

PARENTS: LiteralString = """
SELECT kind, id, parent_kind, parent_id FROM lineage
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND kind = %(kind)s AND id = ANY(%(ids)s)
"""

CHILDREN: LiteralString = """
SELECT kind, id, parent_kind, parent_id FROM lineage
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND parent_kind = %(kind)s AND parent_id = ANY(%(ids)s)
"""

# What the user may read: a message with its whole text, of a turn's episode none beside that of its messages.
ITEMS: LiteralString = """
SELECT kind, id, text, at, made_by, CASE WHEN kind = 'episode' AND state = 'superseded' AND EXISTS (
           SELECT FROM episodes e JOIN upkeep_runs f ON f.id = e.archived_by
           WHERE e.id = derived_items.id AND f.action = 'archive'
       ) THEN 'archived' ELSE state END AS state
FROM derived_items
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND kind = %(kind)s AND id = ANY(%(ids)s)
"""

MESSAGES: LiteralString = """
SELECT 'message' AS kind, m.id, m.content AS text, m.created_at AS at,
       jsonb_build_object('actor', m.role, 'turn_id', m.turn_id) AS made_by,
       CASE WHEN m.retracted_at IS NULL AND m.branch_id IS NULL THEN 'current' ELSE 'retracted' END AS state,
       coalesce(m.origin::text, m.role) AS origin
FROM messages m JOIN conversations c ON c.id = m.conversation_id
WHERE m.tenant_id = %(tenant_id)s AND c.user_id = %(user_id)s AND m.id = ANY(%(ids)s)
"""

_NAMED: LiteralString = """
JOIN experts x ON x.id = t.expert_id LEFT JOIN spaces s ON s.id = t.space_id
WHERE t.tenant_id = %(tenant_id)s AND t.user_id = %(user_id)s AND x.name = %(expert)s
  AND s.name IS NOT DISTINCT FROM %(space)s
"""
SECTION: LiteralString = f"SELECT t.id FROM core_memory_blocks t {_NAMED} AND t.section = %(name)s"  # noqa: S608
DAY: LiteralString = f"SELECT t.id FROM daily_summaries t {_NAMED} AND t.date::text = %(name)s"  # noqa: S608

USERS: LiteralString = """
SELECT id, external_id FROM users WHERE tenant_id = %(tenant_id)s
  AND (%(user)s::text IS NULL OR external_id = %(user)s) AND (%(after)s::uuid IS NULL OR id > %(after)s)
ORDER BY id LIMIT %(limit)s
"""

# The user's edges are computed once. What was retracted waits to be undone, or is gone for good.
ORPHANS: LiteralString = """
WITH edge AS MATERIALIZED (
    SELECT kind, id, parent_kind, parent_id FROM lineage
    WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
), item AS MATERIALIZED (
    SELECT kind, id, is_root FROM derived_items
    WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND state <> 'retracted'
), parentless AS (
    SELECT i.kind, i.id, 'no parents' AS problem, NULL::text AS parent_kind, NULL::uuid AS parent_id FROM item i
    WHERE NOT i.is_root AND NOT EXISTS (SELECT FROM edge e WHERE e.kind = i.kind AND e.id = i.id)
), missing AS (
    SELECT e.kind, e.id, 'parent is missing' AS problem, e.parent_kind, e.parent_id
    FROM edge e JOIN item i ON i.kind = e.kind AND i.id = e.id
    WHERE e.parent_kind = 'message' AND NOT EXISTS (
            SELECT FROM messages m JOIN conversations c ON c.id = m.conversation_id
            WHERE m.id = e.parent_id AND m.tenant_id = %(tenant_id)s AND c.user_id = %(user_id)s)
       OR e.parent_kind = 'visit' AND NOT EXISTS (
            SELECT FROM visits v WHERE v.id = e.parent_id AND v.user_id = %(user_id)s)
       OR e.parent_kind = 'episode' AND NOT EXISTS (
            SELECT FROM episodes p WHERE p.id = e.parent_id AND p.user_id = %(user_id)s)
)
SELECT kind, id, problem, parent_kind, parent_id, (SELECT count(*) FROM item) AS items,
       (SELECT count(*) FROM edge) AS edges
FROM (SELECT * FROM parentless UNION ALL SELECT * FROM missing) AS found
RIGHT JOIN (SELECT 1) AS always ON true
"""
