"""The statements of promises."""

from typing import LiteralString

_ROWS: LiteralString = """
SELECT p.id, p.tenant_id, p.user_id, p.expert_id, p.space_id, p.conversation_id, p.source_message_id, p.text,
       p.said, p.quote, p.rule, p.timezone, p.asked_by, p.state, p.due_at, p.created_at, p.settled_at, p.kept_in,
       p.event,
       e.name AS expert, s.name AS space, u.external_id,
       u.timezone AS users_zone, u.quiet_hours, m.created_at AS asked_at,
       m.retracted_at IS NOT NULL OR m.branch_id IS NOT NULL AS source_goes, m.memory_text AS source_text
FROM promises p JOIN users u ON u.id = p.user_id JOIN experts e ON e.id = p.expert_id
LEFT JOIN spaces s ON s.id = p.space_id
LEFT JOIN messages m ON m.id = p.source_message_id
"""

PAGE: LiteralString = f"""{_ROWS}
WHERE p.tenant_id = %(tenant_id)s AND p.user_id = %(user_id)s
  AND (%(id)s::uuid IS NULL OR p.id = %(id)s)
  AND (%(state)s::text IS NULL OR p.state = %(state)s)
  AND (%(expert_id)s::uuid IS NULL OR p.expert_id = %(expert_id)s)
  AND (NOT %(visible)s OR p.space_id IS NULL OR p.space_id = %(space_id)s)
  AND (%(after_at)s::timestamptz IS NULL OR (p.due_at, p.id) > (%(after_at)s, %(after_id)s::uuid))
ORDER BY p.due_at, p.id LIMIT %(limit)s
"""

DUE: LiteralString = f"""{_ROWS}
WHERE p.tenant_id = %(tenant_id)s AND p.user_id = %(user_id)s AND p.state = 'open' AND p.due_at <= %(now)s
ORDER BY p.due_at, p.id LIMIT %(limit)s
"""

# What is seen is compared when it is changed: a change of memory in the meantime has marked it again.
CHANGED: LiteralString = f"""
SELECT seen.*, p.xmin::text AS seen FROM ({_ROWS}
WHERE p.tenant_id = %(tenant_id)s AND p.user_id = %(user_id)s AND p.event = 'changed') AS seen
JOIN promises p ON p.id = seen.id
"""  # noqa: S608 — our own text only

FOLLOW: LiteralString = """
UPDATE promises SET event = %(event)s, state = %(state)s, due_at = %(due_at)s,
    settled_at = CASE WHEN %(state)s = 'open' THEN settled_at ELSE clock_timestamp() END
WHERE id = %(id)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND xmin::text = %(seen)s
"""

UNTOLD: LiteralString = (
    "UPDATE memory_operations SET untold = true WHERE id = %(id)s AND tenant_id = %(tenant_id)s"
)

LOCK: LiteralString = f"""{_ROWS}
WHERE p.id = %(id)s AND p.tenant_id = %(tenant_id)s AND p.user_id = %(user_id)s FOR UPDATE OF p
"""

ADD: LiteralString = """
INSERT INTO promises (id, tenant_id, user_id, expert_id, space_id, conversation_id, source_message_id,
    operation_id, text, said, quote, rule, timezone, asked_by, due_at, event)
VALUES (%(id)s, %(tenant_id)s, %(user_id)s, %(expert_id)s, %(space_id)s, %(conversation_id)s, %(message_id)s,
    %(operation_id)s, %(text)s, %(said)s, %(quote)s, %(rule)s, %(timezone)s, %(asked_by)s, %(due_at)s, %(event)s)
ON CONFLICT (id, tenant_id) DO NOTHING
"""

CHANGE: LiteralString = """
UPDATE promises SET text = %(text)s, said = %(said)s, rule = %(rule)s, timezone = %(timezone)s, state = %(state)s,
    due_at = %(due_at)s, event = %(event)s,
    settled_at = CASE WHEN %(state)s = 'open' THEN settled_at ELSE clock_timestamp() END
WHERE id = %(id)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s
"""

REMOVE: LiteralString = "DELETE FROM promises WHERE id = %(id)s AND tenant_id = %(tenant_id)s"

COUNT_OPEN: LiteralString = """
SELECT count(*) FROM promises WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND state = 'open'
"""

ZONE: LiteralString = "SELECT timezone FROM users WHERE id = %(user_id)s AND tenant_id = %(tenant_id)s"

QUIET_HOURS: LiteralString = """
SELECT quiet_hours FROM users WHERE id = %(user_id)s AND tenant_id = %(tenant_id)s FOR NO KEY UPDATE
"""

