"""Resolve memory commands: find the statements, memories and items that they name, by their words.

It only plans; `Retraction` carries the plan out in the transaction that ends the turn.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from services.errors import InvalidInput
from services.memory.commands.categories import all_of, asks_for_all
from services.memory.commands.change_wording import this_message
from services.memory.commands.corrections import Correction, correction_of
from services.memory.commands.effects import (
    Effects,
    corrected_items,
    items_about,
    misdated_items,
    one_own,
    outdated_items,
    plan_of,
    remove,
    replace_value,
    taken_back,
)
from services.memory.commands.holdings import CoreContent, CoreItem, CoreSections, Holdings, Place
from services.memory.commands.pieces import Stored, content_of, pieces
from services.memory.commands.reading import CommandReader, ResolutionRequest
from services.memory.commands.removal import taken_out, without_subject
from services.memory.commands.targets import sought_by
from services.memory.commands.text import folded
from services.memory.content import check_size
from services.memory.items import ItemChange, apply_changes
from services.platform.threads import Result, beside_the_loop
from services.text.concepts import concepts
from services.text.mentions import Subject, without, without_member, worth_keeping
from services.text.tokenizer import informative_terms
from services.text.work_requests import asks_about_something
from state.memory import Command, PlannedChange, PlannedItem

SECTION = "human"
_FIELDS: dict[str, str] = {"remember": "facts", "standing": "wishes"}
_MEANT = 0.3
"""Probability from which on what is to be forgotten is removed; it is reported and can be undone."""
_DOUBTFUL, _MEANT_BY_DOUBTFUL = 0.4, 0.3
"""The same where it is not sure that anything is to be forgotten: of that, and of both multiplied."""
_MAY_STAND_OUT = 0.05
_STANDS_OUT = 0.5
"""Share of all that may be meant, from which on less probability does."""
_TOLD_HERE = 0.9
"""Probability of a request to forget from which on its message is left out, where it tells what memory lacks."""
_AS_WELL = 0.8
"""Share of the likeliest one's probability from which on another piece is meant as well."""
_MEANT_AS_WELL = 0.15
"""Probability from which on a piece goes where everything about a subject goes."""
_MAY_BE_MEANT = 0.08
_MOST_NAMED = 3
_LONG = 1_000
"""Number of characters of a message beyond which a thread computes what it means."""
_ANNOUNCES = re.compile(r":\s*[^\W\d]")
"""What is told in the message itself: “forget this once you have read it: …”."""
LONGEST_ITEM = 300
"""Characters of a statement that is kept by itself."""


