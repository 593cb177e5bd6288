"""What commands change in memory, noted before it is done. Pure."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from uuid_utils.compat import uuid7

from services.memory.commands.change_wording import nothing_found, previous_exchange, summary_of, this_message
from services.memory.commands.corrections import Correction
from services.memory.commands.holdings import CoreContent, CoreItem, Holdings, Place, items_of
from services.memory.commands.members import Shortened, without_named
from services.memory.commands.pieces import Stored, pieces
from services.memory.commands.reading import ResolutionRequest
from services.memory.commands.removal import going_with, without_pieces, without_value
from services.memory.commands.substitution import Substitution, substitute, values_by_kind
from services.memory.commands.targets import Sought
from services.text.concepts import concepts
from services.text.mentions import Subject, known_in, without, without_member, worth_keeping
from services.text.tokenizer import informative_terms
from state.memory import Command, MemoryChange, MemoryChangeKind, PlannedChange, PlannedItem, PlannedMessage

_DATE = re.compile(r"\d{4}-\d\d")
_DATED = frozenset(("weekday", "date", "month", "day"))
"""Kinds of values that are filed as dates."""
_EDGES = " \n.,;!?。，；！？、"
_LEAST_OF_REST = 2
"""Informative words beside a command that make its message worth keeping."""


@dataclass
class Effects:
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
    denies: bool = False
    """Whether nothing takes the place of what is corrected."""
    candidates: list[str] = field(default_factory=list)
    """Where nothing is changed because none stands out: what may be meant."""

    def __bool__(self) -> bool:
        changes = self.messages or self.episodes or self.items or self.written or self.own_changes
        return bool(changes) or self.own == "off the record"


def plan_of(command: Command, found: Effects, asking: ResolutionRequest) -> PlannedChange:
    told = list(dict.fromkeys(text.strip() for text in found.told if text.strip()))
    target = command.target or (this_message if command.scope == "present" else previous_exchange)(asking.language)
    has_changes = bool(found)
    keeps = command.kind in {"remember", "standing"}
    rest = asking.recognised.rest
    if command.kind == "correct":
        new = "" if found.denies else command.replacement
        rest = without_value(rest, found.gives_away, new) if found.gives_away else rest
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


def one_own(planned: list[PlannedChange]) -> list[PlannedChange]:
    """The turn itself is left out once, by the change that keeps the least of it."""
    order = {"keep": 0, "leave out": 1, "off the record": 2}
    effective = [each for each in planned if each["change"]["operation_id"]]
    decides = max(effective, key=lambda each: order[each["own"]], default=None)
    for each in planned:
        if each is not decides:
            each["own"] = "keep"
    return planned


def items_about(core: CoreContent, subject: Subject) -> list[PlannedItem]:
    """Items of core memory that speak of a subject."""
    found = []
    for item in items_of(core):
        if any(
            known_in([words], subject) for words in (item.text, *(f"{name} {item.text}" for name in item.labels))
        ):
            rest = without_member(item.text, subject)
            found.append(item.replaced(rest) if rest else item.removed())
    return found


def outdated_items(core: CoreContent, statement: str, message: str) -> list[PlannedItem]:
    """Items of core memory that go with a statement that does not hold any more.

    Of a field with several items only those go that the message names; of one with a single item that one, if the
    message is about the same.
    """
    fields = Counter((item.section, item.field) for item in items_of(core))
    named, matters = informative_terms(message), concepts(message).keys()
    found = []
    for planned in items_about(core, Subject.of(statement)):
        item = CoreItem(planned["section"], planned["field"], str(planned["old"]))
        is_alone = fields[item.section, item.field] == 1
        if planned["action"] == "remove" and (
            informative_terms(item.text) & named or (is_alone and concepts(item.labelled).keys() & matters)
        ):
            found.append(planned)
    return found


def misdated_items(change: Substitution, filed: Sequence[PlannedItem]) -> list[PlannedItem]:
    """Removals of the items that were filed from a statement with the date that its old value stood for."""
    if not _DATED.intersection(values_by_kind(change.old)):
        return []
    about = informative_terms(change.text) - informative_terms(change.new)
    return [
        item for item in filed if _DATE.search(str(item["old"])) and about & informative_terms(str(item["old"]))
    ]


def remove(found: Effects, chosen: Sequence[Place], sought: Sought) -> None:
    """Note that some pieces go, and tell which; with what is to be forgotten, what only goes on about it."""
    gone: dict[UUID, set[int]] = {}
    told: dict[UUID, list[str]] = {}
    for place in chosen:
        if member := _member_of(place, sought):
            found.messages[member[0]], told[member[0]] = member[1].text, [member[1].gone]
            continue
        if isinstance(place.of, CoreItem):
            found.items.append(place.of.removed())
            found.told.append(place.of.text)
        elif place.of.kind == "episode":
            found.episodes.append(place.of.id)
            found.told.append(place.of.content)
        else:
            numbers = gone.setdefault(place.of.id, set())
            numbers.add(place.at)
            is_forgotten = sought.kind == "forget"
            going = going_with(place.of.content, numbers, sought) if is_forgotten else numbers
            found.messages[place.of.id] = without_pieces(place.of.content, going) or None
            parts = pieces(place.of.content)
            told[place.of.id] = [parts[number] for number in sorted(going)]
    found.told += [part for parts in told.values() for part in parts]


def _member_of(place: Place, sought: Sought) -> tuple[UUID, Shortened] | None:
    """A message without the members of a list that are to be forgotten, where only some of them are."""
    if sought.kind != "forget" or isinstance(place.of, CoreItem) or place.of.kind == "episode":
        return None
    shortened = without_named(place.of.content, f"{sought.named} {sought.about}", sought.stays)
    return (place.of.id, shortened) if shortened and place.text not in shortened.text else None


def replace_value(found: Effects, holdings: Holdings, corrected: Correction) -> None:
    """Note the new value wherever the old one stands and the same is said."""
    change = corrected.change
    if change is None:
        return
    shared = informative_terms(corrected.place.text) - informative_terms(change.old)
    texts: dict[UUID, str] = {}
    for place in holdings.places:
        if isinstance(place.of, CoreItem):
            continue
        again = (
            change
            if place.text == corrected.place.text
            else substitute(place.text, change.new, change.old)
            if shared & informative_terms(place.text)
            else None
        )
        if again is None:
            continue
        if place.of.kind == "episode":
            found.episodes.append(place.of.id)
            found.written.append(again.text)
        else:
            text = texts.get(place.of.id, place.of.content).replace(place.text, again.text, 1)
            texts[place.of.id] = text
    found.messages |= texts


def rewritten(kind: MemoryChangeKind, texts: Sequence[tuple[Stored | CoreItem, str]]) -> Effects:
    """Memories with other texts: what was said keeps the rest of its words, a written memory is written again."""
    found = Effects()
    gone: list[str] = []
    for of, text in texts:
        before = of.text if isinstance(of, CoreItem) else of.content
        left = [part for part in pieces(before) if part.strip(_EDGES) not in text]
        gone += left
        found.told += [text] if kind == "correct" and text else left
        if isinstance(of, CoreItem):
            found.items.append(of.replaced(text) if text else of.removed())
        elif of.kind == "episode":
            found.episodes.append(of.id)
            found.written += [text] if text else []
        else:
            found.messages[of.id] = text or None
    found.gives_away = " ".join(gone) if kind != "correct" else ""
    return found


def taken_back(
    section: str, old: Mapping[str, Any], new: Mapping[str, Any], now: Mapping[str, Any]
) -> list[PlannedItem]:
    """Removals of the items that a change of a section had added, where they are still there."""
    had = {(item.field, item.text) for item in items_of({section: old})}
    there = {(item.field, item.text) for item in items_of({section: now})}
    added = [item for item in items_of({section: new}) if (item.field, item.text) not in had]
    return [item.removed() for item in added if (item.field, item.text) in there]


def corrected_items(core: CoreContent, change: Substitution, statement: str) -> list[PlannedItem]:
    """Items of core memory that hold the old value of a statement."""
    about = informative_terms(statement) - informative_terms(change.old)
    found = []
    for item in items_of(core):
        if not change.new and item.text.strip().casefold() == change.old.casefold():
            found.append(item.removed())
            continue
        new = substitute(item.text, change.new, change.old)
        named = informative_terms(f"{item.field.replace('_', ' ')} {item.text}")
        if new and (about & named or item.text.strip() == change.old):
            found.append(item.replaced(new.text))
    return found
