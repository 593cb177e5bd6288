"""Stores imported messages and the episodes of their exchanges in the caller's transaction."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import LiteralString
from uuid import UUID

from services.conversations.turn import TURN_IMPORTANCE
from services.encryption.marks import Words, WordsDigest, WordsInJson, WordsJson, words
from services.platform.patience import beside_the_loop
from services.text.secrets import without_secrets
from services.transfer.messages import Exchange, ImportedMessage, stored_key
from services.transfer.owners import BatchStatements, Row, digest_of_line, given, insert

_IN_A_STEP = 100_000
"""Maximum characters whose digests are made in one step of the event loop."""

# A message of a turn has no key. When an export comes back, it is recognised by the client's id, or by its time,
# role and content.
_KNOWN: LiteralString = f"""
SELECT g.number, g.place, imported.found OR named.found, said.content, said.digest
FROM {given(number="bigint", conversation_id="uuid", key="text", at="timestamptz", role="text")}
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
"""  # noqa: S608 — our own text only

# The turn whose last message comes directly before an answer.
_ANSWERED: LiteralString = f"""
SELECT g.number, before.turn_id
FROM {given(number="bigint", conversation_id="uuid", at="timestamptz")}
CROSS JOIN LATERAL (
    SELECT m.id, m.turn_id FROM messages m WHERE m.conversation_id = g.conversation_id AND m.created_at <= g.at
    ORDER BY m.created_at DESC, m.id DESC LIMIT 1
) AS before
JOIN episodes e ON e.id = before.turn_id
    AND e.source_message_ids[array_upper(e.source_message_ids, 1)] = before.id
"""  # noqa: S608 — our own text only

_ADD = insert(
    "messages",
    id="uuid", conversation_id="uuid", turn_id="uuid", role="text", content="text", parts="jsonb",
    completed="boolean", token_count="integer", created_at="timestamptz", external_id="text", speaker="text",  # noqa: S106
    import_key="text", retracted_at="timestamptz", memory_text="text", off_record="boolean", digest="bytea",
    branch_id="uuid", origin="foreign_origin",
)  # fmt: skip

_ADD_BRANCHES = insert(
    "conversation_branches", "ON CONFLICT (id, tenant_id) DO NOTHING",
    id="uuid", conversation_id="uuid", reason="text", created_at="timestamptz",
)  # fmt: skip

# A branch follows what was said before its first message.
_PLACE_BRANCHES: LiteralString = """
UPDATE conversation_branches b SET after_turn_id = (
    SELECT m.turn_id FROM messages m
    WHERE m.conversation_id = b.conversation_id AND m.branch_id IS NULL AND (m.created_at, m.id) < (
        SELECT f.created_at, f.id FROM messages f WHERE f.branch_id = b.id ORDER BY f.created_at, f.id LIMIT 1)
    ORDER BY m.created_at DESC, m.id DESC LIMIT 1
)
WHERE b.id = ANY(%(ids)s) AND b.tenant_id = %(tenant_id)s
"""

_ADD_FEEDBACK: LiteralString = f"""
INSERT INTO feedback (message_id, tenant_id, rating, comment, tags, updated_at)
SELECT g.message_id, %(tenant_id)s, g.rating, g.comment, ARRAY(SELECT jsonb_array_elements_text(g.tags)), g.at
FROM {given(message_id="uuid", rating="smallint", comment="text", tags="jsonb", at="timestamptz")}
"""  # noqa: S608 — our own text only

# The sources come as text, because an array of arrays must be rectangular.
_EPISODES: LiteralString = f"""
INSERT INTO episodes AS e (id, tenant_id, user_id, expert_id, space_id, conversation_id, episode_type, importance,
    origin, source_message_ids, created_at, pinned_at)
SELECT g.id, %(tenant_id)s, c.user_id, c.expert_id, c.space_id, c.id, 'turn', %(importance)s, g.origin,
    g.sources::uuid[], g.at, CASE WHEN g.pinned THEN now() END
FROM {given(id="uuid", conversation_id="uuid", origin="text", sources="text", at="timestamptz", pinned="boolean")}
JOIN conversations c ON c.id = g.conversation_id
ON CONFLICT (id, tenant_id) DO UPDATE SET
    source_message_ids = e.source_message_ids || EXCLUDED.source_message_ids, indexed_at = NULL,
    pinned_at = coalesce(e.pinned_at, EXCLUDED.pinned_at)