class Resolution:
    """Finds what commands are about."""

    def __init__(self, reader: CommandReader) -> None:
        self.reader = reader
        """Reads what a command may mean."""

    async def plan(self, asking: ResolutionRequest) -> list[PlannedChange]:
        """The changes that the plain commands of a message make; one that changes nothing has no operation.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        commands = asking.recognised.plain
        if not commands:
            return []
        core = await self.reader.core(asking)
        before = await self.reader.before(asking)
        planned = []
        corrects = False
        for command in commands:
            if corrects and command.kind == "correct":
                continue  # the same correction, seen by its form before
            found = await self._resolve(command, asking, core, before)
            if not found and (command.needs_match or command.kind in {"correct", "remember", "standing"}):
                continue
            if command.kind == "forget" and found.own == "off the record":
                command = replace(command, kind="do_not_remember")  # noqa: PLW2901 — what it comes to
            corrects = corrects or command.kind == "correct"
            planned.append(await _beside(asking, partial(plan_of, command, found, asking)))
        return one_own(planned)

    async def named(
        self, asking: ResolutionRequest, kind: Literal["forget", "correct"], target: str, new: str = ""
    ) -> PlannedChange:
        """The change for what a tool or an agent names.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        command = Command(kind, "stated", target=target, replacement=new)
        core = await self.reader.core(asking)
        found = await self._resolve(command, asking, core, await self.reader.before(asking))
        return plan_of(command, found, asking)

    async def _resolve(
        self, command: Command, asking: ResolutionRequest, known: CoreSections, before: Sequence[Stored]
    ) -> Effects:
        # What is said in a space stays there: outside of it, words may remove something and change nothing.
        forgets = command.kind == "forget"
        core = known.both if forgets else known.own
        asking = asking if forgets else replace(asking, reaches_shared=False)
        if command.kind in {"remember", "standing"}:
            return to_keep(command, asking, core, before)
        if command.kind == "correct":
            return await self._correction(command, asking, core, before)
        if command.kind == "do_not_remember":
            found = self._previous_of(before) if command.scope == "previous" else Effects()
            found.own, found.told = "off the record", found.told or [this_message(asking.language)]
            return found
        is_nameless = not informative_terms(command.named)
        if command.scope == "previous" and command.just_now and is_nameless and command.certainty == "plain":
            return await self._previous(asking, core, before)
        found = await self._stated(command, asking, core, before)
        last = self._previous_of(before).messages
        means_last = command.just_now and not command.kept and not last.keys().isdisjoint(found.messages)
        if means_last or (not found and command.scope == "previous" and command.certainty == "plain"):
            found = await self._previous(asking, core, before)
        is_sure = command.certainty == "plain" or command.probability >= _TOLD_HERE
        if not found and command.tells and is_sure:
            # The message itself says what memory does not hold yet.
            return Effects(own="off the record", told=[this_message(asking.language)])
        return found

    async def _stated(
        self, command: Command, asking: ResolutionRequest, core: CoreContent, before: Sequence[Stored]
    ) -> Effects:
        """What shares nearly all words with what the user names; else what is most likely meant by it."""
        found = Effects()
        if asks_for_all(asking.message) and command.certainty == "plain":
            found = await self._all(command, asking, core, before)
        if command.certainty == "plain" or command.probability >= _DOUBTFUL:
            found = found or await self._named(command, asking, core)
        return found or await self._meant(command, asking, core, before)

    async def _all(
        self, command: Command, asking: ResolutionRequest, core: CoreContent, before: Sequence[Stored]
    ) -> Effects:
        """Everything about a subject, or of a category."""
        holdings = await self.reader.holdings(command, asking, core, before)
        kept = Subject.of(command.kept)
        of_all = await _beside(asking, lambda: all_of(command.named or command.target, holdings), holdings)
        chosen = [place for place in of_all if not kept.is_in(place.text)]
        if not chosen:
            return Effects()
        sought = sought_by(command, asking.message)
        likely = await _beside(asking, lambda: holdings.likely(sought), holdings)
        chosen += [place for share, place in likely if share >= _MEANT_AS_WELL and place not in chosen]
        return await self._removing(chosen, command, asking, core)

    async def _named(self, command: Command, asking: ResolutionRequest, core: CoreContent) -> Effects:
        """What shares nearly all words with what the user names."""
        subject, kept = Subject.of(command.target), Subject.of(command.kept)
        sought = sought_by(command, asking.message)
        found = Effects(gives_away=command.target)
        answered: list[str] = []
        if subject.terms:
            for stored in await self.reader.mentions(asking, subject.patterns()):
                rest = await _of_text(stored.content, partial(without_subject, stored.content, subject, sought))
                if rest is None or kept.is_in(taken_out(stored.content, rest)):
                    continue
                if stored.kind == "episode":
                    found.episodes.append(stored.id)
                else:
                    found.messages[stored.id] = rest or None
                gone = taken_out(stored.content, rest) if rest else stored.content
                told = found.told if stored.role == "user" else answered
                told.append(command.target if without_member(gone, subject) else gone)
            found.items = items_about(core, subject) or _items_of(found.told, command, core)
            found.told = found.told or answered
            await self.leave_out_answers(asking, found, subject)
            found.told = [
                command.target if item["action"] == "replace" else str(item["old"]) for item in found.items
            ] or found.told
        return found

    async def _meant(
        self, command: Command, asking: ResolutionRequest, core: CoreContent, before: Sequence[Stored]
    ) -> Effects:
        """What is most likely meant, among all that memory holds of the user; else what may be, to ask."""
        found = Effects(gives_away=command.target)
        holdings = await self.reader.holdings(command, asking, core, before)
        sought = sought_by(command, asking.message)
        likely = await _beside(asking, lambda: holdings.likely(sought), holdings)
        best = likely[0][0] if likely else 0.0
        # What was said last is meant rather than what is only a little likelier than the rest.
        may_be_last = command.scope == "previous" and any(each.role == "user" for each in before)
        if not _is_meant(likely, command, asking.message, may_be_last=may_be_last):
            near = [place.text.strip() for share, place in likely if share >= _MAY_BE_MEANT]
            found.candidates = list(dict.fromkeys(near))[:_MOST_NAMED]
            return found
        chosen = [place for share, place in likely if share >= _AS_WELL * best]
        named = await _beside(asking, lambda: all_of(command.named or command.target, holdings), holdings)
        chosen = _rather_named(chosen, likely, named)
        return await self._removing(chosen, command, asking, core)

    async def _removing(
        self, chosen: Sequence[Place], command: Command, asking: ResolutionRequest, core: CoreContent
    ) -> Effects:
        """These pieces removed, with the answers and the items of core memory that give them away."""

        def removed() -> tuple[Effects, Subject, list[PlannedItem]]:
            found = Effects()
            remove(found, chosen, sought_by(command, asking.message))
            found.gives_away = " ".join(
                place.of.text if isinstance(place.of, CoreItem) else place.text for place in chosen
            )
            return found, Subject.of(found.gives_away), _items_of([found.gives_away], command, core)

        held = {place.of.text if isinstance(place.of, CoreItem) else place.of.content for place in chosen}
        characters = len(asking.message) + sum(map(len, held))
        found, gone, items = await beside_the_loop(removed, characters=characters, most=_LONG)
        await self.leave_out_answers(asking, found, gone)
        found.items += [item for item in items if item not in found.items]
        return found

    async def _previous(self, asking: ResolutionRequest, core: CoreContent, before: Sequence[Stored]) -> Effects:
        """The last exchange before the message, and what core memory was given for it."""
        found = self._previous_of(before)
        if not found:
            return found
        for section, old, new in await self.reader.filed(asking, list(found.messages)):
            found.items += taken_back(section, old or {}, new or {}, core.get(section, {}))
        return found

    @staticmethod
    def _previous_of(before: Sequence[Stored]) -> Effects:
        last = next((each for each in before if each.role == "user"), None)
        if last is None:
            return Effects()
        exchange = [each for each in before if each.turn_id == last.turn_id]
        return Effects(messages={each.id: None for each in exchange}, told=[last.content], gives_away=last.content)

    async def _correction(
        self, command: Command, asking: ResolutionRequest, core: CoreContent, before: Sequence[Stored]
    ) -> Effects:
        """The old value replaced wherever it stands; else the piece that does not hold any more removed."""
        found = Effects()
        holdings = await self.reader.holdings(command, asking, core, before)

        def found_in_holdings() -> Correction | None:
            said = [
                Place(each, at, part) for each in holdings.just_before for at, part in _newest_first(each.content)
            ]
            likely = holdings.likely(sought_by(command, asking.message))
            return correction_of(command, likely, said, asking.message)

        corrected = await _beside(asking, found_in_holdings, holdings)
        if corrected is None:
            return found
        if corrected.change is None:
            remove(found, [corrected.place], sought_by(command, asking.message))
            found.told = [asking.message]
        else:
            await _beside(asking, partial(replace_value, found, holdings, corrected), holdings)
            found.told = [corrected.change.text.strip()]
        found.gives_away = corrected.old
        found.denies = corrected.change is not None and not corrected.change.new
        if not corrected.old or corrected.old.casefold() not in asking.message.casefold():
            found.own = "keep"
        text = corrected.place.text
        await self.leave_out_answers(
            asking, found, Subject.of(f"{corrected.old} {text}"), only=Subject.of(corrected.old or text)
        )
        if corrected.change is not None:
            found.items = corrected_items(core, corrected.change, text)
            for section, old, new in await self.reader.filed(asking, list(found.messages)):
                filed = taken_back(section, old or {}, new or {}, core.get(section, {}))
                handled = [item["old"] for item in found.items]
                found.items += [
                    item for item in misdated_items(corrected.change, filed) if item["old"] not in handled
                ]
        else:
            statement = corrected.place.of.text if isinstance(corrected.place.of, CoreItem) else text
            gone = await _beside(asking, partial(outdated_items, core, statement, asking.message))
            found.items += [item for item in gone if item not in found.items]
        return found

    async def leave_out_answers(
        self, asking: ResolutionRequest, found: Effects, subject: Subject, *, only: Subject | None = None
    ) -> None:
        """Leave out the answers of exchanges whose question is gone, and what else gives away what is gone."""
        ids = list(found.messages)
        if not ids:
            return
        for answer_id, content, message_id in await self.reader.answers(asking, ids):
            if answer_id in found.messages:
                continue
            if found.messages[message_id] is None:
                found.messages[answer_id] = None
                continue
            rest = await _of_text(content, partial(without, content, only or subject, strictly=False))
            if rest is not None:
                found.messages[answer_id] = rest or None


