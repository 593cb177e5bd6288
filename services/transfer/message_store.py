"""Imported messages and the episodes of their exchanges, within the caller's transaction."""

from collections.abc import Sequence
from functools import partial
from typing import Any, LiteralString
from uuid import UUID

from services.conversations.turn import TURN_IMPORTANCE
from services.encryption.marks import Words, WordsDigest, WordsInJson, WordsJson, all_words
from services.platform.patience import beside_the_loop
from services.text.secrets import without_secrets
from services.transfer.messages import Exchange, ImportedMessage, stored_key
from services.transfer.owners import BatchStatements, digest_of_line

_IN_A_STEP = 100_000
"""Characters whose digests are made in one step of the event loop."""

# A message of a turn has no key: it is known by the client's id, or by its time, role and content, when an export
# comes back.
_KNOWN: LiteralString = """
SELECT g.number, g.place, imported.found OR named.found, said.content, said.digest
FROM unnest(%(numbers)s::bigint[], %(conversation_ids)s::uuid[], %(keys)s::text[], %(ats)s::timestamptz[],
            %(roles)s::text[]) WITH ORDINALITY AS g (number, conversation_id, key, at, role, place)
LEFT JOIN LATERAL (
    SELECT true AS found FROM messages m
    WHERE m.conversation_id = g.conversation_id AND m.import_key = g.key LIMIT 1
) AS imported ON true
LEFT JOIN LATERAL (
    SELECT m.content, m.digest FROM messages m
    WHERE m.conversation_id = g.conversation_id AND m.created_at = g.at AND m.role = g.role
      AND m.import_key IS NULL
) AS said ON g.key LIKE 'sha256:%%'
LEFT JOIN LATERAL (
    SELECT true AS found FROM messages m
    WHERE m.conversation_id = g.conversation_id AND m.external_id = substr(g.key, length('external:') + 1)
      AND m.role = g.role LIMIT 1
) AS named ON g.key LIKE 'external:%%'
WHERE imported.found OR said.content IS NOT NULL OR named.found
"""

# The turn whose last message comes right before an answer.
_ANSWERED: LiteralString = """
SELECT g.number, before.turn_id
FROM unnest(%(numbers)s::bigint[], %(conversation_ids)s::uuid[], %(ats)s::timestamptz[])
    AS g (number, conversation_id, at)
CROSS JOIN LATERAL (
    SELECT m.id, m.turn_id FROM messages m WHERE m.conversation_id = g.conversation_id AND m.created_at <= g.at
    ORDER BY m.created_at DESC, m.id DESC LIMIT 1
) AS before
JOIN episodes e ON e.id = before.turn_id
    AND e.source_message_ids[array_upper(e.source_message_ids, 1)] = before.id
"""

_ADD: LiteralString = """
INSERT INTO messages (id, tenant_id, conversation_id, turn_id, role, content, parts, completed, token_count,
    created_at, external_id, speaker, import_key, retracted_at, memory_text, off_record, digest,
    branch_id, origin)
SELECT g.id, %(tenant_id)s, g.conversation_id, g.turn_id, g.role, g.content, g.parts, g.completed, g.token_count,
    g.at, g.external_id, g.speaker, g.key, CASE WHEN g.retracted THEN clock_timestamp() END, g.memory_text,
    g.off_record, g.digest, g.branch_id, 'import'
FROM unnest(%(ids)s::uuid[], %(conversation_ids)s::uuid[], %(turn_ids)s::uuid[], %(roles)s::text[],
            %(contents)s::text[], %(parts)s::jsonb[], %(completed)s::boolean[], %(token_counts)s::integer[],
            %(ats)s::timestamptz[], %(external_ids)s::text[], %(speakers)s::text[], %(keys)s::text[],
            %(retracted)s::boolean[], %(memory_texts)s::text[], %(off_record)s::boolean[],
            %(message_digests)s::bytea[], %(branch_ids)s::uuid[])
    AS g (id, conversation_id, turn_id, role, content, parts, completed, token_count, at, external_id, speaker,
          key, retracted, memory_text, off_record, digest, branch_id)
"""

_ADD_BRANCHES: LiteralString = """
INSERT INTO conversation_branches (id, tenant_id, conversation_id, reason, created_at)
SELECT g.id, %(tenant_id)s, g.conversation_id, 'edit', now() + g.number * interval '1 microsecond'
FROM unnest(%(branch_ids)s::uuid[], %(conversation_ids)s::uuid[], %(numbers)s::integer[])
    AS g (id, conversation_id, number)
ON CONFLICT (id, tenant_id) DO NOTHING
"""

