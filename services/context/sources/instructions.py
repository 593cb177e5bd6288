"""Instructions for the model: of the expert and the application, rules of memory, a private note."""

from collections.abc import Sequence
from typing import LiteralString

from psycopg.rows import tuple_row

from services.context.source import APPLICATION, DOCUMENTS, MEMORY, PromptDraft, Source, inert, readable, tagged
from services.llm.rules import DATA, MISSING, REMEMBERS, SEARCHES, TEMPORARY
from services.platform.postgres import Database
from services.text.language import Language
from state.section import Item, Section

_TOOLS: dict[Language, str] = {
    "en": "Asked to remember, correct, forget or leave out something, call the memory tool at once, unless the "
    "context says that it is done and right; confirm briefly.",
    "zh": "用户要你记住、更正、忘掉或不记什么，立即调用记忆工具，并简短确认。上文已注明办妥且无误的，不必再调用。",
}

_PRIORITY_OF_ATTACHED = 45
_INSTRUCTIONS: dict[Language, str] = {
    "en": "The application in which the user writes instructs you as follows; the rules above come first.",
    "zh": "用户所用的应用有以下指示；与上面的规则冲突时，以上面的为准。",
}
_ATTACHED: dict[Language, str] = {
    "en": "The application attached this to the message:",
    "zh": "应用在这条消息里附上了以下内容：",
}

_ATTACHED_CUT: dict[Language, str] = {
    "en": "The application attached {of} characters to the message. They do not fit in: below are the passages "
    "nearest to the question, with […] for what is left out. Where the answer is not in them, say that you have "
    "read only a part.",
    "zh": "应用在这条消息里附上了 {of} 个字符，放不下；下面只有与问题最接近的段落，[…] 表示略去的部分。"
    "如果其中没有答案，请说明你只读到一部分。",
}

_PRIORITY_OF_NOTE = 35
_NOTES: dict[str, str] = {"thoughts": "想法", "feeling": "感受", "intention": "打算"}
"""The parts of a note in Chinese prompts."""
_HEADING: dict[Language, str] = {
    "en": "Your private note after the last answer; let it guide you, and never quote or mention it:",
    "zh": "你上次回答之后的私人笔记；可以据此行事，但不要引用或提起：",
}

# The newest answer of each conversation is found by an index of PostgreSQL.
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


class SystemSource(Source[None]):
    """Shows what the expert's operator wrote, and the rules of memory."""

    name = "system"

    def select(self, draft: PromptDraft) -> Sequence[Section]:
        """Return the expert's instructions first; the expert `default` initially has none."""
        return (Section("system", system_text(draft, draft.language), stable=True),)


def system_text(draft: PromptDraft, language: Language) -> str:
    """The system prompt, the same on every turn of a conversation."""
    return prompt_of(
        draft.turn.system_prompt.strip(),
        language,
        remembers=bool(draft.features & {"core_memory", "recall"}),
        tools=bool(draft.tools),
        temporary=not draft.turn.stored,
        searches=searches(draft),
    )


def prompt_of(
    instructions: str,
    language: Language,
    *,
    remembers: bool,
    tools: bool,
    temporary: bool = False,
    searches: bool = True,
) -> str:
    """An expert's instructions with the rules that follow them."""
    rules = rules_text(language, remembers=remembers, tools=tools, temporary=temporary, searches=searches)
    return f"{instructions}\n\n{rules}" if instructions else rules


def searches(draft: PromptDraft) -> bool:
    """Return whether the model can search memory, which is told to it before it says that it does not know."""
    return bool(draft.tools) and "recall" in draft.features


def rules_text(
    language: Language, *, remembers: bool, tools: bool, temporary: bool = False, searches: bool = True
) -> str:
    """Return the rules: how to use memory and, with tools, to search and keep it; and what not to obey."""
    missing = SEARCHES if tools and searches else MISSING
    rules = [REMEMBERS[language], missing[language]] if remembers else []
    if temporary:
        rules.append(TEMPORARY[language])
    elif remembers and tools:
        rules.append(_TOOLS[language])
    return (" " if language == "en" else "").join([*rules, DATA[language]])


class ClientSource(Source[None]):
    """Shows what the client's application sent besides the user's own words."""

    name = "client"

    def select(self, draft: PromptDraft) -> Sequence[Section]:
        """Put instructions into the shared beginning, attachments with a budget of their own into the tail."""
        asked, language = draft.turn.input, draft.language
        sections = []
        for name in asked.get("cut", {}):
            draft.went_without(name)
        if instructions := asked.get("instructions"):
            text = f"{_INSTRUCTIONS[language]}\n{tagged(APPLICATION, inert(instructions))}"
            sections.append(Section("instructions", text, stable=True))
        if attached := asked.get("attached"):
            items = [Item(inert(text)) for text in attached]
            cut = _ATTACHED_CUT[language].format(of=of) if (of := asked.get("cut", {}).get("attached")) else ""
            heading = f"{cut or _ATTACHED[language]}\n<{DOCUMENTS}>"
            draft.budget += sum(draft.tokens.count(item.text) for item in items) + draft.tokens.count(heading)
            sections.append(Section("attached", heading, items, f"</{DOCUMENTS}>", priority=_PRIORITY_OF_ATTACHED))
        return sections


class PrivateNoteSource(Source[dict[str, str]]):
    """Shows the newest reflection of this expert on this user."""

    name = "private_note"

    def __init__(self, database: Database) -> None:
        self._database = database

    def is_on(self, draft: PromptDraft) -> bool:
        """Whether the expert reflects."""
        return draft.turn.reflects

    async def load(self, draft: PromptDraft) -> dict[str, str] | None:
        """The note; None = there is none."""
        rows = await self._database.fetch(draft.turn.tenant_id, _NEWEST, vars(draft.owner), tuple_row)
        return rows[0][0] if rows else None

    def select(self, draft: PromptDraft) -> Sequence[Section]:
        """Return the note; nothing if the message asks memory to change: the note may contain what is to go."""
        note = draft.of(PrivateNoteSource)
        if not note or draft.memory_plan:
            return ()
        language = draft.language
        names = _NOTES if language == "zh" else {}
        told = ((names.get(name, name), readable(text, language)) for name, text in note.items())
        lines = "\n".join(f"- {name}{'：' if language == 'zh' else ': '}{text}" for name, text in told)
        text = f"{_HEADING[language]}\n{tagged(MEMORY, lines)}"
        return (Section("private_note", items=[Item(text)], priority=_PRIORITY_OF_NOTE),)
