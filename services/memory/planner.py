"""Plans changes of memory: finds what is meant, and what goes with it. Nothing is changed here."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal
from uuid import UUID

from services.errors import InvalidInput
from services.memory.closure import Closure
from services.memory.content import MAX_SECTIONS, check_size
from services.memory.core import CoreMemory
from services.memory.core_values import CoreValues
from services.memory.filing_answer import FilingOperation
from services.memory.finding import Found, MemoryFinder, is_id
from services.memory.items import SINGLE_FIELDS, apply_changes
from services.memory.model import ChangeRequest, Memory
from services.memory.plans import (
    known_already,
    new_plan,
    own_once,
    plan_of,
    plan_of_leaving_out,
    plan_of_nothing,
    summary_of,
)
from services.text.language import Language, compare, language_of
from services.text.secrets import Secrets
from state.memory import ItemChange, PlainForm, PlannedChange

Kept = Literal["remember", "standing"]
"""Kinds of what is kept: a fact, or a wish about all answers."""
KnownSections = Mapping[str, dict[str, Any]]
"""What core memory holds, by the names of its sections."""
SECTION = "human"
_FIELDS: dict[str, str] = {"remember": "facts", "standing": "wishes"}
_EVENTS = frozenset(["events"])
"""Fields of what matters only when its subject returns: it is written, and not shown in every prompt."""
LONGEST_ITEM = 300
"""Characters of a statement that is kept as one value."""
_EDGES = " ,，.。;；!！"


class ChangePlanner:
    """Plans what a caller, a model or a plain form wants changed."""

    def __init__(self, core: CoreMemory, values: CoreValues, finder: MemoryFinder, secrets: Secrets) -> None:
        self._core = core
        self._secrets = secrets
        self._closure = Closure(finder, values)
        self._finder = finder

    async def texts(self, request: ChangeRequest, what: str, *, ids: Sequence[str] = ()) -> list[str]:
        """Return the texts of the memories that ids or words name."""
        return [each.text for each in (await self.found(request, what, ids)).meant]

    async def found(self, request: ChangeRequest, what: str, ids: Sequence[str]) -> Found:
        """Return what ids or words mean."""
        if not ids:
            return await self._finder.find(request, what)
        named = [await self._finder.by_id(request.owner, each) for each in ids]
        return Found([each for each in named if each is not None])

    async def plan_named(
        self,
        request: ChangeRequest,
        what: str,
        *,
        ids: Sequence[str] = (),
        everything: bool = False,
        language: Language | None = None,
    ) -> PlannedChange:
        """Plan to hide what ids or words name; with `everything`, every statement that has all of the words."""
        if everything:
            found = await self._finder.find(request, what, everything=True)
        else:
            found = await self.found(request, what, ids)
        if not found.meant:
            target = what or ", ".join(ids)
            return plan_of_nothing("forget", target, found.candidates, language or language_for(request, what))
        whole = bool(ids) or (is_id(what) and not everything)
        return await self.plan_forget(request, found.meant, target=what, whole=whole)

    async def plan_remember(
        self, request: ChangeRequest, text: str, *, field: str = "", kind: Kept = "remember"
    ) -> PlannedChange:
        """Plan to keep a statement as a value, or as a written memory where core memory has no room.

        A field that holds one value keeps it: only a replacement takes its place.

        Raises:
            InvalidInput: the text is empty.
        """
        return self._added(request, await self._core.known(request.owner), text, field, kind)

    def plan_kept(
        self,
        request: ChangeRequest,
        known: KnownSections,
        text: str,
        *,
        field: str = "",
        kind: Kept = "remember",
    ) -> PlannedChange:
        """Do the same with the content of each section of core memory, as it is known.

        Raises:
            InvalidInput: the text is empty.
        """
        text = " ".join(self._secrets.without(text).split()).strip(_EDGES)
        if not text:
            raise InvalidInput("text", "is empty: there is nothing to remember")
        language = language_for(request, text)
        content = known.get(SECTION, {})
        name = field or _FIELDS[kind]
        if _holds(content, text):
            return new_plan(kind, known_already(text, language), [text], target=text, has_changes=False)
        plan = new_plan(kind, summary_of(kind, [text], language), [text], target=text)
        item = ItemChange("add", SECTION, name, text)
        if _has_room(known, item):
            plan["items"] = [item]
        else:
            plan["written"] = [text]
        return plan

    async def plan_replace(
        self, request: ChangeRequest, memories: Sequence[Memory], text: str, *, field: str = ""
    ) -> PlannedChange:
        """Plan to put a statement in the place of memories, which are closed.

        Raises:
            InvalidInput: the text is empty.
        """
        values = [each for each in memories if each.kind == "value"]
        longest = max(values, key=lambda each: len(each.text), default=None)
        name = field or (longest.field.partition(".")[0] if longest else "")
        kept = self.plan_kept(request, await self._core.known(request.owner), text, field=name)
        gone = await self._closure.of(request, memories, replaces=True)
        language = language_for(request, text)
        told = summary_of("correct", [text], language, also=gone.also)
        plan = plan_of("correct", text, language, gone, summary=told)
        plan["items"] = [*gone.items, *kept["items"]]
        plan["written"] = kept["written"]
        return plan

    async def plan_end(self, request: ChangeRequest, memory: Memory, on: str) -> PlannedChange:
        """Plan to note until when a memory held; it stays known as what was."""
        mark = (
            f"（到{on}{'年' if on.isdecimal() else ''}为止）"
            if language_of([memory.text]) == "zh"
            else f" (until {on})"
        )
        return await self.plan_replace(request, [memory], memory.text.rstrip(_EDGES) + mark, field=memory.field)

    async def plan_forget(
        self, request: ChangeRequest, memories: Sequence[Memory], *, target: str = "", whole: bool = True
    ) -> PlannedChange:
        """Plan to hide memories with what they were made from.

        Args:
            target: the user's words for it, for the log.
            whole: whether a message that is named by its id goes as a whole.
        """
        gone = await self._closure.of(request, memories, whole=whole)
        language = language_for(request, "" if is_id(target) else target, *gone.told)
        return plan_of("forget", target, language, gone)

    async def plan_leave_out(self, request: ChangeRequest, message_ids: Sequence[UUID]) -> PlannedChange:
        """Plan to keep messages, and what was made of them, out of memory."""
        said = await self._finder.messages(request.owner, message_ids)
        gone = await self._closure.of(request, said, whole=True)
        language = language_of([each.text for each in said])
        return plan_of("do_not_remember", "", language, gone)

    async def plan_filed(
        self, memories: Mapping[str, Memory], operations: Sequence[tuple[FilingOperation, ChangeRequest]]
    ) -> list[PlannedChange]:
        """Plan what filing wants changed: operations, each with the request of the message that it rests on.

        `memories` are those that the model was shown, by their short ids.
        """
        adds = next((request for operation, request in operations if operation.kind == "add"), None)
        known = dict(await self._core.known(adds.owner)) if adds else {}
        planned = []
        for operation, request in operations:
            if operation.kind != "add":
                planned.append(await self._of_filing(memories, operation, request))
                continue
            plan = self._added(request, known, operation.text, operation.field)
            planned.append(plan)
            # The next must not count on room that this one takes.
            known[SECTION] = apply_changes(known.get(SECTION, {}), plan["items"]).content
        return planned

    async def _of_filing(
        self, memories: Mapping[str, Memory], operation: FilingOperation, request: ChangeRequest
    ) -> PlannedChange:
        if operation.kind == "leave_out":
            # A request never takes its own message away, so that it is made outside of it.
            outside = ChangeRequest.outside_of_turns(request.owner, request.trigger)
            return await self.plan_leave_out(outside, [request.message_id])
        memory = memories[operation.memory]
        if operation.kind == "replace":
            plan = await self.plan_replace(request, [memory], operation.text, field=memory.field)
            return _written(plan, operation.text) if memory.kind == "written" else plan
        if operation.kind == "end":
            return await self.plan_end(request, memory, operation.date)
        return await self.plan_forget(request, [memory], target=operation.quote)

    def _added(
        self, request: ChangeRequest, known: KnownSections, text: str, field: str, kind: Kept = "remember"
    ) -> PlannedChange:
        if field in _EVENTS:
            return _written(self.plan_kept(request, known, text), text)
        if field in SINGLE_FIELDS and known.get(SECTION, {}).get(field):
            field = "facts"
        return self.plan_kept(request, known, text, field=field, kind=kind)

    async def plan_forms(
        self, request: ChangeRequest, forms: Sequence[PlainForm], message: str
    ) -> list[PlannedChange]:
        """Plan what the plain forms of a message order; what changes nothing has no operation."""
        planned = []
        for form in forms:
            plan = await self._of_form(request, form, message)
            if plan["own"] == "leave out" and form.kind in {"forget", "forget_everything"}:
                plan["own_text"] = form.rest or None
            planned.append(plan)
        return own_once(planned)

    async def _of_form(self, request: ChangeRequest, form: PlainForm, message: str) -> PlannedChange:
        match form.kind:
            case "forget" | "forget_everything":
                everything = form.kind == "forget_everything"
                plan = await self.plan_named(request, form.what, everything=everything, language=form.language)
                return {**plan, "own": "leave out"}
            case "remember" | "standing":
                return await self.plan_remember(request, form.what[:LONGEST_ITEM], kind=form.kind)
            case "off_record":
                return plan_of_leaving_out(form)
            case "remember_last":
                return await self._of_remembering_last(request, form)
            case "leave_out" | "forget_last":
                if form.rest:
                    return plan_of_leaving_out(form)
                return await self._of_forgetting_last(request, form, message)

    async def _of_forgetting_last(self, request: ChangeRequest, form: PlainForm, message: str) -> PlannedChange:
        """Plan to hide the exchange before this message."""
        previous = await self._finder.previous(request)
        if previous is None:
            return plan_of_nothing("forget", message, (), form.language)
        plan = await self.plan_forget(request, [previous], target=message)
        plan["own"] = "leave out"
        return plan

    async def _of_remembering_last(self, request: ChangeRequest, form: PlainForm) -> PlannedChange:
        previous = None if form.rest else await self._finder.previous(request)
        text = previous.text if previous else form.rest
        if not text:
            return plan_of_nothing("remember", "", (), form.language)
        return await self.plan_remember(request, text[:LONGEST_ITEM])


def language_for(request: ChangeRequest, *texts: str) -> Language:
    """Return the language in which a change is told: the user's, or that of the first text that has any."""
    return request.language or language_of([next((each for each in texts if each.strip()), "")])


def _written(plan: PlannedChange, text: str) -> PlannedChange:
    """Return a plan that writes a text where it would add a value; what memory says already stays as it is."""
    items = [each for each in plan["items"] if each.action != "add"]
    return {**plan, "items": items, "written": [text] if len(items) < len(plan["items"]) else plan["written"]}


def _has_room(known: KnownSections, item: ItemChange) -> bool:
    """Return whether the section takes a value more, or may still be begun."""
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
