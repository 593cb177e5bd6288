"""The statements of `Turns`, in the order in which a turn meets them.

`OPEN`, before the first token:

    expert, person (known or made), space (named or made)
      → conversation (going on, or begun) → unfinished turns in it
        → turn (running or waiting) → message → one row of all that its prompt needs to know

`END`, when the answer is complete:

    ended (the turn, if it is still this process's) → moment of the answer
      → message, with the origin that it inherited from what its prompt showed
      → episode, visit, epoch of the prompt, changes that were told, job of filing
        → one row: the visit before, and whether a waiting turn begins
"""

from typing import LiteralString

from services.conversations.feedback import OF_TURN
from services.conversations.transcript import SHOWN_TITLE
from services.conversations.turn import WITHOUT_MEMORY
from services.experiments.assignment import NAMES_OF_TURN, RUNNING
from services.jobs.queue import IF_NONE_WAITS
from services.memory.episodes.statements import TURN_EPISODE
from services.memory.waiting import FILE_ONCE
from services.visits.visit import VISIT_OF_TURN


def next_moment(conversation_id: LiteralString) -> LiteralString:
    """SQL for the time of a conversation's next message: after all its others, even if the clock was set back."""
    return f"""greatest(clock_timestamp(), (SELECT max(before.created_at) FROM messages before
        WHERE before.conversation_id = {conversation_id}) + interval '1 microsecond')"""  # noqa: S608


def of_expert(
    expert: LiteralString, person: LiteralString, strategy: LiteralString | None = None
) -> LiteralString:
    """SQL for the columns of an expert in a statement that opens a turn, named as its fields; without memory if
    the user has switched it off. `strategy` replaces that of the expert."""
    without = "', '".join(WITHOUT_MEMORY)
    return f"""{expert}.id AS expert_id, {expert}.name AS expert, {expert}.model, {expert}.reflection AS reflects,
       concat_ws(E'\n\n', {expert}.system_prompt, nullif({expert}.persona, '')) AS system_prompt,
       {expert}.parts_off || CASE WHEN {person}.memory IS FALSE
           THEN ARRAY['{without}'] ELSE ARRAY[]::text[] END AS parts_off,
       jsonb_build_object(
           'strategy', {strategy or expert + ".context_strategy"}, 'window', {expert}.context_window,
           'threshold', {expert}.context_threshold, 'min_archive_messages', {expert}.min_archive_messages,
           'budget', {expert}.context_budget_tokens
       ) AS policy"""


