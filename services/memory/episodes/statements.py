"""The statements of `EpisodeStore` and of indexing."""

from typing import LiteralString

# A unit is a message of the episode, or a written episode itself. Incomplete answers have none.
_UNIT: LiteralString = """
e.id AS episode_id, coalesce(m.id, e.id) AS unit_id, e.episode_type, e.importance, e.origin, e.conversation_id,
coalesce(m.created_at, e.created_at) AS created_at,
coalesce(m.role, CASE e.origin WHEN 'assistant_said' THEN 'assistant' ELSE 'user' END) AS role,
m.speaker, m.external_id, e.source_message_ids, m.id AS message_id
"""
UNIT: LiteralString = f"{_UNIT}, coalesce(m.content, e.content) AS text"

# The index and working sets learn of what is no longer remembered, too: it is one unit without a text.
_UNIT_OR_GONE: LiteralString = f"{_UNIT}, coalesce(m.content, r.content) AS text"
_MESSAGES_OF_REMEMBERED: LiteralString = """
LEFT JOIN remembered_episodes r ON r.id = e.id
LEFT JOIN remembered_messages m ON m.id = ANY(e.source_message_ids) AND r.id IS NOT NULL AND r.content IS NULL
    AND m.completed
"""

# What a space shows: what was said in it, and what all spaces of the user share.
OF_SPACE: LiteralString = "(e.space_id IS NULL OR e.space_id = %(space_id)s)"

VISIBLE: LiteralString = f"""
e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.expert_id = %(expert_id)s
AND {OF_SPACE}
AND (%(conversation_id)s::uuid IS NULL OR e.conversation_id = %(conversation_id)s)
AND (%(episode_type)s::text IS NULL OR e.episode_type = %(episode_type)s)
"""

WITHIN: LiteralString = """
(%(since)s::timestamptz IS NULL OR coalesce(m.created_at, e.created_at) >= %(since)s)
AND (%(until)s::timestamptz IS NULL OR coalesce(m.created_at, e.created_at) < %(until)s)
"""

# An answer is shown with its question.
_QUESTION: LiteralString = """
LEFT JOIN remembered_messages q ON m.role = 'assistant' AND q.id = ANY(e.source_message_ids) AND q.role = 'user'
    AND q.id = e.source_message_ids[1]
"""

# Of what is encrypted no part can be opened.
_QUESTION_TEXT: LiteralString = """
CASE WHEN starts_with(q.content, '~[1.') THEN q.content ELSE left(q.content, 200) END
"""

UNINDEXED: LiteralString = f"""
SELECT {UNIT}, q.id AS question_id, {_QUESTION_TEXT} AS question, q.speaker AS question_speaker, e.valid_until
FROM (
    SELECT * FROM remembered_episodes e WHERE e.indexed_at IS NULL AND {VISIBLE}
    ORDER BY e.created_at DESC, e.id DESC LIMIT %(most)s
) AS e
LEFT JOIN remembered_messages m ON m.id = ANY(e.source_message_ids) AND e.content IS NULL AND m.completed
{_QUESTION}
WHERE (m.id IS NOT NULL OR e.content IS NOT NULL) AND {WITHIN}
ORDER BY coalesce(m.created_at, e.created_at), coalesce(m.id, e.id)
"""  # noqa: S608 — our own text only

# What core memory was made of a message: its content before and after.
_FILED: LiteralString = """
(SELECT jsonb_agg(jsonb_build_array(h.old, h.new)) FROM core_memory_history h
 WHERE m.role = 'user' AND h.trigger_message_id = m.id AND h.tenant_id = e.tenant_id) AS filed
"""

# Each is found by its id: joined, all of a tenant's would be read while there are no statistics.
FOUND: LiteralString = f"""
SELECT {UNIT}, q.id AS question_id, {_QUESTION_TEXT} AS question, q.speaker AS question_speaker, e.valid_until,
       {_FILED}
FROM unnest(%(unit_ids)s::uuid[], %(episode_ids)s::uuid[]) AS hit(unit_id, episode_id)
CROSS JOIN LATERAL (
    SELECT * FROM remembered_episodes e WHERE e.id = hit.episode_id AND {VISIBLE} LIMIT 1
) AS e
LEFT JOIN LATERAL (
    SELECT * FROM remembered_messages m
    WHERE m.id = hit.unit_id AND m.id = ANY(e.source_message_ids) AND m.completed LIMIT 1
) AS m ON true
{_QUESTION}
WHERE (m.id IS NOT NULL OR (e.content IS NOT NULL AND e.id = hit.unit_id)) AND {WITHIN}
"""  # noqa: S608 — our own text only