BE_QUIET: LiteralString = """
UPDATE users SET quiet_hours = %(hours)s WHERE id = %(user_id)s AND tenant_id = %(tenant_id)s
"""

CONVERSATION_NAMED: LiteralString = """
SELECT id, expert_id, space_id FROM conversations
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
  AND (id = %(conversation_id)s::uuid OR session_key = %(session)s::text)
"""

USERS_WITH_DUE: LiteralString = "SELECT tenant_id, user_id FROM users_with_due_promises(%(now)s)"

# --- keeping

# Its own conversation, or the newest of the user's with the same expert and space.
PLACE: LiteralString = """
SELECT c.id, c.session_key FROM conversations c
WHERE c.tenant_id = %(tenant_id)s AND c.user_id = %(user_id)s AND CASE
    WHEN %(conversation_id)s::uuid IS NOT NULL THEN c.id = %(conversation_id)s
    ELSE c.expert_id = %(expert_id)s AND c.space_id IS NOT DISTINCT FROM %(space_id)s::uuid END
ORDER BY c.created_at DESC, c.id DESC LIMIT 1
"""

BEGIN_CONVERSATION: LiteralString = """
INSERT INTO conversations (id, tenant_id, user_id, expert_id, space_id, session_key, title)
VALUES (%(new_id)s, %(tenant_id)s, %(user_id)s, %(expert_id)s, %(space_id)s, %(new_key)s, %(title)s)
ON CONFLICT (tenant_id, user_id, session_key) DO NOTHING
"""

# As a turn takes its place (`turn_sql.OPEN`): nothing is said between a message and its answer.
TAKE_PLACE: LiteralString = "SELECT pg_advisory_xact_lock(hashtextextended(%(lock)s, 0))"

IS_BUSY: LiteralString = """
SELECT EXISTS (SELECT FROM turns t WHERE t.conversation_id = %(conversation_id)s AND t.tenant_id = %(tenant_id)s
    AND t.status IN ('waiting', 'running'))
"""

# A turn without a message of the user's. Its answer inherits the least trusted origin of its conversation.
SAY: LiteralString = """
WITH moment AS (
    SELECT greatest(clock_timestamp(), max(m.created_at) + interval '1 microsecond') AS at,
           min(m.origin) FILTER (WHERE m.foreign_spans IS DISTINCT FROM '{}') AS origin
    FROM messages m WHERE m.conversation_id = %(conversation_id)s AND m.tenant_id = %(tenant_id)s
), person AS (
    SELECT memory FROM users WHERE id = %(user_id)s AND tenant_id = %(tenant_id)s
), turn AS (
    INSERT INTO turns (id, tenant_id, conversation_id, user_message_id, assistant_message_id, status, request,
        accepted_at, started_at, finished_at)
    SELECT %(turn_id)s, %(tenant_id)s, %(conversation_id)s, %(no_message_id)s, %(message_id)s, 'completed',
        jsonb_build_object('promise_id', %(id)s::text), at, at, at FROM moment
)
INSERT INTO messages (id, tenant_id, conversation_id, turn_id, role, content, completed, token_count, digest,
    metadata, created_at, origin, off_record, retracted_at)
SELECT %(message_id)s, %(tenant_id)s, %(conversation_id)s, %(turn_id)s, 'assistant', %(content)s, true,
    %(token_count)s, %(digest)s, jsonb_build_object('promise_id', %(id)s::text), moment.at, moment.origin,
    NOT person.memory, CASE WHEN NOT person.memory THEN moment.at END
FROM moment, person
"""

SETTLE: LiteralString = """
UPDATE promises SET state = %(state)s, due_at = coalesce(%(next)s, due_at), settled_at = clock_timestamp(),
    kept_in = coalesce(%(message_id)s, kept_in)
WHERE id = %(id)s AND tenant_id = %(tenant_id)s
"""

# What was said since it was asked for, in the same space, as far as it is remembered.
SAID_SINCE: LiteralString = """
SELECT role, content, created_at FROM (
    SELECT m.role, coalesce(m.memory_text, m.content) AS content, m.created_at, m.id
    FROM conversations c JOIN messages m ON m.conversation_id = c.id
    WHERE c.tenant_id = %(tenant_id)s AND c.user_id = %(user_id)s AND c.expert_id = %(expert_id)s
      AND c.space_id IS NOT DISTINCT FROM %(space_id)s::uuid
      AND m.created_at > %(since)s AND m.completed AND m.retracted_at IS NULL AND m.branch_id IS NULL
      AND m.speaker IS NULL
    ORDER BY m.created_at DESC, m.id DESC LIMIT 20
) AS newest ORDER BY created_at, id
"""