OPEN: LiteralString = f"""
WITH expert AS (
    SELECT e.* FROM experts e
    LEFT JOIN conversations c ON c.expert_id = e.id AND c.session_key = %(session_key)s
        AND c.user_id = (SELECT id FROM users WHERE tenant_id = %(tenant_id)s AND external_id = %(external_id)s)
    WHERE e.tenant_id = %(tenant_id)s AND (c.id IS NOT NULL OR e.name = coalesce(%(expert)s, 'default'))
      AND (%(kb_prefix)s::text IS NULL OR EXISTS (SELECT FROM knowledge_bases b
          WHERE b.tenant_id = %(tenant_id)s AND b.prefix = %(kb_prefix)s AND b.user_id IS NULL))
    ORDER BY c.id IS NULL LIMIT 1
), known AS (
    SELECT id, timezone, locale, memory FROM users
    WHERE tenant_id = %(tenant_id)s AND external_id = %(external_id)s
), made AS (
    INSERT INTO users (id, tenant_id, external_id, timezone, locale)
    SELECT %(new_user_id)s, %(tenant_id)s, %(external_id)s, coalesce(%(timezone)s, %(default_timezone)s),
        %(locale)s
    FROM expert WHERE NOT EXISTS (SELECT FROM known)
    ON CONFLICT (tenant_id, external_id) DO NOTHING
    RETURNING id, timezone, locale, memory
), person AS (
    SELECT * FROM known UNION ALL SELECT * FROM made
), going_on AS (
    SELECT c.id, c.space_id FROM conversations c JOIN person p ON c.user_id = p.id
    WHERE c.tenant_id = %(tenant_id)s AND c.session_key = %(session_key)s
), named_space AS (
    SELECT s.id FROM spaces s JOIN person p ON s.user_id = p.id
    WHERE s.tenant_id = %(tenant_id)s AND s.name = %(space)s
), made_space AS (
    INSERT INTO spaces (id, tenant_id, user_id, name)
    SELECT %(new_space_id)s, %(tenant_id)s, person.id, %(space)s FROM person, expert
    WHERE %(space)s::text IS NOT NULL AND NOT EXISTS (SELECT FROM named_space)
      AND NOT EXISTS (SELECT FROM going_on)
    ON CONFLICT (user_id, name, tenant_id) DO NOTHING
    RETURNING id
), space AS (
    SELECT id FROM named_space UNION ALL SELECT id FROM made_space
), begun AS (
    INSERT INTO conversations (id, tenant_id, user_id, expert_id, session_key, title, space_id)
    SELECT %(new_conversation_id)s, %(tenant_id)s, person.id, expert.id, %(session_key)s, %(title)s,
        (SELECT id FROM space)
    FROM person, expert WHERE NOT EXISTS (SELECT FROM going_on)
      AND (%(space)s::text IS NULL OR EXISTS (SELECT FROM space))
    ON CONFLICT (tenant_id, user_id, session_key) DO NOTHING
    RETURNING id, space_id
), conversation AS (
    SELECT id, space_id FROM going_on UNION ALL SELECT id, space_id FROM begun
), unfinished AS (
    SELECT conversation.id, conversation.space_id,
        %(space)s::text IS NULL OR conversation.space_id IS NOT DISTINCT FROM (SELECT id FROM space)
            AND EXISTS (SELECT FROM space) AS of_space,
        (SELECT id FROM turns t WHERE t.conversation_id = conversation.id
            AND t.idempotency_key = %(idempotency_key)s) AS known_turn_id,
        (SELECT (
            SELECT m.digest <> ALL(%(digests_sought)s::bytea[]) FROM messages m WHERE m.id = t.user_message_id
        ) FROM turns t
            WHERE t.conversation_id = conversation.id
            AND t.idempotency_key = %(idempotency_key)s) AS known_differs,
        EXISTS (SELECT FROM turns t
            WHERE t.conversation_id = conversation.id AND t.status = 'running') AS running,
        (SELECT count(*) FROM turns t
            WHERE t.conversation_id = conversation.id AND t.status = 'waiting') AS waiting
    FROM conversation WHERE EXISTS (SELECT FROM expert)
), turn AS (
    INSERT INTO turns (id, tenant_id, conversation_id, user_message_id, status, idempotency_key, request,
                       lease_expires_at, process, accepted_at)
    SELECT %(turn_id)s, %(tenant_id)s, id, %(message_id)s,
        CASE WHEN running OR waiting > 0 THEN 'waiting' ELSE 'running' END, %(idempotency_key)s, %(request)s,
        now() + %(lease)s, %(process)s,
        greatest(clock_timestamp(), (SELECT max(t.accepted_at) FROM turns t
            WHERE t.conversation_id = unfinished.id) + interval '1 microsecond')
    FROM unfinished
    WHERE known_turn_id IS NULL AND of_space AND (NOT %(must_begin)s OR EXISTS (SELECT FROM begun))
      AND (NOT running AND waiting = 0 OR %(on_conflict)s::text <> 'reject' AND waiting < %(most_waiting)s)
    ON CONFLICT DO NOTHING
    RETURNING conversation_id, status
), message AS (
    INSERT INTO messages (id, tenant_id, conversation_id, turn_id, role, content, memory_text, off_record, parts,
                          completed, token_count, digest, external_id, created_at, retracted_at, speaker, origin)
    SELECT %(message_id)s, %(tenant_id)s, conversation_id, %(turn_id)s, 'user', %(content)s, %(memory_text)s,
        %(memory_text)s::text IS NOT NULL OR NOT person.memory, %(parts)s, status = 'running',
        %(token_count)s, %(digest)s, %(message_external_id)s,
        {next_moment("turn.conversation_id")}, CASE WHEN NOT person.memory THEN now() END,
        %(speaker)s, %(speaker_origin)s::foreign_origin
    FROM turn, person
)
SELECT person.id AS user_id, person.timezone, person.locale, turn.conversation_id,
       turn.status = 'waiting' AS waiting,
       {RUNNING} AS running_experiments,
       {of_expert("expert", "person")},
       unfinished.space_id, unfinished.of_space,
       unfinished.known_turn_id, unfinished.known_differs,
       unfinished.running AS running_before, unfinished.waiting AS waiting_before,
       EXISTS (SELECT FROM begun) AS begins,
       person.memory AND EXISTS (SELECT FROM episodes e WHERE e.user_id = person.id) AS remembers,
       EXISTS (SELECT FROM memory_operations o
           WHERE o.user_id = person.id AND o.tenant_id = %(tenant_id)s AND o.type = 'memory_proposal'
             AND o.results->>'state' = 'waiting' AND NOT o.results ? 'kept') AS asks,
       (SELECT jsonb_agg(jsonb_build_object(
            'id', o.id, 'kind', CASE WHEN o.type <> 'promise' THEN o.field
                           WHEN o.field = 'cancel' THEN 'called_off' ELSE o.type END,
            'named', o.query, 'items', o.results->'items', 'gone', (
            SELECT jsonb_agg(f.results->'items') FROM memory_operations f
            WHERE f.user_id = o.user_id AND f.tenant_id = o.tenant_id AND f.type = 'memory_command'
              AND f.field = 'forget' AND f.at > o.at AND f.undone_at IS NULL))
                         ORDER BY o.at, o.id)
        FROM memory_operations o
        WHERE o.user_id = person.id AND o.tenant_id = %(tenant_id)s AND o.untold AND o.undone_at IS NULL
          AND (o.space_id IS NULL OR o.space_id = unfinished.space_id)
          AND o.trigger->>'expert_id' = expert.id::text) AS untold_changes,
       EXISTS (SELECT FROM knowledge_bases b WHERE b.tenant_id = %(tenant_id)s AND (b.user_id IS NULL
           OR b.user_id = person.id AND b.session_key = %(session_key)s)) AS has_knowledge,
       EXISTS (SELECT FROM core_memory_blocks b
           WHERE b.user_id = person.id AND b.expert_id = expert.id) AS has_core_memory,
       (SELECT array_agg(t.id) FROM turns t
           WHERE t.conversation_id = unfinished.id AND t.status = 'paused') AS paused_turns,
       coalesce((SELECT g.generation FROM memory_generations g
           WHERE g.user_id = person.id), 0) AS memory_generation
FROM expert LEFT JOIN person ON true LEFT JOIN unfinished ON true LEFT JOIN turn ON true
"""  # noqa: S608 — our own text only
"""Finds or creates user, expert and conversation, stores the message and opens its turn.

It is one statement because it runs before the first token. It runs under a lock on the conversation's name, so
that it sees every turn opened before. In a conversation with an unfinished turn the new one waits. If another
transaction creates the same user, or starts a waiting turn, at the same moment, this one waits for it, stores
nothing and returns nulls: it is then run again.
"""