# A branch follows what was said before its first message.
_PLACE_BRANCHES: LiteralString = """
UPDATE conversation_branches b SET after_turn_id = (
    SELECT m.turn_id FROM messages m
    WHERE m.conversation_id = b.conversation_id AND m.branch_id IS NULL AND (m.created_at, m.id) < (
        SELECT f.created_at, f.id FROM messages f WHERE f.branch_id = b.id ORDER BY f.created_at, f.id LIMIT 1)
    ORDER BY m.created_at DESC, m.id DESC LIMIT 1
)
WHERE b.id = ANY(%(branch_ids)s) AND b.tenant_id = %(tenant_id)s
"""

_ADD_FEEDBACK: LiteralString = """
INSERT INTO feedback (message_id, tenant_id, rating, comment, tags, updated_at)
SELECT g.message_id, %(tenant_id)s, g.rating, g.comment,
       ARRAY(SELECT jsonb_array_elements_text(g.tags)), coalesce(g.at, clock_timestamp())
FROM unnest(%(message_ids)s::uuid[], %(ratings)s::smallint[], %(comments)s::text[], %(tags)s::jsonb[],
            %(ats)s::timestamptz[]) AS g (message_id, rating, comment, tags, at)
"""

# An array of arrays would have to be rectangular: the sources come as text.
_EPISODES: LiteralString = """
INSERT INTO episodes AS e (id, tenant_id, user_id, expert_id, space_id, conversation_id, episode_type, importance,
    origin, source_message_ids, created_at, pinned_at)
SELECT g.id, %(tenant_id)s, c.user_id, c.expert_id, c.space_id, c.id, 'turn', %(importance)s, g.origin,
    g.sources::uuid[], g.at, CASE WHEN g.pinned THEN now() END
FROM unnest(%(ids)s::uuid[], %(conversation_ids)s::uuid[], %(origins)s::text[], %(sources)s::text[],
            %(ats)s::timestamptz[], %(pinned)s::boolean[]) AS g (id, conversation_id, origin, sources, at, pinned)
JOIN conversations c ON c.id = g.conversation_id
ON CONFLICT (id, tenant_id) DO UPDATE SET
    source_message_ids = e.source_message_ids || EXCLUDED.source_message_ids, indexed_at = NULL,
    pinned_at = coalesce(e.pinned_at, EXCLUDED.pinned_at)
"""

# Conversations that may be behind: the job finds out what of it is due.
_WORK: LiteralString = """
SELECT c.id, e.context_strategy FROM conversations c JOIN experts e ON e.id = c.expert_id
WHERE c.tenant_id = %(tenant_id)s AND c.id = ANY(%(conversation_ids)s) AND CASE e.context_strategy
    WHEN 'summary' THEN (SELECT count(*) >= %(enough)s FROM (
        SELECT FROM messages m WHERE m.conversation_id = c.id AND m.completed LIMIT %(enough)s
    ) AS counted)
    WHEN 'topics' THEN (SELECT sum(token_count) >= %(soon)s * e.context_threshold * e.context_window FROM (
        SELECT m.token_count FROM messages m
        WHERE m.conversation_id = c.id AND m.completed AND m.topic_id IS NULL
        ORDER BY m.created_at, m.id LIMIT %(many)s
    ) AS oldest)
    ELSE false END
ORDER BY c.id
"""
_WEIGHED = 2000