# What a working set is made of, and what has changed since a snapshot.
_KEPT: LiteralString = """
e.id AS episode_id, coalesce(m.id, e.id) AS unit_id, e.episode_type, e.conversation_id,
coalesce(m.created_at, e.created_at) AS created_at,
coalesce(m.role, CASE e.origin WHEN 'assistant_said' THEN 'assistant' ELSE 'user' END) AS role,
m.speaker, m.id AS message_id, e.indexed_at IS NOT NULL AS indexed
"""
_OF_OWNER: LiteralString = f"""
e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.expert_id = %(expert_id)s AND {OF_SPACE}
"""
HAS_MORE: LiteralString = f"""
SELECT count(*) > %(most)s FROM (SELECT FROM episodes e WHERE {_OF_OWNER} LIMIT %(most)s + 1) AS counted
"""  # noqa: S608 — our own text only
KEPT: LiteralString = f"""
SELECT {_KEPT}, coalesce(m.content, e.content) AS text
FROM (
    SELECT * FROM remembered_episodes e WHERE {_OF_OWNER} AND (
        %(before)s::uuid IS NULL
        OR (e.created_at, e.id) < (SELECT b.created_at, b.id FROM episodes b WHERE b.id = %(before)s)
    ) ORDER BY e.created_at DESC, e.id DESC LIMIT %(most)s
) AS e
LEFT JOIN remembered_messages m ON m.id = ANY(e.source_message_ids) AND e.content IS NULL AND m.completed
ORDER BY e.created_at DESC, e.id DESC
"""  # noqa: S608 — our own text only
_CHANGED: LiteralString = f"""
SELECT {_KEPT}, coalesce(m.content, r.content) AS text FROM episodes e {_MESSAGES_OF_REMEMBERED}
WHERE {_OF_OWNER} AND e.changed_in >= pg_snapshot_xmin(%(snapshot)s::pg_snapshot)
AND NOT pg_visible_in_snapshot(e.changed_in, %(snapshot)s::pg_snapshot)
"""  # noqa: S608 — our own text only

GENERATION: LiteralString = """
SELECT generation, removed_at, pg_current_snapshot()::text AS snapshot FROM memory_generations
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
"""

# One row without a unit if nothing has changed.
GENERATION_AND_CHANGED: LiteralString = f"""
SELECT state.*, unit.* FROM ({GENERATION}) AS state LEFT JOIN ({_CHANGED}) AS unit ON true
"""  # noqa: S608 — our own text only

_TO_INDEX: LiteralString = f"""
SELECT {_UNIT_OR_GONE}, e.tenant_id, e.user_id, e.expert_id, e.space_id,
       e.created_at AS episode_at, cardinality(e.source_message_ids) AS source_count,
       md5(e.content) AS content_hash, r.id IS NOT NULL AS is_living, e.indexed_passages
"""
# Of the newest: those behind them have their turn.
LANES_TO_INDEX: LiteralString = """
SELECT DISTINCT get_byte(uuid_send(user_id), 15) %% %(lanes)s FROM (
    SELECT e.user_id FROM episodes e WHERE e.tenant_id = %(tenant_id)s AND e.indexed_at IS NULL
    ORDER BY e.id DESC LIMIT 1000
) AS newest
"""
TO_INDEX: LiteralString = f"""
{_TO_INDEX} FROM (
    SELECT * FROM episodes e WHERE e.tenant_id = %(tenant_id)s AND e.indexed_at IS NULL
      AND get_byte(uuid_send(e.user_id), 15) %% %(lanes)s = %(lane)s
    ORDER BY e.id DESC LIMIT %(limit)s
) AS e
{_MESSAGES_OF_REMEMBERED}
ORDER BY e.id, coalesce(m.created_at, e.created_at), m.id
"""  # noqa: S608 — our own text only

OF_USER: LiteralString = f"""
{_TO_INDEX} FROM (
    SELECT * FROM episodes e WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s
      AND (e.created_at, e.id) > (%(after_at)s, %(after_id)s)
    ORDER BY e.created_at, e.id LIMIT %(limit)s
) AS e
{_MESSAGES_OF_REMEMBERED}
ORDER BY e.created_at, e.id, coalesce(m.created_at, e.created_at), m.id
"""  # noqa: S608 — our own text only

