"""Plans changes of memory: finds what is meant and what goes with it. Planning changes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from services.errors import InvalidInput
from services.memory.core.content import MAX_SECTIONS, check_size
from services.memory.core.items import SINGLE_FIELDS, apply_changes
from services.memory.core.store import CoreMemory
from services.memory.core.values import CoreValues
from services.memory.finding.finder import Found, MemoryFinder, is_id
from services.memory.model import ChangeRequest, Memory
from services.memory.planning.closure import Closure
from services.memory.planning.wording import (
    ended,
    known_already,
    not_clear,
    of_one_sentence,
    summary_of,
    with_left,
)
from services.memory.reading.what_stays import what_stays
from services.memory.reading.words import Words, says
from services.text.language import Language, compare, language_of
from services.text.secrets import Secrets
from state.memory import ItemChange, PlannedChange

Kept = Literal["remember", "standing"]
"""Kinds of statements that are kept: a fact, or a standing wish about all answers."""
KnownSections = Mapping[str, dict[str, Any]]
"""Content of core memory, by the names of its sections."""
SECTION = "human"
_FIELDS: dict[str, str] = {"remember": "facts", "standing": "wishes"}
_EVENTS = frozenset(["events"])
"""Fields whose content matters only when its subject returns. It is written as a memory and not shown in every
prompt."""
LONGEST_ITEM = 300
"""Maximum characters of a statement that is kept as a value; a longer one is written as a memory."""
LONGEST_WRITTEN = 2_000
_EDGES = " ,，.。;；!！"
_EASTERNMOST = timedelta(hours=14)
"""Offset of the time zone in which a day begins first; nowhere is a later date “today”."""


class ChangePlanner:
    """Plans what a caller, a model or a plain form wants changed."""

    def __init__(self, core: CoreMemory, values: CoreValues, finder: MemoryFinder, secrets: Secrets) -> None:
        self.core = core
        self._secrets = secrets
        self._closure = Closure(finder, values)
        self._values = values
        self.finder = finder

    async def texts(self, request: ChangeRequest, what: str, *, ids: Sequence[str] = ()) -> list[str]:
        """Return the texts of the memories that ids or words name."""
        return [each.text for each in (await self.found(request, what, ids)).meant]

    async def found(self, request: ChangeRequest, what: str, ids: Sequence[str]) -> Found:
        """Return the memories that ids or words name."""
        if not ids:
            return await self.finder.find(request, what)
        named = [await self.finder.by_id(request.owner, each) for each in ids]
        return Found([each for each in named if each is not None])

    # --- keeping

    async def plan_remember(
        self, request: ChangeRequest, text: str, *, field: str = "", kind: Kept = "remember"
    ) -> PlannedChange:
        """Plan to keep a statement as a value, or as a written memory if core memory has no room. A field that
        holds one value keeps its value, since only a replacement changes it. Raises `InvalidInput` if the text is
        empty."""
        return self.plan_added(request, await self.core.known(request.owner), text, field, kind)

    def plan_kept(
        self, request: ChangeRequest, known: KnownSections, text: str, *, field: str = "", kind: Kept = "remember"
    ) -> PlannedChange:
        """Plan to keep a statement, given the present content of core memory. Raises `InvalidInput` if the text is
        empty."""
        text = " ".join(self._secrets.without(text).split()).strip(_EDGES)
        if not text:
            raise InvalidInput("text", "is empty: there is nothing to remember")
        language = language_for(request, text)
        if _holds(known.get(SECTION, {}), text):
            return PlannedChange.nothing(known_already(kind, text, language), text)
        item = ItemChange("add", SECTION, field or _FIELDS[kind], text)
        has_room = len(text) <= LONGEST_ITEM and _has_room(known, item)
        change = summary_of(kind, [text], language)
        return PlannedChange.keeping(change, items=[item] * has_room, written=[] if has_room else [text])

    def plan_added(
        self, request: ChangeRequest, known: KnownSections, text: str, field: str, kind: Kept = "remember"
    ) -> PlannedChange:
        """Plan to keep a statement in a field. A field that holds one value keeps its value, and an event is
        written as a memory."""
        if field in _EVENTS:
            return as_written(self.plan_kept(request, known, text), text)
        if field in SINGLE_FIELDS and known.get(SECTION, {}).get(field):
            field = "facts"
        return self.plan_kept(request, known, text, field=field, kind=kind)

    # --- replacing and ending

    async def plan_replace(
        self, request: ChangeRequest, memories: Sequence[Memory], text: str, *, field: str = "", what: str = ""
    ) -> PlannedChange:
        """Plan to replace memories by a statement. The memories are closed, and the messages stay as they are.

        Args:
            request: Request with the owner of the memory.
            memories: Memories to replace.
            text: The new statement.
            field: Field of core memory for it; empty = that of the longest replaced value.
            what: Words that name what is replaced; empty = ids do.

        Raises:
            InvalidInput: The text is empty.
        """
        values = [each for each in memories if each.kind == "value"]
        longest = max(values, key=lambda each: len(each.text), default=None)
        name = field or (longest.field.partition(".")[0] if longest else "")
        kept = self.plan_kept(request, await self.core.known(request.owner), text, field=name)
        gone = self._closure.of_statements(memories, what)
        language = language_for(request, text)
        if gone.shared:
            return PlannedChange.nothing(of_one_sentence("correct", what, gone.shared, memories, language), what)
        told = summary_of("correct", gone.told, language, shown=[text])
        return PlannedChange.replacing(
            told,
            text,
            items=[*gone.items, *kept.items],
            episodes=gone.episodes,
            written=[*gone.written, *kept.written],
            closes=await self._closed(request, memories),
        )

    async def plan_end(self, request: ChangeRequest, memory: Memory, on: str) -> PlannedChange:
        """Plan to note the end of a memory. A memory that has ended leaves the profile and is written down as
        past.

        Args:
            request: Request with the owner of the memory.
            memory: The memory.
            on: A year, a month or a day in ISO 8601; an end that is not over yet is noted in the profile.
        """
        text = ended(memory.text.rstrip(_EDGES), on)
        plan = await self.plan_replace(request, [memory], text, field=memory.field)
        today = (datetime.now(UTC) + _EASTERNMOST).date().isoformat()
        return plan if on > today[: len(on)] else as_written(plan, text)

    async def _closed(self, request: ChangeRequest, memories: Sequence[Memory]) -> list[str]:
        """Return the ids of the messages that say nothing except what is closed."""
        owner = request.owner
        filed = {
            (each.field, each.text): each.message_id
            for each in await self._values.read(owner.tenant_id, owner.user_id)
        }
        texts: dict[UUID, list[str]] = {}
        for each in memories:
            source = filed.get((each.field, each.text)) if each.kind == "value" else each.message_id
            if source is not None and source != request.message_id:
                texts.setdefault(source, []).append(each.text)
        said = await self.finder.messages(owner, list(texts)) if texts else []
        return [each.id for each in said if not _stays_beside(each.text, texts[UUID(each.id)])]

    # --- removing

    async def plan_named(
        self,
        request: ChangeRequest,
        what: str,
        *,
        ids: Sequence[str] = (),
        everything: bool = False,
        takes_all: bool = False,
        keep: str = "",
        language: Language | None = None,
    ) -> PlannedChange:
        """Plan to hide the memories that ids or words name.

        Args:
            request: Request with the owner of the memory.
            what: Words that name it.
            ids: Ids that name it in place of words.
            everything: Whether every statement with all of the words is meant.
            takes_all: Whether what stands in one sentence with it may go too, and all statements with the words if
                these have several meanings; without it and `keep`, nothing is changed in such cases.
            keep: Sentence that is to stay of what stands in one sentence with it, in words that stand there.
            language: Language in which the change is told; None = the user's.

        Raises:
            InvalidInput: `keep` says something else.
        """
        found = Found() if everything else await self.found(request, what, ids)
        if everything or (takes_all and found.candidates):
            every = await self.finder.find(request, what, everything=True)
            found = every if everything or every.meant else found
        if not found.meant:
            target = what or ", ".join(ids)
            told = not_clear("forget", target, found.candidates, language or language_for(request, what))
            return PlannedChange.nothing(told, target)
        by_id = bool(ids) or (is_id(what) and not everything)
        plan = await self.plan_forget(
            request, found.meant, what="" if by_id else what, whole=by_id, takes_all=takes_all, keep=keep
        )
        left = [each for each in found.left if _is_left(each, plan)]
        return replace(plan, change=with_left(plan.change, left, language or language_for(request, what)))

    async def plan_forget(
        self,
        request: ChangeRequest,
        memories: Sequence[Memory],
        *,
        what: str = "",
        whole: bool = True,
        takes_all: bool = True,
        keep: str = "",
    ) -> PlannedChange:
        """Plan to hide memories together with what they were made from; see `plan_named`. With `whole`, named
        memories and messages go as a whole."""
        gone = await self._closure.of(request, memories, what=what, whole=whole)
        language = language_for(request, what, *gone.told)
        items, written = gone.items, gone.written
        if gone.shared and keep.strip():
            kept = await self._kept_of(request, gone.texts, keep, [each for each in memories if each.field])
            items, written = [*items, *kept.items], [*written, *kept.written]
        elif gone.shared and not takes_all:
            told = of_one_sentence("forget", what or gone.told[0], gone.shared, memories, language)
            return PlannedChange.nothing(told, what)
        if not gone:
            return PlannedChange.nothing(not_clear("forget", what, (), language), what)
        change = summary_of("forget", gone.told, language)
        if gone.shared and not keep.strip():
            change["also_said"] = gone.shared
        return PlannedChange.forgetting(
            change,
            what,
            messages=gone.messages,
            items=items,
            episodes=gone.episodes,
            written=written,
            removed=gone.told,
        )

    async def _kept_of(
        self, request: ChangeRequest, texts: Sequence[str], keep: str, values: Sequence[Memory]
    ) -> PlannedChange:
        """Plan to keep a sentence made of the words of texts from which something goes."""
        if Words.of(keep).without(Words.of("\n".join(texts))).count:
            raise InvalidInput("keep", f"may only have words of what stands there: {'; '.join(texts)}")
        return await self.plan_remember(request, keep, field=values[0].field if len(values) == 1 else "")

    async def plan_leave_out(self, request: ChangeRequest, message_ids: Sequence[UUID]) -> PlannedChange:
        """Plan to keep messages, and whatever was made from them, out of memory; their conversation still shows
        them."""
        said = await self.finder.messages(request.owner, message_ids)
        language = language_for(request, *(each.text for each in said))
        if not said:
            return PlannedChange.nothing(not_clear("do_not_remember", "", (), language), "")
        gone = await self._closure.of(request, said, whole=True)
        told = summary_of("do_not_remember", [each.text for each in said], language)
        return PlannedChange.leaving_out(told, messages=gone.messages, items=gone.items, episodes=gone.episodes)


def language_for(request: ChangeRequest, *texts: str) -> Language:
    """Return the language in which a change is reported: the user's, or that of the first text with words."""
    return request.language or language_of([next((each for each in texts if each.strip()), "")])