UNSTORED: LiteralString = f"""
SELECT {of_expert("e", "person", "'window'")},
       person.id AS user_id, person.timezone, person.locale, s.id AS space_id
FROM experts e
LEFT JOIN users person ON %(reads)s AND person.tenant_id = e.tenant_id AND person.external_id = %(external_id)s
LEFT JOIN spaces s ON s.tenant_id = e.tenant_id AND s.user_id = person.id AND s.name = %(space)s
WHERE e.tenant_id = %(tenant_id)s AND e.name = coalesce(%(expert)s, 'default')
"""  # noqa: S608 — our own text only
"""Reads what a turn that is not stored needs to know. An unknown user has no memory, an unknown space is empty."""

SPACE_OF: LiteralString = """
SELECT s.name FROM conversations c JOIN users u ON u.id = c.user_id LEFT JOIN spaces s ON s.id = c.space_id
WHERE c.tenant_id = %(tenant_id)s AND u.external_id = %(external_id)s AND c.session_key = %(session_key)s
"""
"""The name of a conversation's space; no row if there is no such conversation."""

KNOWLEDGE_BASE = """
SELECT FROM knowledge_bases WHERE tenant_id = %(tenant_id)s AND prefix = %(kb_prefix)s AND user_id IS NULL
"""
"""Returns a row if the tenant has a knowledge base of this name for all users."""