# What was changed, superseded or brought back while it was being indexed is indexed again.
INDEXED: LiteralString = """
UPDATE episodes e SET indexed_at = clock_timestamp()
FROM unnest(%(episode_ids)s::uuid[], %(sources)s::integer[], %(contents)s::text[], %(living)s::boolean[])
    AS done(id, sources, content, living)
WHERE e.tenant_id = %(tenant_id)s AND e.id = done.id AND e.indexed_at IS NULL
  AND cardinality(e.source_message_ids) = done.sources AND md5(e.content) IS NOT DISTINCT FROM done.content
  AND EXISTS (SELECT FROM remembered_episodes r WHERE r.id = e.id) = done.living
RETURNING e.id
"""

NOTE_PASSAGES: LiteralString = """
UPDATE episodes e SET indexed_passages = done.passages
FROM unnest(%(episode_ids)s::uuid[], %(passages)s::smallint[]) AS done(id, passages)
WHERE e.tenant_id = %(tenant_id)s AND e.id = done.id AND e.indexed_passages < done.passages
RETURNING e.id
"""

# As `shard_of`: the id as a number, modulo the count, which divides 256.
COUNT = """
SELECT count(*) FROM episodes
WHERE tenant_id = %(tenant_id)s AND get_byte(uuid_send(user_id), 15) %% %(shards)s = %(shard)s
"""

USERS_OF_SHARD = """
SELECT id FROM users
WHERE tenant_id = %(tenant_id)s AND get_byte(uuid_send(id), 15) %% %(shards)s = %(shard)s
ORDER BY id
"""

NOT_INDEXED = """
UPDATE episodes SET indexed_at = NULL
WHERE tenant_id = %(tenant_id)s AND user_id = ANY(%(user_ids)s) AND indexed_at IS NOT NULL
"""

ALL_WAITING = "SELECT count(*) FROM episodes WHERE tenant_id = %(tenant_id)s AND indexed_at IS NULL"

WAITING = """
SELECT count(*) FROM episodes
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND indexed_at IS NULL
"""

ADD = """
INSERT INTO episodes (id, tenant_id, user_id, expert_id, space_id, conversation_id, episode_type, content,
    importance, origin, source_message_ids, created_at, made_by)
SELECT %(id)s, %(tenant_id)s, %(user_id)s, %(expert_id)s, %(space_id)s, %(conversation_id)s, %(episode_type)s,
    %(content)s, %(importance)s, %(origin)s, %(source_message_ids)s, clock_timestamp(), %(made_by)s
"""

# By a memory, or by a section of core memory.
SUPERSEDE = """
WITH old AS (
    SELECT id FROM remembered_episodes
    WHERE id = %(id)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND expert_id = %(expert_id)s
      AND space_id IS NOT DISTINCT FROM %(space_id)s AND content IS NOT NULL AND pinned_at IS NULL AND id <> %(by)s
    FOR UPDATE
), holds AS (
    SELECT (SELECT id FROM episodes WHERE id = %(by)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s
                AND superseded_by IS NULL AND retracted_at IS NULL) AS memory_id,
           (SELECT id FROM core_memory_blocks
            WHERE id = %(by)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s) AS block_id
)
UPDATE episodes e SET superseded_by = holds.memory_id, superseded_in = holds.block_id
FROM old, holds WHERE e.id = old.id AND num_nonnulls(holds.memory_id, holds.block_id) > 0
RETURNING e.content
"""

TIMEZONE = "SELECT timezone FROM users WHERE tenant_id = %(tenant_id)s AND id = %(user_id)s"

# Parts of the statement that ends a turn, after `ended`, `moment` and `keeps` of it.
TURN_EPISODE: LiteralString = """episode AS (
    INSERT INTO episodes (id, tenant_id, user_id, expert_id, conversation_id, space_id, episode_type, importance,
        origin, source_message_ids, created_at, held_at)
    SELECT %(episode_id)s, %(tenant_id)s, c.user_id, c.expert_id, c.id, c.space_id, 'turn', %(episode_importance)s,
        'user_said', ARRAY[ended.user_message_id, %(message_id)s], moment.at,
        CASE WHEN c.in_story AND %(to_file)s THEN moment.at END
    FROM ended JOIN conversations c ON c.id = ended.conversation_id CROSS JOIN moment CROSS JOIN keeps
    WHERE %(episode_id)s::uuid IS NOT NULL AND keeps.memory
), recalled AS (
    UPDATE episodes SET last_recalled_at = clock_timestamp(), recall_count = recall_count + 1
    FROM ended WHERE episodes.id = ANY(%(recalled)s::uuid[]) AND episodes.tenant_id = %(tenant_id)s
)"""
