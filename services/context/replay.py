"""Reconstructs the prompt of a past turn from what is stored of it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, LiteralString
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from psycopg.rows import class_row

from services.context.assemble import digest_of, volatile_message
from services.context.sources.history import MOST_IMAGE_CHARACTERS, PARTS_THAT_FIT, user_message, without_images
from services.errors import Conflict, InvalidInput, NotFound
from services.platform.postgres import Database
from state.prompt import PromptSection

_TURN: LiteralString = """
SELECT t.id AS turn_id, t.conversation_id, u.external_id AS user_id, x.name AS expert, x.model, s.name AS space,
       q.id AS question_id, q.content AS question, q.parts AS question_parts,
       a.id AS answer_id, a.content AS answer, t.usage, t.timings, t.finished_at, t.prompt,
       t.context_report ->> 'digest' AS digest,
       coalesce(t.context_report -> 'recall' -> 'shown', '[]') AS recalled
FROM turns t JOIN conversations c ON c.id = t.conversation_id JOIN users u ON u.id = c.user_id
JOIN experts x ON x.id = c.expert_id JOIN messages q ON q.id = t.user_message_id
LEFT JOIN messages a ON a.id = t.assistant_message_id LEFT JOIN spaces s ON s.id = c.space_id
WHERE t.id = %(turn_id)s AND t.tenant_id = %(tenant_id)s
  AND (%(user_id)s::text IS NULL OR u.external_id = %(user_id)s)
"""

_SHOWN: LiteralString = """
SELECT id, role, CASE WHEN off_record THEN content ELSE coalesce(memory_text, content) END AS content, {parts}
FROM messages
WHERE tenant_id = %(tenant_id)s AND id = ANY(%(message_ids)s::uuid[])
""".replace("{parts}", PARTS_THAT_FIT)

_SAID_BEFORE: LiteralString = """
SELECT id, role, CASE WHEN off_record THEN content ELSE coalesce(memory_text, content) END AS content, {parts}
FROM (
    SELECT m.* FROM messages m, (SELECT created_at, id, branch_id FROM messages WHERE id = %(question_id)s) AS q
    WHERE m.conversation_id = %(conversation_id)s AND m.tenant_id = %(tenant_id)s AND m.completed
      AND m.retracted_at IS NULL AND (m.branch_id IS NULL OR m.branch_id = q.branch_id)
      AND (m.created_at, m.id) < (q.created_at, q.id)
    ORDER BY m.created_at DESC, m.id DESC LIMIT %(limit)s
) AS shown ORDER BY created_at DESC, id DESC
""".replace("{parts}", PARTS_THAT_FIT)


@dataclass(frozen=True)
class SaidMessage:
    """A message of the conversation, as prompts show it."""

    id: UUID
    role: Literal["user", "assistant"]
    content: str
    parts: Sequence[Mapping[str, Any]] | None
    """Images as OpenAI content parts; None = left out, as too large together with newer ones."""

    @property
    def images(self) -> list[str]:
        """Addresses or data URLs of its images."""
        return [part["image_url"]["url"] for part in self.parts or () if part.get("type") == "image_url"]

    def as_sent(self) -> BaseMessage:
        """As a message of the prompt."""
        if self.parts is None:
            return user_message(without_images(self.content), ())
        parts = [dict(part) for part in self.parts]
        return user_message(self.content, parts) if self.role == "user" else AIMessage(self.content)


@dataclass(frozen=True)
class PastTurn:
    """An ended turn, and what is stored of its prompt."""

    turn_id: UUID
    conversation_id: UUID
    user_id: str
    """The caller's own name for the user."""
    expert: str
    model: str | None
    """The expert's model today; None = the configured one."""
    space: str | None
    question_id: UUID
    question: str
    question_parts: Sequence[Mapping[str, Any]]
    answer_id: UUID | None
    answer: str | None
    usage: Any
    timings: Any
    finished_at: Any
    prompt: Sequence[PromptSection] | None
    digest: str | None
    """Digest of the messages as they were first sent to the model."""
    recalled: Sequence[str]
    """Ids of the episodes that the prompt showed."""

    @property
    def message(self) -> SaidMessage:
        """The user's message."""
        return SaidMessage(self.question_id, "user", self.question, self.question_parts or ())