PASSING: LiteralString = "'instructions', 'attached', 'sampling', 'client_tools', 'rounds'"
"""Fields of a request that are kept only while its turn may need them."""

ABANDONED: LiteralString = (
    "is_abandoned(lease_expires_at, CASE WHEN process = %(asking)s::bigint THEN 0 ELSE process END)"
)
"""SQL that tells whether a turn's process is gone, or its lease cannot be real because the clock was set back."""
OWN: LiteralString = "(process IS NULL OR process = %(process)s)"
"""SQL that tells whether a turn still belongs to this process; another process may have taken it over."""

END: LiteralString = f"""
WITH ended AS (
    UPDATE turns SET
        status = %(status)s, assistant_message_id = %(message_id)s,
        route_decision = coalesce(%(route_decision)s, route_decision), usage = coalesce(%(usage)s, usage),
        timings = coalesce(%(timings)s, timings), degraded = %(degraded)s,
        context_report = coalesce(%(context_report)s, context_report), prompt = coalesce(%(prompt)s, prompt),
        error = %(error)s, memory_changes = %(memory_changes)s,
        to_file = %(to_file)s, finished_at = clock_timestamp(), lease_expires_at = NULL,
        request = request - ARRAY['answer', {PASSING}, 'paused']
    WHERE id = %(turn_id)s AND tenant_id = %(tenant_id)s AND status = %(ends)s
      AND (NOT %(abandoned)s OR {ABANDONED}) AND (%(process)s::bigint IS NULL OR {OWN})
      AND NOT (%(alone)s AND EXISTS (
          SELECT FROM visits v JOIN messages m ON m.id = turns.user_message_id
          WHERE v.conversation_id = turns.conversation_id AND v.ended_at IS NULL
            AND v.last_active_at + %(visit_idle)s < m.created_at
          UNION ALL
          SELECT FROM conversations c JOIN experts x ON x.id = c.expert_id
          WHERE c.id = turns.conversation_id AND x.reflection AND %(reflection)s
      ))
    RETURNING conversation_id, user_message_id, request->>'answer_external_id' AS answer_external_id
), moment AS (
    SELECT coalesce(
        (SELECT min(later.created_at) - interval '1 microsecond' FROM messages later
         WHERE %(ends)s = 'paused' AND later.conversation_id = ended.conversation_id
           AND later.created_at > (SELECT asked.created_at FROM messages asked WHERE asked.id = user_message_id)),
        {next_moment("ended.conversation_id")}
    ) AS at FROM ended
), keeps AS (
    SELECT u.memory FROM ended JOIN conversations c ON c.id = ended.conversation_id
    JOIN users u ON u.id = c.user_id
), inherited AS (
    SELECT least(
        %(origin)s::foreign_origin,
        (SELECT m.origin FROM messages m
         WHERE m.conversation_id = (SELECT conversation_id FROM ended) AND m.origin IS NOT NULL
           AND m.foreign_spans IS DISTINCT FROM '{{}}'
         ORDER BY m.origin LIMIT 1),
        (SELECT min((SELECT m.origin FROM messages m
                     WHERE m.id = source.id AND m.foreign_spans IS DISTINCT FROM '{{}}'))
         FROM episodes e CROSS JOIN unnest(e.source_message_ids) AS source (id)
         WHERE e.id = ANY(%(recalled)s::uuid[]) AND e.tenant_id = %(tenant_id)s),
        (SELECT min(m.origin) FROM conversations c JOIN messages m ON m.conversation_id = c.id
         WHERE %(reads_days)s AND m.origin IS NOT NULL AND m.foreign_spans IS DISTINCT FROM '{{}}'
           AND c.user_id = (SELECT o.user_id FROM conversations o JOIN ended ON o.id = ended.conversation_id)),
        (SELECT m.origin FROM ended JOIN conversations o ON o.id = ended.conversation_id
         JOIN conversations c ON c.user_id = o.user_id AND c.expert_id = o.expert_id
         JOIN messages m ON m.conversation_id = c.id
         WHERE %(reads_note)s AND m.private_note IS NOT NULL ORDER BY m.created_at DESC LIMIT 1)
    ) AS origin
), message AS (
    INSERT INTO messages (id, tenant_id, conversation_id, turn_id, role, content, memory_text, off_record,
                          completed, token_count, digest, external_id, created_at, origin, retracted_at)
    SELECT %(message_id)s, %(tenant_id)s, conversation_id, %(turn_id)s, 'assistant', %(content)s, %(memory_text)s,
           %(memory_text)s::text IS NOT NULL OR NOT keeps.memory, %(status)s = 'completed', %(token_count)s,
           %(digest)s, answer_external_id, moment.at, inherited.origin,
           CASE WHEN NOT keeps.memory THEN moment.at END
    FROM ended, moment, inherited, keeps WHERE %(message_id)s::uuid IS NOT NULL
), refused AS (
    UPDATE messages SET completed = false FROM ended
    WHERE messages.id = ended.user_message_id AND messages.tenant_id = %(tenant_id)s AND %(refuses_message)s
), {TURN_EPISODE}, {VISIT_OF_TURN}, epoch AS (
    INSERT INTO context_epochs (conversation_id, tenant_id, number, strategy, reason, begun_at, summary,
        summary_version, topics, history_from_created_at, history_from_message_id, prefix,
        core_memory, core_versions, persona_card)
    SELECT conversation_id, %(tenant_id)s, %(epoch_number)s, %(epoch_strategy)s, %(epoch_reason)s,
        %(epoch_begun_at)s, %(epoch_summary)s, %(epoch_summary_version)s, %(epoch_topics)s, %(epoch_from_at)s,
        %(epoch_from_id)s, %(epoch_prefix)s, %(epoch_core_memory)s, %(epoch_core_versions)s,
        %(epoch_persona_card)s
    FROM ended WHERE %(epoch_number)s::integer IS NOT NULL
    ON CONFLICT (conversation_id, tenant_id) DO UPDATE SET
        number = EXCLUDED.number, strategy = EXCLUDED.strategy, reason = EXCLUDED.reason,
        begun_at = EXCLUDED.begun_at, summary = EXCLUDED.summary, summary_version = EXCLUDED.summary_version,
        topics = EXCLUDED.topics, history_from_created_at = EXCLUDED.history_from_created_at,
        history_from_message_id = EXCLUDED.history_from_message_id, prefix = EXCLUDED.prefix,
        core_memory = EXCLUDED.core_memory, core_versions = EXCLUDED.core_versions,
        persona_card = EXCLUDED.persona_card, ended_by = NULL
), told AS (
    UPDATE memory_operations SET untold = false
    WHERE id = ANY(%(told)s::uuid[]) AND tenant_id = %(tenant_id)s AND untold AND EXISTS (SELECT FROM ended)
), filing AS (
    {FILE_ONCE}
    FROM ended JOIN conversations c ON c.id = ended.conversation_id WHERE %(files)s
    {IF_NONE_WAITS}
)
SELECT visit_before.id, visit_before.message_count, (SELECT origin FROM inherited) AS origin,
       (SELECT x.reflection FROM conversations c JOIN experts x ON x.id = c.expert_id
        WHERE c.id = ended.conversation_id) AS reflects,
CASE WHEN EXISTS (
    SELECT FROM turns t WHERE t.conversation_id = ended.conversation_id AND t.status = 'waiting'
) THEN pg_notify('anamnesis_turns', 'next:' || conversation_id)::text END
FROM ended LEFT JOIN visit_before ON true
"""  # noqa: S608 — our own text only
"""Ends a turn, stores its answer, and wakes the process whose turn waits for this one.

- Run `alone`, it changes nothing where the turn causes a job, which belongs in the transaction that ends the turn.
- The answer inherits the least trusted origin of what its prompt showed; origins sort from the least trusted on.
  The sentences that repeat such text are found out afterwards, where there is any.
- A message that the model's endpoint refuses counts as not completed: it would be refused in every later prompt.
- The words of a paused turn stand before a newer message, which has taken its place.
- Messages and visits are found by subqueries: a join would read the whole of a table that has no statistics yet,
  for as long as the connection keeps the plan.
"""

