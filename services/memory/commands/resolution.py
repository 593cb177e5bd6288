"""Resolve memory commands: find the statements, memories and items that they name, by their words.

It only plans; `Retraction` carries the plan out in the transaction that ends the turn.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from uuid import UUID

from psycopg.rows import class_row, tuple_row
from uuid_utils.compat import uuid7

from services.errors import InvalidInput
from services.memory.blocks import Owner
from services.memory.commands import statements as sql
from services.memory.commands.candidates import CandidateScorer, Stored
from services.memory.commands.change_wording import nothing_found, previous_exchange, summary_of, this_message
from services.memory.commands.corrections import corrected_in, stated_in
from services.memory.commands.substitution import Substitution, substitute
from services.memory.content import FIELD_LABELS, check_size
from services.memory.core import CoreMemory
from services.memory.items import ItemChange, apply_changes, item_text
from services.platform.postgres import Database
from services.text.clauses import statements
from services.text.language import Language
from services.text.mentions import Subject, known_in, statements_of, without, without_member, worth_keeping
from services.text.tokenizer import informative_terms
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
LONGEST_ITEM = 300
"""Characters of a statement that is kept by itself."""


@dataclass(frozen=True)
class ResolutionRequest:
    """The message with the commands."""

    owner: Owner
    conversation_id: UUID
    message_id: UUID
    message: str
    language: Language
    recognised: Recognised
    reaches_shared: bool = True
    """Whether, in a space, what is forgotten goes from what all spaces share as well."""


@dataclass
class _Found:
    """What a command changes."""

    messages: dict[UUID, str | None] = field(default_factory=dict)
    episodes: list[UUID] = field(default_factory=list)
    items: list[PlannedItem] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    """Descriptions of the changes, for the user."""
    own: Literal["keep", "leave out", "off the record"] = "leave out"
    own_changes: bool = False
    """Whether leaving the turn out is a change by itself."""
    gives_away: str = ""
    candidates: list[str] = field(default_factory=list)
    """Where nothing is changed because none stands out: what may be meant."""

    def __bool__(self) -> bool:
        changes = self.messages or self.episodes or self.items or self.written or self.own_changes
        return bool(changes) or self.own == "off the record"


CoreContent = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class _Core:
    """The sections of core memory that a command may change."""

    own: CoreContent
    shared: CoreContent

    @property
    def both(self) -> CoreContent:
        """Every item of both, of a field that both have as one list."""
        if not self.shared:
            return self.own
        together: dict[str, dict[str, Any]] = {name: dict(content) for name, content in self.shared.items()}
        for name, content in self.own.items():
            fields = together.setdefault(name, {})
            for key, value in content.items():
                fields[key] = [*_as_items(fields[key]), *_as_items(value)] if key in fields else value
        return together


def _as_items(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else [value]


class Resolution:
    """Finds what commands are about."""

    def __init__(self, database: Database, core: CoreMemory) -> None:
        self._database = database
        self._core = core

    async def plan(self, asking: ResolutionRequest) -> list[PlannedChange]:
        """The changes that the plain commands of a message make; one that changes nothing has no operation.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        commands = asking.recognised.plain
        if not commands:
            return []
        core = await self._core_of(asking)
        before = await self._before(asking)
        planned = []
        for command in commands:
            found = await self._resolve(command, asking, core, before)
            if not found and (command.needs_match or command.kind in {"correct", "remember", "standing"}):
                continue
            if command.kind == "forget" and found.own == "off the record":
                command = replace(command, kind="do_not_remember")  # noqa: PLW2901 — what it comes to
            planned.append(_planned(command, found, asking))
        return _one_own(planned)

    async def named(
        self, asking: ResolutionRequest, kind: Literal["forget", "correct"], target: str, new: str = ""
    ) -> PlannedChange:
        """The change for what a tool or an agent names.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        command = Command(kind, "stated", target=target, replacement=new)
        core = await self._core_of(asking)
        found = await self._resolve(command, asking, core, await self._before(asking))
        return _planned(command, found, asking)

    async def _core_of(self, asking: ResolutionRequest) -> "_Core":
        own, shared = await self._core.read(asking.owner), []
        if asking.owner.space_id is not None and asking.reaches_shared:
            shared = await self._core.read(asking.owner.shared)
        return _Core(
            {block.section: block.content for block in own}, {block.section: block.content for block in shared}
        )

    async def _resolve(
        self, command: Command, asking: ResolutionRequest, known: "_Core", before: Sequence[Stored]
    ) -> _Found:
        # What is said in a space stays there: outside of it, words may remove something and change nothing.
        forgets = command.kind == "forget"
        core = known.both if forgets else known.own
        asking = asking if forgets else replace(asking, reaches_shared=False)
        if command.kind in {"remember", "standing"}:
            return _to_keep(command, asking, core, before)
        if command.kind == "correct":
            return await self._correction(command, asking, core, before)
        if command.kind == "do_not_remember":
            found = self._previous_of(before) if command.scope == "previous" else _Found()
            found.own, found.told = "off the record", found.told or [this_message(asking.language)]
            return found
        found = await self._stated(command, asking, core)
        last = self._previous_of(before).messages
        means_last = command.just_now and not command.kept and not last.keys().isdisjoint(found.messages)
        if means_last or (not found and command.scope == "previous" and command.certainty == "plain"):
            found = await self._previous(asking, core, before)
        if not found and command.tells and command.certainty == "plain":
            # The message itself says what memory does not hold yet.
            return _Found(own="off the record", told=[this_message(asking.language)])
        return found

    async def _stated(self, command: Command, asking: ResolutionRequest, core: CoreContent) -> _Found:
        """What shares nearly all words with what the user names; else what is meant by it."""
        subject = Subject.of(command.target)
        found = _Found(gives_away=command.target)
        kept, named = CandidateScorer(command.kept), CandidateScorer(command.target)
        if subject.terms:
            for stored in await self._mentions(asking, subject.patterns()):
                rest = without(stored.content, subject)
                if rest is None or kept.keeps(_gone(stored.content, rest), named):
                    continue
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
        if found or command.certainty == "likely":
            return found
        for words in dict.fromkeys((command.named or command.target, command.about)):
            meant = await self._meant(CandidateScorer(words), kept, asking, core)
            if meant:
                return meant
            found.candidates = found.candidates or meant.candidates
        return found

    async def _meant(
        self, sought: CandidateScorer, kept: CandidateScorer, asking: ResolutionRequest, core: CoreContent
    ) -> _Found:
        """What stands out as what is meant, among all that memory holds of the user."""
        found = _Found()
        if not sought.facets:
            return found
        told = await self._told(sought, asking)
        items = [(*item, _with_label(*item[1:3])) for item in _items(core)]
        statements = [statement for _, statement in told] + [item[-1] for item in items]
        chosen = [place for place in sought.meant(statements) if not kept.keeps(statements[place], sought)]
        if not chosen:
            found.candidates = [each for each in sought.near(statements) if not kept.keeps(each, sought)]
        gone: dict[UUID, list[str]] = {}
        by_id = {stored.id: stored for stored, _ in told}
        for place in chosen:
            if place < len(told):
                stored, statement = told[place]
                gone.setdefault(stored.id, []).append(statement)
            else:
                section, key, text, *_ = items[place - len(told)]
                found.items.append(PlannedItem(action="remove", section=section, field=key, value=None, old=text))
        for stored_id, parts in gone.items():
            stored = by_id[stored_id]
            if stored.kind == "episode":
                found.episodes.append(stored.id)
            else:
                found.messages[stored.id] = sought.left_of(stored.content, parts, kept) or None
        found.told = [statements[place] for place in chosen]
        found.gives_away = " ".join(found.told)
        await self._answers_of(asking, found, Subject.of(found.gives_away))
        found.items += [
            item
            for item in _items_about(core, Subject.of(found.gives_away))
            if item["action"] == "remove" and item not in found.items
        ]
        return found

    async def _told(self, sought: CandidateScorer, asking: ResolutionRequest) -> list[tuple[Stored, str]]:
        """The user's statements that may be meant: those that share a word, and the newest."""
        stored = {
            each.id: each
            for patterns in (sought.patterns(), _ANYTHING)
            if patterns
            for each in await self._mentions(asking, patterns)
            if each.role == "user"
        }
        return [
            (each, statement)
            for each in stored.values()
            for statement in (stated_in(each.content) if each.kind == "message" else [each.content])
        ]

    async def _previous(self, asking: ResolutionRequest, core: CoreContent, before: Sequence[Stored]) -> _Found:
        """The last exchange before the message, and what core memory was given for it."""
        found = self._previous_of(before)
        if not found:
            return found
        values = {**vars(asking.owner), "message_ids": [str(each) for each in found.messages]}
        rows = await self._database.fetch(asking.owner.tenant_id, sql.FILED, values, tuple_row)
        for section, old, new in rows:
            found.items += _taken_back(section, old or {}, new or {}, core.get(section, {}))
        return found

    @staticmethod
    def _previous_of(before: Sequence[Stored]) -> _Found:
        last = next((each for each in before if each.role == "user"), None)
        if last is None:
            return _Found()
        exchange = [each for each in before if each.turn_id == last.turn_id]
        return _Found(messages={each.id: None for each in exchange}, told=[last.content], gives_away=last.content)

    async def _correction(
        self, command: Command, asking: ResolutionRequest, core: CoreContent, before: Sequence[Stored]
    ) -> _Found:
        """The old value replaced wherever it stands; else the statement that does not hold any more removed."""
        told = await self._told(CandidateScorer(f"{command.target} {command.about}"), asking)
        corrected = corrected_in(command, told, _said_before(before), asking.message)
        found = _Found()
        if corrected is None and command.reach != "any":
            return found
        if corrected is None:
            # What is said of the subject holds no more; what holds instead stands in the message.
            found = _Found()
            if command.certainty == "plain" and command.replacement:
                found = await self._meant(CandidateScorer(command.about), CandidateScorer(""), asking, core)
            if found:
                found.own = "keep"
                return found
            found.items = _corrected_items_by(core, command) if command.target else []
            found.told = [str(item["value"]) for item in found.items]
            found.gives_away = command.target
            return found
        _, change, corrected_statement = corrected
        shared = informative_terms(corrected_statement) - informative_terms(change.old)
        for stored, statement in told:
            again = (
                change
                if statement == corrected_statement
                else substitute(statement, change.new, change.old)
                if shared & informative_terms(statement)
                else None
            )
            if again is None:
                continue
            text = stored.content.replace(statement, again.text, 1)
            if stored.kind == "episode":
                found.episodes.append(stored.id)
                found.written.append(text)
            else:
                found.messages[stored.id] = text
        found.told = [change.text.strip()]
        found.gives_away = change.old
        if change.old.casefold() not in asking.message.casefold():
            found.own = "keep"
        await self._answers_of(
            asking, found, Subject.of(f"{change.old} {corrected_statement}"), only=Subject.of(change.old)
        )
        found.items = _corrected_items(core, change, corrected_statement)
        return found

    async def _answers_of(
        self, asking: ResolutionRequest, found: _Found, subject: Subject, *, only: Subject | None = None
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

    async def _mentions(self, asking: ResolutionRequest, patterns: list[str]) -> list[Stored]:
        values = {
            **vars(asking.owner),
            "message_id": asking.message_id,
            "reaches_shared": asking.reaches_shared,
            "patterns": patterns,
            "most": _MOST_MENTIONS,
        }
        return await self._database.fetch(asking.owner.tenant_id, sql.MENTIONS, values, class_row(Stored))

    async def _before(self, asking: ResolutionRequest) -> list[Stored]:
        values = {
            "tenant_id": asking.owner.tenant_id,
            "conversation_id": asking.conversation_id,
            "message_id": asking.message_id,
            "recent": _RECENT,
        }
        return await self._database.fetch(asking.owner.tenant_id, sql.BEFORE, values, class_row(Stored))


def _planned(command: Command, found: _Found, asking: ResolutionRequest) -> PlannedChange:
    told = list(dict.fromkeys(text.strip() for text in found.told if text.strip()))
    target = command.target or (this_message if command.scope == "present" else previous_exchange)(asking.language)
    has_changes = bool(found)
    keeps = command.kind in {"remember", "standing"}
    rest = asking.recognised.rest
    if command.kind == "correct":
        gone = found.gives_away.casefold()
        rest = "".join(each for each in statements_of(rest) if gone not in each.casefold())
    elif command.target:
        # A command may name before its verb what it is about.
        left = without(rest, Subject.of(command.target), strictly=False)
        rest = rest if left is None else left
    rest = worth_keeping(rest, least=_LEAST_OF_REST)
    own = "keep" if keeps else found.own
    return PlannedChange(
        change=MemoryChange(
            kind=command.kind,
            summary=summary_of(command.kind, told or [target], asking.language)
            if has_changes
            else nothing_found(target, found.candidates, asking.language),
            operation_id=str(uuid7()) if has_changes else None,
            items=told,
        ),
        target=command.target,
        messages=[PlannedMessage(message_id=str(key), memory_text=text) for key, text in found.messages.items()],
        episodes=[str(each) for each in found.episodes],
        items=found.items,
        written=found.written,
        own=own,
        own_text=(rest or None) if own == "leave out" else None,
        gives_away=found.gives_away,
        reaches_shared=command.kind == "forget" and asking.reaches_shared,
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


def _to_keep(command: Command, asking: ResolutionRequest, core: CoreContent, before: Sequence[Stored]) -> _Found:
    """A statement or a wish as an item of core memory; as its own memory where that has no room."""
    text = command.target
    if command.scope == "present":
        text = worth_keeping(asking.recognised.rest)
    elif command.scope == "previous":
        last = next((each for each in before if each.role == "user"), None)
        text = last.content if last else ""
    text = " ".join(text.split())[:LONGEST_ITEM].strip(" ,，.。;；!！")
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


def _with_label(key: str, text: str) -> str:
    """An item with the name of its field in both languages, by which it may be named."""
    labels = [labels[key] for labels in FIELD_LABELS.values() if key in labels]
    return " ".join([*labels, key.replace("_", " "), text])


def _said_before(before: Sequence[Stored]) -> list[Stored]:
    """What the user stated just before, the newest first."""
    newest = [each for each in before if each.role == "user"][:_JUST_BEFORE]
    return [each for each in newest if statements(each.content)]


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
    """Items of core memory with the value that does not hold, where nothing else mentions it."""
    found = []
    for section, key, text, _ in _items(core):
        new = substitute(text, command.replacement, command.target)
        if new:
            found.append(PlannedItem(action="replace", section=section, field=key, value=new.text, old=text))
    return found if len(found) == 1 else []


def _gone(text: str, rest: str) -> str:
    """What was taken out of a text."""
    return next((part for part in statements_of(text) if part.strip() not in rest), text)