@dataclass(frozen=True)
class PastPrompt:
    """A prompt as it was sent, or without some of its sections."""

    sections: Sequence[PromptSection]
    """Sections in order, with the texts of the conversation's own messages."""
    messages: Sequence[BaseMessage]
    digest: str
    same: bool
    """Whether it is byte for byte what the model was sent."""


class PastPrompts:
    """Reads past turns and reconstructs their prompts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def turn(self, tenant_id: UUID, turn_id: UUID, *, user_id: str | None = None) -> PastTurn:
        """A turn of any user, or only when it is this one's. Raises `NotFound` if the tenant, or the user, has
        no such turn, and `Conflict` if the turn has not ended."""
        values = {"tenant_id": tenant_id, "turn_id": turn_id, "user_id": user_id}
        found = await self._database.fetch(tenant_id, _TURN, values, class_row(PastTurn))
        if not found:
            raise NotFound(f"There is no turn {turn_id}.")
        if found[0].finished_at is None:
            raise Conflict("The turn has not ended.")
        return found[0]

    async def prompt_of(self, tenant_id: UUID, turn: PastTurn, *, without: Collection[str] = ()) -> PastPrompt:
        """The prompt that the model was first sent in the turn, without the named sections. Raises `Conflict`
        if no model was asked, or the text of the prompt was withdrawn because memory has lost something since
        that it may show, and `InvalidInput` if the prompt has no section of such a name."""
        if turn.prompt is None or not turn.digest:
            raise Conflict(
                "The prompt of this turn is not kept: no model was asked, or something was forgotten since."
            )
        names = [section["name"] for section in turn.prompt]
        if unknown := sorted(set(without) - set(names)):
            raise InvalidInput(
                "without_sections", f"the prompt has no section {unknown[0]!r}; it has {', '.join(names)}"
            )
        said = await self._shown(tenant_id, turn.prompt)
        if said is None:
            raise Conflict("The prompt of this turn is not kept: messages that it shows were removed.")
        sections = [section for section in turn.prompt if section["name"] not in without]
        beginning: list[BaseMessage] = []
        for section in sections:
            if section["stable"] and section["text"]:
                beginning.append(SystemMessage(section["text"]))
            beginning += [said[message_id].as_sent() for message_id in section["message_ids"]]
        tail = volatile_message(section["text"] for section in sections if not section["stable"])
        messages = [*beginning, *tail, turn.message.as_sent()]
        digest = digest_of(messages)
        return PastPrompt(
            sections=[_with_messages(section, said) for section in sections],
            messages=messages,
            digest=digest,
            same=digest == turn.digest,
        )

    async def sections_of(self, tenant_id: UUID, turn: PastTurn) -> list[PromptSection] | None:
        """The sections of the prompt in order, with the conversation's own messages; None where none are kept."""
        if turn.prompt is None:
            return None
        said = await self._shown(tenant_id, turn.prompt)
        return None if said is None else [_with_messages(section, said) for section in turn.prompt]

    async def said_before(self, tenant_id: UUID, turn: PastTurn, *, limit: int) -> list[SaidMessage]:
        """The newest messages of the conversation before the turn, oldest first."""
        values = {
            "tenant_id": tenant_id,
            "conversation_id": turn.conversation_id,
            "question_id": turn.question_id,
            "limit": limit,
            "most_image_characters": MOST_IMAGE_CHARACTERS,
        }
        return list(reversed(await self._database.fetch(tenant_id, _SAID_BEFORE, values, class_row(SaidMessage))))

    async def _shown(self, tenant_id: UUID, prompt: Sequence[PromptSection]) -> dict[str, SaidMessage] | None:
        """The messages of the conversation in the prompt; None where one of them was removed."""
        message_ids = [message_id for section in prompt for message_id in section["message_ids"]]
        if not message_ids:
            return {}
        values = {
            "tenant_id": tenant_id,
            "message_ids": message_ids,
            "most_image_characters": MOST_IMAGE_CHARACTERS,
        }
        rows = await self._database.fetch(tenant_id, _SHOWN, values, class_row(SaidMessage))
        found = {str(row.id): row for row in rows}
        return found if all(message_id in found for message_id in message_ids) else None


def _with_messages(section: PromptSection, said: Mapping[str, SaidMessage]) -> PromptSection:
    if not section["message_ids"]:
        return section
    shown = [said[message_id] for message_id in section["message_ids"]]
    return {**section, "text": "\n\n".join(f"{each.role}: {each.content}" for each in shown)}