def to_keep(command: Command, asking: ResolutionRequest, core: CoreContent, before: Sequence[Stored]) -> Effects:
    """A statement or a wish as an item of core memory; as its own memory where that has no room."""
    text = command.target
    if command.scope == "present":
        text = worth_keeping(asking.recognised.rest)
    elif command.scope == "previous":
        last = next((each for each in before if each.role == "user"), None)
        text = last.content if last else ""
    text = " ".join(text.split())[:LONGEST_ITEM].strip(" ,，.。;；!！")
    found = Effects(own="keep", told=[text])
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


async def _beside(
    asking: ResolutionRequest, work: Callable[[], Result], holdings: Holdings | None = None
) -> Result:
    """Compute what a command means; in a thread if the message, or what is held, is long."""
    held = 0 if holdings is None else holdings.characters
    return await beside_the_loop(work, characters=len(asking.message) + held, most=_LONG)


async def _of_text(text: str, work: Callable[[], Result]) -> Result:
    """Compute what is left of a stored text; in a thread if it is long."""
    return await beside_the_loop(work, characters=len(text), most=_LONG)


def _is_meant(likely: Sequence[tuple[float, Place]], command: Command, message: str, *, may_be_last: bool) -> bool:
    """Whether the text with the likeliest piece is what is to be forgotten, or a part of it.

    Its pieces share the probability that it is meant. Of a command beyond doubt something is meant: there it does
    to be clearly ahead of everything else.
    """
    if not likely:
        return False
    best, first = likely[0]
    if command.certainty == "likely":
        asks = content_of(first.text).asks or asks_about_something(folded(message).lower())
        is_likely = command.probability >= _DOUBTFUL and best * command.probability >= _MEANT_BY_DOUBTFUL
        return is_likely and not asks
    best = sum(share for share, place in likely if place.of is first.of or place.says_the_same(first))
    tells_itself = command.tells and _ANNOUNCES.search(folded(message)) is not None
    stands_out = not tells_itself and not may_be_last and best >= _STANDS_OUT * sum(share for share, _ in likely)
    return best >= _MEANT or (best >= _MAY_STAND_OUT and stands_out)