TAG = """
UPDATE turns SET experiments = %(experiments)s WHERE id = %(turn_id)s AND tenant_id = %(tenant_id)s RETURNING id
"""

ENDED_WITH = """
SELECT 1 FROM turns
WHERE id = %(turn_id)s AND tenant_id = %(tenant_id)s AND status = %(status)s
  AND assistant_message_id = %(message_id)s
"""
"""A row if the turn has ended in this state with this answer: its end was written although no reply came."""

GET: LiteralString = f"""
SELECT t.id, t.conversation_id, t.status, t.user_message_id, t.assistant_message_id, m.content AS answer,
       t.route_decision, t.usage, t.timings, t.degraded, t.context_report, t.error,
       coalesce(t.memory_changes, '[]') AS memory_changes, t.started_at, t.finished_at, ({OF_TURN}) AS feedback,
       ({NAMES_OF_TURN}) AS experiments, t.request->'echo' AS echo
FROM turns t LEFT JOIN messages m ON m.id = t.assistant_message_id
WHERE t.id = %(turn_id)s AND t.tenant_id = %(tenant_id)s
  AND (%(user_id)s::text IS NULL OR %(user_id)s = (
      SELECT u.external_id FROM conversations c JOIN users u ON u.id = c.user_id WHERE c.id = t.conversation_id
  ))
"""  # noqa: S608 — our own text only
"""One turn with its answer and feedback, for its user or, without a user, for the tenant."""