class ImportedMessages(BatchStatements):
    """Stores messages of one tenant."""

    async def known(self, messages: Sequence[ImportedMessage]) -> set[int]:
        """Line numbers of messages already stored."""
        values = {
            "numbers": [each.number for each in messages],
            "conversation_ids": [each.conversation_id for each in messages],
            "keys": [stored_key(each.key) for each in messages],
            "ats": [each.at for each in messages],
            "roles": [each.line.role for each in messages],
        }
        # What was said at that moment is compared here: in the database it may be encrypted. Of words that were
        # forgotten for good only the digest is left.
        return {
            number
            for number, place, found, said, digest in await self._rows(_KNOWN, values)
            if found or said == (line := messages[place - 1].line).content or digest == digest_of_line(line)
        }

    async def add(self, exchanges: Sequence[Exchange], *, episodes: bool) -> None:
        """Store exchanges; with `episodes`, each becomes an episode or extends the one it answers."""
        await self._find_answered([each for each in exchanges if each.begins_with_answer])
        pairs = [(message, each.turn_id) for each in exchanges for message in each.messages]
        pairs.sort(key=lambda pair: pair[0].id)
        characters = sum(len(message.line.content) for message, _ in pairs)
        characters += sum(len(part.image_url.url) for message, _ in pairs for part in message.line.parts)
        values = await beside_the_loop(partial(_columns, pairs), characters=characters, most=_IN_A_STEP)
        values["branch_ids"] = [message.branch_id for message, _ in pairs]
        on_branches = [message for message, _ in pairs if message.branch_id]
        branches = {
            "branch_ids": [message.branch_id for message in on_branches],
            "conversation_ids": [message.conversation_id for message in on_branches],
            "numbers": [message.line.branch for message in on_branches],
        }
        if on_branches:
            await self._run(_ADD_BRANCHES, branches)
        await self._run(_ADD, values)
        if on_branches:
            await self._run(_PLACE_BRANCHES, branches)
        await self._add_feedback([message for message, _ in pairs])
        if episodes:
            await self._add_episodes([each for each in exchanges if each.complete])

    async def behind(
        self, conversation_ids: Sequence[UUID], *, enough: int, soon: float
    ) -> list[tuple[UUID, str]]:
        """Conversations for which there may be work, each with its strategy.

        Args:
            conversation_ids: those that messages were added to.
            enough: messages with which a conversation has a summary.
            soon: share of a full prompt from which topics are archived.
        """
        values = {"conversation_ids": list(conversation_ids), "enough": enough, "soon": soon, "many": _WEIGHED}
        return [(conversation_id, strategy) for conversation_id, strategy in await self._rows(_WORK, values)]

    async def _find_answered(self, exchanges: Sequence[Exchange]) -> None:
        if not exchanges:
            return
        firsts = {each.messages[0].number: each for each in exchanges}
        values = {
            "numbers": list(firsts),
            "conversation_ids": [each.messages[0].conversation_id for each in exchanges],
            "ats": [each.messages[0].at for each in exchanges],
        }
        taken: set[UUID] = set()  # where many are of the same moment
        for number, turn_id in await self._rows(_ANSWERED, values):
            if turn_id not in taken:
                firsts[number].turn_id = turn_id
                taken.add(turn_id)

    async def _add_feedback(self, messages: Sequence[ImportedMessage]) -> None:
        rated = [(each, given) for each in messages if (given := each.line.feedback) and not each.deleted]
        if not rated:
            return
        values = {
            "message_ids": [message.id for message, _ in rated],
            "conversation_ids": [message.conversation_id for message, _ in rated],
            "ratings": [1 if given.rating == "up" else -1 for _, given in rated],
            "comments": all_words(given.comment for _, given in rated),
            "tags": [WordsInJson(given.tags) for _, given in rated],
            "ats": [given.updated_at for _, given in rated],
        }
        await self._run(_ADD_FEEDBACK, values)

    async def _add_episodes(self, exchanges: Sequence[Exchange]) -> None:
        values = {
            "ids": [each.turn_id for each in exchanges],
            "conversation_ids": [each.complete[0].conversation_id for each in exchanges],
            "origins": [
                "user_said" if any(m.line.role == "user" for m in each.complete) else "assistant_said"
                for each in exchanges
            ],
            "sources": ["{" + ",".join(str(m.id) for m in each.complete) + "}" for each in exchanges],
            "ats": [each.complete[0].at for each in exchanges],
            "pinned": [any(m.line.pinned for m in each.complete) for each in exchanges],
            "importance": TURN_IMPORTANCE,
        }
        await self._run(_EPISODES, values)


def _columns(pairs: Sequence[tuple[ImportedMessage, UUID]]) -> dict[str, Any]:
    """Return the columns of messages, each with the id of its turn."""
    return {
        "ids": [message.id for message, _ in pairs],
        "conversation_ids": [message.conversation_id for message, _ in pairs],
        "turn_ids": [turn_id for _, turn_id in pairs],
        "roles": [message.line.role for message, _ in pairs],
        "contents": [Words(message.content) for message, _ in pairs],
        "parts": [WordsJson(message.parts) for message, _ in pairs],
        "completed": [message.line.completed for message, _ in pairs],
        "token_counts": [message.token_count for message, _ in pairs],
        "ats": [message.at for message, _ in pairs],
        "external_ids": [message.line.external_id for message, _ in pairs],
        "speakers": all_words(None if message.deleted else message.line.speaker for message, _ in pairs),
        "keys": [stored_key(message.key) for message, _ in pairs],
        "retracted": [message.line.retracted for message, _ in pairs],
        "memory_texts": all_words(None if message.deleted else message.line.memory_text for message, _ in pairs),
        "off_record": [_is_in_conversation(message) for message, _ in pairs],
        "message_digests": [WordsDigest(digest_of_line(message.line)) for message, _ in pairs],
    }


def _is_in_conversation(message: ImportedMessage) -> bool:
    """Return whether its conversation shows the whole of a message that memory keeps without its secrets."""
    kept = message.line.memory_text
    return kept is not None and not message.deleted and kept == without_secrets(message.line.content)