def _items_of(statements: Sequence[str], command: Command, core: CoreContent) -> list[PlannedItem]:
    """Removals of the items of core memory that say what some forgotten statements say."""
    found = [item for each in statements for item in items_about(core, Subject.of(each))]
    return [
        item for item in found if item["action"] == "remove" and not _is_of_another_matter(item, command.target)
    ]


def _is_of_another_matter(item: PlannedItem, target: str) -> bool:
    """Whether an item tells something else than what is to be forgotten: the city of “I moved to Oslo to work”."""
    labelled = CoreItem(item["section"], item["field"], str(item["old"])).labelled
    own, named = concepts(labelled).keys(), concepts(target).keys()
    is_named = not informative_terms(labelled).isdisjoint(informative_terms(target))
    return bool(own and named) and own.isdisjoint(named) and not is_named


def _rather_named(
    chosen: Sequence[Place], likely: Sequence[tuple[float, Place]], named: Sequence[Place]
) -> list[Place]:
    """What is likeliest meant; where another piece of the same text speaks of what is named, rather that one."""
    best, first = likely[0]
    instead = [place for place in named if place.of is first.of and place.at != first.at]
    if first in named or not instead:
        return list(chosen)
    return [*instead, first] if best >= _STANDS_OUT else instead


def _newest_first(text: str) -> list[tuple[int, str]]:
    return list(reversed(list(enumerate(pieces(text)))))
