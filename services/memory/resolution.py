"""What a memory command is about: the statements, memories and items that it names, found by their words.

It only plans; `Retraction` carries the plan out in the transaction that ends the turn.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal
from uuid import UUID

from psycopg.rows import class_row, tuple_row
from uuid_utils.compat import uuid7

from services.errors import InvalidInput
from services.llm.language import Language
from services.memory import resolution_sql as sql
from services.memory.blocks import Owner
from services.memory.change_wording import previous_exchange, summary_of, this_message
from services.memory.clauses import statements
from services.memory.content import FIELD_LABELS, check_size
from services.memory.core import CoreMemory
from services.memory.items import ItemChange, apply_changes, item_text
from services.memory.mentions import Subject, known_in, statements_of, without, without_member, worth_keeping
from services.memory.substitution import Substitution, frame_of, substitute, value_terms
from services.memory.terms import informative_terms
from services.platform.postgres import Database
from state.memory import Command, MemoryChange, PlannedChange, PlannedItem, PlannedMessage, Recognised

SECTION = "human"
_FIELDS: dict[str, str] = {"remember": "facts", "standing": "wishes"}
_MOST_MENTIONS = 300
_ANYTHING = ["%"]
_RECENT = 8
_JUST_BEFORE = 2
"""Messages of the user to which a correction refers that names nothing."""
_LEAST_OF_REST = 2
"""Informative words beside a command that make its message worth keeping."""
_LONGEST_ITEM = 300


@dataclass(frozen=True)
class Stored:
    """A message or a written memory that may be meant."""

    kind: Literal["message", "episode"]
    id: UUID
    conversation_id: UUID | None
    turn_id: UUID | None
    role: Literal["user", "assistant"]
    content: str
    created_at: datetime


@dataclass(frozen=True)
class Asking:
    """The message with the commands."""

    owner: Owner
    conversation_id: UUID
    message_id: UUID
    message: str
    language: Language
    recognised: Recognised


@dataclass
class _Found:
    """What a command changes."""

    messages: dict[UUID, str | None] = field(default_factory=dict)
    episodes: list[UUID] = field(default_factory=list)
    items: list[PlannedItem] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    """What the user is told of it."""
    own: Literal["keep", "leave out", "off the record"] = "leave out"
    own_changes: bool = False
    """Whether leaving the turn out is a change by itself."""
    gives_away: str = ""

    def __bool__(self) -> bool:
        changes = self.messages or self.episodes or self.items or self.written or self.own_changes
        return bool(changes) or self.own == "off the record"


CoreContent = Mapping[str, Mapping[str, Any]]


class Resolution:
    """Finds what commands are about."""

    def __init__(self, database: Database, core: CoreMemory) -> None:
        self._database = database
        self._core = core

    async def plan(self, asking: Asking) -> list[PlannedChange]:
        """The changes that the plain commands of a message make; one that changes nothing has no operation.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        commands = asking.recognised.plain
        if not commands:
            return []
        core = {block.section: block.content for block in await self._core.read(asking.owner)}
        before = await self._before(asking)
        planned = []
        for command in commands:
            found = await self._resolve(command, asking, core, before)
            if not found and (command.needs_match or command.kind in {"correct", "remember", "standing"}):
                continue
            planned.append(_planned(command, found, asking))
        return _one_own(planned)

    async def named(
        self, asking: Asking, kind: Literal["forget", "correct"], target: str, new: str = ""
    ) -> PlannedChange:
        """The change for what a tool or an agent names.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        command = Command(kind, "stated", target=target, replacement=new)
        core = {block.section: block.content for block in await self._core.read(asking.owner)}
        found = await self._resolve(command, asking, core, await self._before(asking))
        return _planned(command, found, asking)

    async def _resolve(
        self, command: Command, asking: Asking, core: CoreContent, before: Sequence[Stored]
    ) -> _Found:
        if command.kind in {"remember", "standing"}:
            return _to_keep(command, asking, core, before)
        if command.kind == "correct":
            return await self._correction(command, asking, core, before)
        if command.scope == "present":
            own: Literal["leave out", "off the record"] = (
                "off the record" if command.kind == "do_not_remember" else "leave out"
            )
            if own == "off the record":
                return _Found(own=own, told=[this_message(asking.language)])
            # What the message says beside the command may have been told before.
            found = await self._stated(replace(command, target=asking.recognised.rest), asking, core)
            found.told = found.told or [this_message(asking.language)]
            found.own_changes = True
            return found
        if command.scope == "previous":
            return await self._previous(asking, core, before)
        return await self._stated(command, asking, core)

    async def _stated(self, command: Command, asking: Asking, core: CoreContent) -> _Found:
        subject = Subject.of(command.target)
        found = _Found(gives_away=command.target)
        if not subject.terms:
            return found
        mentions = [
            (stored, rest)
            for stored in await self._mentions(asking, subject.patterns())
            if (rest := without(stored.content, subject)) is not None
        ]
        if not mentions and not command.needs_match:
            mentions = _meant(await self._mentions(asking, _ANYTHING), subject)
        for stored, rest in mentions:
            if stored.kind == "episode":
                found.episodes.append(stored.id)
            else:
                found.messages[stored.id] = rest or None
            gone = _gone(stored.content, rest) if rest else stored.content
            found.told.append(command.target if without_member(gone, subject) else gone)
        await self._answers_of(asking, found, subject)
        found.items = _items_about(core, subject)
        found.told = [
            command.target if item["action"] == "replace" else str(item["old"]) for item in found.items
        ] or found.told
        if (
            command.kind == "do_not_remember"
            and asking.recognised.rest
            and (without(asking.recognised.rest, subject) is not None)
        ):
            found.own = "off the record"
            found.told = found.told or [this_message(asking.language)]
        return found

    async def _previous(self, asking: Asking, core: CoreContent, before: Sequence[Stored]) -> _Found:
        """The last exchange before the message, and what core memory was given for it."""
        last = next((each for each in before if each.role == "user"), None)
        if last is None:
            return _Found()
        exchange = [each for each in before if each.turn_id == last.turn_id]
        found = _Found(
            messages={each.id: None for each in exchange},
            told=[last.content],
            gives_away=last.content,
        )
        values = {**vars(asking.owner), "message_ids": [str(each.id) for each in exchange]}
        rows = await self._database.fetch(asking.owner.tenant_id, sql.FILED, values, tuple_row)
        for section, old, new in rows:
            found.items += _taken_back(section, old or {}, new or {}, core.get(section, {}))
        return found

    async def _correction(
        self, command: Command, asking: Asking, core: CoreContent, before: Sequence[Stored]
    ) -> _Found:
        found = _Found()
        subject = _context_of(command, asking.message)
        corrected = _corrected_in(_said_before(before), command, subject if subject.terms else None)
        if corrected is None and command.explicit:
            # Its other words may only say that something was wrong: then a value of the same kind has to be there.
            corrected = _corrected_in(_said_before(before), replace(command, explicit=False))
        stored: Stored | None = None
        if corrected:
            stored, change, statement = corrected
        else:
            mentions = await self._mentions(asking, subject.patterns()) if subject.terms else []
            told = [each for each in mentions if each.role == "user"]
            in_memory = _corrected_in(told, command, subject)
            if in_memory is None and command.scope == "stated":
                old = Subject.of(command.target)
                told = (
                    [each for each in await self._mentions(asking, old.patterns()) if each.role == "user"]
                    if old.terms
                    else []
                )
                shared = subject.terms - old.terms - Subject.of(command.replacement).terms
                told = [each for each in told if shared & informative_terms(each.content)] if shared else told[:1]
                in_memory = _corrected_in(told, command)
            if in_memory is None and command.explicit and (frame := frame_of(command.replacement)):
                told = [each for each in await self._mentions(asking, [f"%{frame}%"]) if each.role == "user"]
                in_memory = _corrected_in(told, replace(command, explicit=False))
            if in_memory:
                stored, change, statement = in_memory
        if stored is not None:
            text = stored.content.replace(statement, change.text, 1)
            if stored.kind == "episode":
                found.episodes.append(stored.id)
                found.written.append(text)
            else:
                found.messages[stored.id] = text
            found.told = [change.text.strip()]
            found.gives_away = change.old
            await self._answers_of(
                asking, found, Subject.of(f"{change.old} {statement}"), only=Subject.of(change.old)
            )
            found.items = _corrected_items(core, change, statement)
        elif command.scope == "stated":
            found.items = _corrected_items_by(core, command)
            found.told = [str(item["value"]) for item in found.items]
            found.gives_away = command.target
        return found

    async def _answers_of(
        self, asking: Asking, found: _Found, subject: Subject, *, only: Subject | None = None
    ) -> None:
        """Leave out the answers of exchanges whose question is gone, and what else gives away what is gone."""
        ids = list(found.messages)
        if not ids:
            return
        values = {"tenant_id": asking.owner.tenant_id, "message_ids": ids}
        rows = await self._database.fetch(asking.owner.tenant_id, sql.ANSWERS, values, tuple_row)
        for answer_id, content, message_id in rows:
            if answer_id in found.messages:
                continue
            if found.messages[message_id] is None:
                found.messages[answer_id] = None
                continue
            rest = without(content, only or subject, strictly=False)
            if rest is not None:
                found.messages[answer_id] = rest or None

    async def _mentions(self, asking: Asking, patterns: list[str]) -> list[Stored]:
        values = {
            **vars(asking.owner),
            "message_id": asking.message_id,
            "patterns": patterns,
            "most": _MOST_MENTIONS,
        }
        return await self._database.fetch(asking.owner.tenant_id, sql.MENTIONS, values, class_row(Stored))

    async def _before(self, asking: Asking) -> list[Stored]:
        values = {
            "tenant_id": asking.owner.tenant_id,
            "conversation_id": asking.conversation_id,
            "message_id": asking.message_id,
            "recent": _RECENT,
        }
        return await self._database.fetch(asking.owner.tenant_id, sql.BEFORE, values, class_row(Stored))


def _meant(stored: Sequence[Stored], subject: Subject) -> list[tuple[Stored, str]]:
    """The one statement that speaks of a subject in other words; none where several do."""
    found = [
        (each, statement)
        for each in stored
        if each.role == "user"
        for statement in statements_of(each.content)
        if "?" not in statement and "？" not in statement and subject.is_meant_in(statement)
    ]
    if len({statement.strip() for _, statement in found}) != 1:
        return []
    return [(each, worth_keeping(each.content.replace(statement, "", 1))) for each, statement in found]


def _planned(command: Command, found: _Found, asking: Asking) -> PlannedChange:
    told = list(dict.fromkeys(text.strip() for text in found.told if text.strip()))
    target = command.target or (this_message if command.scope == "present" else previous_exchange)(asking.language)
    has_changes = bool(found)
    keeps = command.kind in {"remember", "standing"}
    rest = asking.recognised.rest
    if command.target:
        # A command may name before its verb what it is about.
        left = without(rest, Subject.of(command.target), strictly=False)
        rest = rest if left is None else left
    rest = worth_keeping(rest, least=_LEAST_OF_REST)
    own = "keep" if keeps else found.own
    return PlannedChange(
        change=MemoryChange(
            kind=command.kind,
            summary=summary_of(command.kind, told or [target], asking.language, target=target, found=has_changes),
            operation_id=str(uuid7()) if has_changes else None,
            items=told,
        ),
        target=command.target,
        messages=[PlannedMessage(message_id=str(key), memory_text=text) for key, text in found.messages.items()],
        episodes=[str(each) for each in found.episodes],
        items=found.items,
        written=found.written,
        own=own,
        own_text=(rest or None) if own == "leave out" and command.scope != "present" else None,
        gives_away=found.gives_away,
    )


def _one_own(planned: list[PlannedChange]) -> list[PlannedChange]:
    """The turn itself is left out once, by the change that keeps the least of it."""
    order = {"keep": 0, "leave out": 1, "off the record": 2}
    effective = [each for each in planned if each["change"]["operation_id"]]
    decides = max(effective, key=lambda each: order[each["own"]], default=None)
    for each in planned:
        if each is not decides:
            each["own"] = "keep"
    return planned


def _to_keep(command: Command, asking: Asking, core: CoreContent, before: Sequence[Stored]) -> _Found:
    """A statement or a wish as an item of core memory; as a memory of its own where that has no room."""
    text = command.target
    if command.scope == "present":
        text = worth_keeping(asking.recognised.rest)
    elif command.scope == "previous":
        last = next((each for each in before if each.role == "user"), None)
        text = last.content if last else ""
    text = " ".join(text.split())[:_LONGEST_ITEM].strip(" ,，.。;；!！")
    found = _Found(own="keep", told=[text])
    if not text:
        return found
    item = PlannedItem(action="add", section=SECTION, field=_FIELDS[command.kind], value=text, old=None)
    content = core.get(SECTION, {})
    try:
        applied = apply_changes(content, [ItemChange(**item)]).content
        check_size(SECTION, applied)
    except InvalidInput:
        found.written = [text]
        return found
    found.items = [item]
    return found


def _items_about(core: CoreContent, subject: Subject) -> list[PlannedItem]:
    """Items of core memory that speak of a subject."""
    found = []
    for section, key, text, _ in _items(core):
        names = (key.replace("_", " "), *(labels[key] for labels in FIELD_LABELS.values() if key in labels))
        if any(known_in([words], subject) for words in (text, *(f"{name} {text}" for name in names))):
            rest = without_member(text, subject)
            action: Literal["replace", "remove"] = "replace" if rest else "remove"
            found.append(PlannedItem(action=action, section=section, field=key, value=rest, old=text))
    return found


def _items(core: CoreContent) -> Iterable[tuple[str, str, str, bool]]:
    """Section, field and text of every item, and whether it is its field's only value."""
    for section, content in core.items():
        for key, value in content.items():
            if isinstance(value, list):
                yield from ((section, key, item_text(item), False) for item in value)
            elif isinstance(value, Mapping):
                yield from ((section, key, item_text(item), False) for item in value.values())
            else:
                yield section, key, item_text(value), True