UNDER_WAY: LiteralString = """
SELECT t.id FROM users u
JOIN conversations c ON c.user_id = u.id AND c.tenant_id = u.tenant_id JOIN experts x ON x.id = c.expert_id
JOIN turns t ON t.conversation_id = c.id AND t.tenant_id = u.tenant_id
WHERE u.tenant_id = %(tenant_id)s AND u.external_id = %(user)s
  AND c.session_key IN (%(session)s, %(session)s || ':' || x.name) AND t.status IN ('waiting', 'running')
ORDER BY t.accepted_at DESC, t.id DESC LIMIT 1
"""
"""The newest unfinished turn of a client's chat.

If several experts answer in one chat, each has a separate conversation, named after both.
"""

ALL: LiteralString = f"""
SELECT t.id, t.conversation_id, {SHOWN_TITLE} AS title, u.external_id AS user_id, e.name AS expert,
       t.status, t.route_decision, t.usage, t.timings, t.degraded, t.error, t.accepted_at, t.started_at,
       t.finished_at, ({OF_TURN}) AS feedback
FROM turns t JOIN conversations c ON c.id = t.conversation_id JOIN users u ON u.id = c.user_id
JOIN experts e ON e.id = c.expert_id
WHERE t.tenant_id = %(tenant_id)s
  AND (%(user)s::text IS NULL OR t.conversation_id IN (
      SELECT o.id FROM conversations o JOIN users p ON p.id = o.user_id
      WHERE p.tenant_id = %(tenant_id)s AND p.external_id = %(user)s))
  AND (%(status)s::text IS NULL OR t.status = %(status)s)
  AND (%(after_at)s::timestamptz IS NULL OR (t.accepted_at, t.id) < (%(after_at)s, %(after_id)s::uuid))
ORDER BY t.accepted_at DESC, t.id DESC LIMIT %(limit)s
"""  # noqa: S608 — our own text only
"""A page of a tenant's turns, the newest first."""

PAGE: LiteralString = f"""
SELECT t.id, t.status, t.user_message_id, t.assistant_message_id, t.route_decision, t.usage, t.timings, t.degraded,
       coalesce(t.context_report->'sources', '[]') AS sources, coalesce(t.memory_changes, '[]') AS memory_changes,
       t.error, t.accepted_at, t.started_at, t.finished_at, ({OF_TURN}) AS feedback,
       ({NAMES_OF_TURN}) AS experiments,
       (SELECT m.branch_id FROM messages m WHERE m.id = t.user_message_id) AS branch_id
FROM turns t
WHERE t.conversation_id = %(conversation_id)s AND t.tenant_id = %(tenant_id)s
  AND (%(after_at)s::timestamptz IS NULL OR (t.accepted_at, t.id) > (%(after_at)s, %(after_id)s::uuid))
ORDER BY t.accepted_at, t.id LIMIT %(limit)s
"""  # noqa: S608 — our own text only
"""A page of a conversation's turns, the oldest first."""