"""  # noqa: S608 — our own text only

# Conversations that may need a job; the job finds out what is due.
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
        """Return the line numbers of messages that are already stored."""
        rows = [
            {
                "number": each.number,
                "conversation_id": each.conversation_id,
                "key": stored_key(each.key),
                "at": each.at,
                "role": each.line.role,
            }
            for each in messages
        ]
        # The texts of that moment are compared here, because the database may hold them encrypted. For words that
        # were forgotten for good only the digest is left.
        return {
            number
            for number, place, found, said, digest in await self._run(_KNOWN, rows)
            if found or said == (line := messages[place - 1].line).content or digest == digest_of_line(line)
        }

    async def add(self, exchanges: Sequence[Exchange], *, episodes: bool) -> None:
        """Store exchanges; with `episodes`, each becomes an episode or extends the episode that it answers."""
        await self._find_answered([each for each in exchanges if each.begins_with_answer])
        pairs = [(message, each.turn_id) for each in exchanges for message in each.messages]
        pairs.sort(key=lambda pair: pair[0].id)
        characters = sum(len(message.line.content) for message, _ in pairs)
        characters += sum(len(part.image_url.url) for message, _ in pairs for part in message.line.parts)
        rows = await beside_the_loop(partial(_rows, pairs), characters=characters, most=_IN_A_STEP)
        began = datetime.now(UTC)
        branches = [
            {
                "id": message.branch_id,
                "conversation_id": message.conversation_id,
                "reason": "edit",
                "created_at": began + timedelta(microseconds=branch),
            }
            for message, _ in pairs
            if (branch := message.line.branch)
        ]
        await self._run(_ADD_BRANCHES, branches)
        await self._run(_ADD, rows)
        await self._run(_PLACE_BRANCHES, branches)
        await self._add_feedback([message for message, _ in pairs])
        if episodes:
            await self._add_episodes([each for each in exchanges if each.complete])

    async def behind(
        self, conversation_ids: Sequence[UUID], *, enough: int, soon: float
    ) -> list[tuple[UUID, str]]:
        """Return the conversations that may need a job, each with its strategy.

        Args:
            conversation_ids: Conversations that received messages.
            enough: Number of messages from which a conversation has a summary.
            soon: Share of a full prompt from which topics are archived.
        """
        rows = [{"conversation_id": each} for each in conversation_ids]
        behind = await self._run(_WORK, rows, enough=enough, soon=soon, many=_WEIGHED)
        return [(conversation_id, strategy) for conversation_id, strategy in behind]

    async def _find_answered(self, exchanges: Sequence[Exchange]) -> None:
        firsts = {each.messages[0].number: each for each in exchanges}
        rows = [
            {"number": first.number, "conversation_id": first.conversation_id, "at": first.at}
            for first in (each.messages[0] for each in exchanges)
        ]
        taken: set[UUID] = set()  # several exchanges may be of the same moment
        for number, turn_id in await self._run(_ANSWERED, rows):
            if turn_id not in taken:
                firsts[number].turn_id = turn_id
                taken.add(turn_id)

    async def _add_feedback(self, messages: Sequence[ImportedMessage]) -> None:
        rated = [(each, each.line.feedback) for each in messages if each.line.feedback and not each.deleted]
        rows = [
            {
                "message_id": message.id,
                "conversation_id": message.conversation_id,
                "rating": 1 if given.rating == "up" else -1,
                "comment": words(given.comment),
                "tags": WordsInJson(given.tags),
                "at": given.updated_at or datetime.now(UTC),
            }
            for message, given in rated
        ]
        await self._run(_ADD_FEEDBACK, rows)

    async def _add_episodes(self, exchanges: Sequence[Exchange]) -> None:
        rows = [
            {
                "id": each.turn_id,
                "conversation_id": each.complete[0].conversation_id,
                "origin": ("user_said" if any(m.line.role == "user" for m in each.complete) else "assistant_said"),
                "sources": "{" + ",".join(str(m.id) for m in each.complete) + "}",
                "at": each.complete[0].at,
                "pinned": any(m.line.pinned for m in each.complete),
            }
            for each in exchanges
        ]
        await self._run(_EPISODES, rows, importance=TURN_IMPORTANCE)


def _rows(pairs: Sequence[tuple[ImportedMessage, UUID]]) -> list[Row]:
    """Return the rows of messages, each with the id of its turn."""
    now = datetime.now(UTC)
    return [
        {
            "id": message.id,
            "conversation_id": message.conversation_id,
            "turn_id": turn_id,
            "content": Words(message.content),
            "parts": WordsJson(message.parts),
            "role": line.role,
            "completed": line.completed,
            "external_id": line.external_id,
            "token_count": message.token_count,
            "created_at": message.at,
            "speaker": None if message.deleted else words(line.speaker),
            "import_key": stored_key(message.key),
            "retracted_at": now if line.retracted else None,
            "memory_text": None if message.deleted else words(line.memory_text),
            "off_record": _is_in_conversation(message),
            "digest": WordsDigest(digest_of_line(line)),
            "branch_id": message.branch_id,
            "origin": "import",
        }
        for message, turn_id in pairs
        for line in [message.line]
    ]


def _is_in_conversation(message: ImportedMessage) -> bool:
    """Return whether its conversation shows the whole of a message that memory keeps without its secrets."""
    kept = message.line.memory_text
    return kept is not None and not message.deleted and kept == without_secrets(message.line.content)