def _taken_back(
    section: str, old: Mapping[str, Any], new: Mapping[str, Any], now: Mapping[str, Any]
) -> list[PlannedItem]:
    """Removals of the items that a change of a section had added, where they are still there."""
    had = {(key, text) for _, key, text, _ in _items({section: old})}
    there = {(key, text) for _, key, text, _ in _items({section: now})}
    added = [(key, text) for _, key, text, _ in _items({section: new}) if (key, text) not in had]
    return [
        PlannedItem(action="remove", section=section, field=key, value=None, old=text)
        for key, text in added
        if (key, text) in there
    ]


def _said_before(before: Sequence[Stored]) -> list[Stored]:
    """What the user stated just before, the newest first."""
    newest = [each for each in before if each.role == "user"][:_JUST_BEFORE]
    return [each for each in newest if statements(each.content)]


_Corrected = tuple[Stored, Substitution, str]
"""What is corrected, how, and the statement in it."""


def _corrected_in(stored: Sequence[Stored], command: Command, about: Subject | None = None) -> _Corrected | None:
    """The newest statement in which the old value stands, or one of the new value's kind."""
    newest = True
    for each in stored:
        for statement in reversed(statements_of(each.content)):
            if statement.rstrip().endswith(("?", "？")):
                continue
            if about and not about.is_in(statement) and not about.touches(statement):
                continue
            old = command.target if command.scope == "stated" else ""
            # Without a value of the same kind, only what was said last can be meant.
            change = substitute(statement, command.replacement, old, freely=command.explicit and newest)
            if change:
                return each, change, statement
            newest = False
    return None


