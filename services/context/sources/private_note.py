"""The expert's private note on its last answer to the user, shown in its own next prompt."""

from collections.abc import Sequence
from typing import LiteralString

from psycopg.rows import tuple_row

from services.context.source import Known, PromptTurn, Source
from services.context.wording import MEMORY, readable, tagged
from services.platform.postgres import Database
from services.text.language import Language
from state.section import Item, Section

_PRIORITY = 35
_HEADING: dict[Language, str] = {
    "en": "Your private note after the last answer; let it guide you, and never quote or mention it:",
    "zh": "你上次回答之后的私人笔记；可以据此行事，但不要引用或提起：",
}

# The newest answer of each conversation is found in the index.
_NEWEST: LiteralString = """
SELECT m.private_note FROM experts x
JOIN conversations c ON c.expert_id = x.id AND c.tenant_id = x.tenant_id AND c.user_id = %(user_id)s
    AND (c.space_id IS NULL OR c.space_id = %(space_id)s)
CROSS JOIN LATERAL (
    SELECT a.private_note, a.created_at FROM messages a
    WHERE a.conversation_id = c.id AND a.tenant_id = x.tenant_id AND a.role = 'assistant' AND a.completed
      AND a.retracted_at IS NULL AND a.branch_id IS NULL
    ORDER BY a.created_at DESC, a.id DESC LIMIT 1
) AS m
WHERE x.id = %(expert_id)s AND x.tenant_id = %(tenant_id)s AND x.reflection AND m.private_note IS NOT NULL
ORDER BY m.created_at DESC LIMIT 1
"""


class PrivateNoteSource(Source[dict[str, str]]):
    """Shows the newest reflection of this expert on this user."""

    name = "private_note"

    def __init__(self, database: Database) -> None:
        self._database = database

    def is_on(self, turn: PromptTurn) -> bool:
        """Whether the expert reflects."""
        return turn.reflects

    async def load(self, turn: PromptTurn) -> dict[str, str] | None:
        """The note; None = there is none."""
        rows = await self._database.fetch(turn.owner.tenant_id, _NEWEST, vars(turn.owner), tuple_row)
        return rows[0][0] if rows else None

    def select(self, turn: PromptTurn, known: Known) -> Sequence[Section]:
        """Return the note; nothing if the message asks memory to change: the note may contain what is to go."""
        note = known.of(PrivateNoteSource)
        if not note or turn.memory_plan:
            return ()
        language = known.conversation.language
        lines = "\n".join(f"- {name}: {readable(text, language)}" for name, text in note.items())
        text = f"{_HEADING[language]}\n{tagged(MEMORY, lines)}"
        return (Section("private_note", items=[Item(text)], priority=_PRIORITY),)