def as_written(plan: PlannedChange, text: str) -> PlannedChange:
    """Return a plan that writes a text as a memory instead of adding a value; a plan for something that memory
    says already is unchanged."""
    return plan.with_written(text) if any(each.action == "add" for each in plan.items) else plan


def _stays_beside(message: str, texts: Sequence[str]) -> str:
    return what_stays(message, lambda clause: any(says(clause, text) for text in texts)).text


def _is_left(memory: Memory, plan: PlannedChange) -> bool:
    """Return whether a plan removes a memory and keeps a part of its text."""
    kept = [*plan.messages.values(), *plan.written, *(str(each.value) for each in plan.items)]
    touched = {*plan.messages, *plan.episodes, *(each.old for each in plan.items)}
    goes = memory.id in touched or (memory.within or memory.text) in touched
    return plan.changes and (not goes or any(memory.text in each for each in kept if each))


def _has_room(known: KnownSections, item: ItemChange) -> bool:
    """Return whether the section can take another value, or may still be created."""
    if SECTION not in known and len(known) >= MAX_SECTIONS:
        return False
    try:
        check_size(SECTION, apply_changes(known.get(SECTION, {}), [item]).content)
    except InvalidInput:
        return False
    return True


def _holds(content: dict[str, Any], text: str) -> bool:
    """Return whether a section has a text as one of its values."""
    items = (item for value in content.values() for item in (value if isinstance(value, list) else [value]))
    return any(isinstance(item, str) and compare(item, text) == "same" for item in items)