def _context_of(command: Command, message: str) -> Subject:
    """What a correction is about, beside the values that it names."""
    found = Subject.of(message)
    values = value_terms(command.replacement)
    if command.scope == "stated":
        values |= informative_terms(command.target)
    kept = found.terms - values - _of_correcting()
    return Subject(frozenset(kept), {term: found.weights[term] for term in kept}, found.of_kin)


_WORDS_OF_CORRECTING = """
wrong incorrect mistaken mistake misspoke meant mean correction correct sorry actually wait said say told typo
right should scratch strike let fix oops mixed got
now longer anymore instead
现在 已经 有误
说错 记错 写错 打错 搞错 弄错 讲错 口误 更正 纠正 刚才 不对 应该 其实 不是 抱歉 不好 意思 不好意思 错 错了
"""


@lru_cache(maxsize=1)
def _of_correcting() -> frozenset[str]:
    return frozenset(_WORDS_OF_CORRECTING.split()) | informative_terms(_WORDS_OF_CORRECTING)


def _corrected_items(core: CoreContent, change: Substitution, statement: str) -> list[PlannedItem]:
    """Items of core memory that hold the old value of a statement."""
    about = informative_terms(statement) - informative_terms(change.old)
    found = []
    for section, key, text, _ in _items(core):
        if not change.new and text.strip().casefold() == change.old.casefold():
            found.append(PlannedItem(action="remove", section=section, field=key, value=None, old=text))
            continue
        new = substitute(text, change.new, change.old)
        if new and (about & informative_terms(f"{key.replace('_', ' ')} {text}") or text.strip() == change.old):
            found.append(PlannedItem(action="replace", section=section, field=key, value=new.text, old=text))
    return found


def _corrected_items_by(core: CoreContent, command: Command) -> list[PlannedItem]:
    """Items of core memory in which the value stands that does not hold, where nothing else tells of it."""
    found = []
    for section, key, text, _ in _items(core):
        new = substitute(text, command.replacement, command.target)
        if new:
            found.append(PlannedItem(action="replace", section=section, field=key, value=new.text, old=text))
    return found if len(found) == 1 else []


def _gone(text: str, rest: str) -> str:
    """What was taken out of a text."""
    return next((part for part in statements_of(text) if part.strip() not in rest), text)
