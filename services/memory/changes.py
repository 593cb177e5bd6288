"""Changes of memory: planned, applied and undone alike for tools, the API, plain forms and filing.

A plan names exactly what changes: messages with what memory keeps of them, written memories, values of core
memory. What a removal reaches is its closure. Nothing is removed that the request does not name.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal
from uuid import UUID

from psycopg.rows import tuple_row
from uuid_utils.compat import uuid7

from services.errors import Conflict, InvalidInput
from services.memory.blocks import Owner
from services.memory.change_wording import known_already, nothing_found, summary_of, this_message
from services.memory.closure import Closure, Removal
from services.memory.content import check_size
from services.memory.core import CoreMemory
from services.memory.core_values import CoreValues
from services.memory.finding import Found, MemoryFinder, is_id
from services.memory.items import ItemChange, apply_changes
from services.memory.model import ChangeRequest, Memory
from services.memory.operations import Trigger
from services.memory.plain_forms import plain_forms
from services.memory.removal.hiding import COMMAND, Hiding
from services.platform.connections import Connection
from services.platform.database_errors import again_if_contended
from services.platform.postgres import Database
from services.text.language import Language, language_of
from services.text.secrets import Secrets
from state.memory import (
    Candidate,
    MemoryChange,
    MemoryChangeKind,
    PlainForm,
    PlannedChange,
    PlannedItem,
    PlannedMessage,
)

Kept = Literal["remember", "standing"]
"""Kinds of what is kept: a fact, or a wish about all answers."""
SECTION = "human"
_FIELDS: dict[str, str] = {"remember": "facts", "standing": "wishes"}
LONGEST_ITEM = 300
"""Characters of a statement that is kept as one value."""
_EDGES = " ,，.。;；!！"
_MOST_ATTEMPTS = 60
_USER = re.compile(r"\bthe user\b|用户", re.IGNORECASE)

_LAST_OPERATION = """
SELECT id FROM memory_operations WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
ORDER BY at DESC, id DESC LIMIT 1
"""


_MADE = """
SELECT id, field, query, results FROM memory_operations
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND turn_id = %(turn_id)s AND type = %(type)s
  AND undone_at IS NULL
ORDER BY at, id
"""


class Changes:
    """Keeps, replaces and removes what a caller or a model names; everything is logged and can be undone."""

    def __init__(
        self,
        database: Database,
        core: CoreMemory,
        values: CoreValues,
        finder: MemoryFinder,
        hiding: Hiding,
        secrets: Secrets,
    ) -> None:
        self._database = database
        self._secrets = secrets
        self._core = core
        self._closure = Closure(finder, values)
        self._finder = finder
        self._hiding = hiding
        self._locks: defaultdict[UUID, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def remember(
        self, request: ChangeRequest, text: str, *, replaces: str = "", field: str = "", kind: Kept | None = None
    ) -> MemoryChange:
        """Keep a statement; with `replaces`, in place of what an id or words name.

        If `replaces` names nothing, the text is kept all the same; if it may name several, nothing is changed.
        With `kind` None, a text in the plain form of a standing wish is one, and any other a fact.

        Raises:
            InvalidInput: it cannot be stored.
            NotFound: the user was erased.
            DatabaseUnavailable: the database does not answer.
        """
        forms = plain_forms(_USER.sub(_spoken, text))  # models write of the user in the third person
        kept: Kept = kind or ("standing" if any(each.kind == "standing" for each in forms) else "remember")

        async def plan() -> PlannedChange:
            if not replaces:
                return await self.plan_remember(request, text, field=field, kind=kept)
            found = await self._finder.find(request, replaces, reaches_shared=False)
            if found.meant:
                return await self.plan_replace(request, found.meant, text, field=field)
            if found.candidates:
                return _nothing("correct", replaces, found.candidates, _language(request, text))
            return await self.plan_remember(request, text, field=field, kind=kept)

        return await self._change(request, plan)

    async def correct(self, request: ChangeRequest, what: str, text: str, *, field: str = "") -> MemoryChange:
        """Replace what an id or words name by a text; without `operation_id` in the result nothing was changed.

        Raises:
            InvalidInput: the text cannot be stored.
            NotFound: the user was erased.
            DatabaseUnavailable: the database does not answer.
        """

        async def plan() -> PlannedChange:
            # What is said in a space stays there: what all spaces share is not corrected by it.
            found = await self._finder.find(request, what, reaches_shared=False)
            if not found.meant:
                return _nothing("correct", what, found.candidates, _language(request, text))
            return await self.plan_replace(request, found.meant, text, field=field)

        return await self._change(request, plan)

    async def forget(self, request: ChangeRequest, what: str = "", *, ids: Sequence[str] = ()) -> MemoryChange:
        """Hide what ids or words name from memory; messages stay to be read, and it can be undone.

        Without `operation_id` in the result nothing was changed; `candidates` are what may be meant.

        Raises:
            NotFound: the user was erased.
            DatabaseUnavailable: the database does not answer.
        """
        return await self._change(request, lambda: self.plan_named(request, what, ids=ids))

    async def plan_named(self, request: ChangeRequest, what: str, *, ids: Sequence[str] = ()) -> PlannedChange:
        """Plan to hide what ids or words name.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        found = await self._found(request, what, ids)
        target = what or ", ".join(ids)
        if not found.meant:
            return _nothing("forget", target, found.candidates, _language(request, what))
        return await self.plan_forget(request, found.meant, target=what, whole=bool(ids) or is_id(what))

    async def plan_everything(self, request: ChangeRequest, what: str) -> PlannedChange:
        """Plan to hide every statement that has all of some words.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        found = await self._finder.find(request, what, everything=True)
        if not found.meant:
            return _nothing("forget", what, (), _language(request, what))
        return await self.plan_forget(request, found.meant, target=what, whole=False)

    async def memory(self, request: ChangeRequest, memory_id: str) -> Memory | None:
        """Return the memory that an id names; None = the owner has none of this id.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        return await self._finder.by_id(request.owner, memory_id) if is_id(memory_id) else None

    async def texts(self, request: ChangeRequest, what: str, *, ids: Sequence[str] = ()) -> list[str]:
        """Return the texts of the memories that ids or words name.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        return [each.text for each in (await self._found(request, what, ids)).meant]

    async def _found(self, request: ChangeRequest, what: str, ids: Sequence[str]) -> Found:
        if not ids:
            return await self._finder.find(request, what)
        named = [await self._finder.by_id(request.owner, each) for each in ids if is_id(each)]
        return Found([each for each in named if each is not None])

    async def made(self, request: ChangeRequest) -> list[MemoryChange]:
        """Return what the turn of a request has changed so far, by tools that the model called.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        owner = request.owner
        values = {**vars(owner), "turn_id": request.trigger.turn_id, "type": COMMAND}
        rows = await self._database.fetch(owner.tenant_id, _MADE, values, tuple_row)
        return [
            MemoryChange(
                kind=kind,
                summary=summary_of(kind, [target] if kind == "correct" else results["items"], _language(request)),
                operation_id=str(operation_id),
                items=results["items"],
            )
            for operation_id, kind, target, results in rows
        ]

    async def plan_forms(
        self, request: ChangeRequest, forms: Sequence[PlainForm], message: str
    ) -> list[PlannedChange]:
        """Plan what the plain forms of a message order; what changes nothing has no operation.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        planned = []
        for form in forms:
            plan = await self._of_form(request, form, message)
            if plan["own"] == "leave out" and form.kind in {"forget", "forget_everything"}:
                plan["own_text"] = form.rest or None
            planned.append(plan)
        return _own_once(planned)

    async def plan_remember(
        self, request: ChangeRequest, text: str, *, field: str = "", kind: Kept = "remember"
    ) -> PlannedChange:
        """Plan to keep a statement as a value, or as a written memory where core memory has no room.

        Raises:
            InvalidInput: the text is empty.
            DatabaseUnavailable: the database does not answer.
        """
        text = " ".join(self._secrets.without(text).split()).strip(_EDGES)
        if not text:
            raise InvalidInput("text", "is empty: there is nothing to remember")
        language = _language(request, text)
        known = await self._core.known(request.owner)
        content = known.get(SECTION, {})
        name = field or _FIELDS[kind]
        if _holds(content, text):
            plan = _planned(kind, text, language, [text], has_changes=False)
            plan["change"]["summary"] = known_already(text, language)
            return plan
        plan = _planned(kind, text, language, [text], has_changes=True)
        item = PlannedItem(action="add", section=SECTION, field=name, value=text, old=None)
        if self._has_room(content, item):
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
            DatabaseUnavailable: the database does not answer.
        """
        values = [each for each in memories if each.kind == "value"]
        name = field or (max(values, key=lambda each: len(each.text)).field if values else "")
        kept = await self.plan_remember(request, text, field=name)
        gone = await self._closure.of(request, memories, replaces=True)
        language = _language(request, text)
        plan = _planned("correct", text, language, gone.told, has_changes=True)
        plan["change"]["summary"] = summary_of("correct", [text], language, also=gone.also)
        _take(plan, gone)
        plan["items"] = [*gone.items, *kept["items"]]
        plan["written"], plan["reaches_shared"] = kept["written"], False
        return plan

    async def plan_end(self, request: ChangeRequest, memory: Memory, on: str) -> PlannedChange:
        """Plan to note until when a memory held; it stays known as what was.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        mark = f"（到{on}为止）" if language_of([memory.text]) == "zh" else f" (until {on})"
        return await self.plan_replace(request, [memory], memory.text.rstrip(_EDGES) + mark, field=memory.field)

    async def plan_forget(
        self, request: ChangeRequest, memories: Sequence[Memory], *, target: str = "", whole: bool = True
    ) -> PlannedChange:
        """Plan to hide memories with what they were made from.

        Args:
            request: whose they are.
            memories: what goes.
            target: the user's words for it, for the log.
            whole: whether a message that is named by its id goes as a whole.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        gone = await self._closure.of(request, memories, whole=whole)
        language = _language(request, "" if is_id(target) else target, *gone.told)
        plan = _planned("forget", target, language, gone.told, has_changes=bool(gone), also=gone.also)
        _take(plan, gone)
        return plan

    async def plan_leave_out(self, request: ChangeRequest, message_ids: Sequence[UUID]) -> PlannedChange:
        """Plan to keep messages, and what was made of them, out of memory.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        messages = await self._finder.messages(request.owner, message_ids)
        said = [
            Memory("said", str(each.id), each.content, each.created_at, message_id=each.id) for each in messages
        ]
        gone = await self._closure.of(request, said, whole=True)
        language = language_of([each.content for each in messages])
        plan = _planned("do_not_remember", "", language, gone.told, has_changes=bool(gone))
        _take(plan, gone)
        return plan

    async def nearest(self, request: ChangeRequest, text: str, *, limit: int = 12) -> list[Memory]:
        """Return the values and written memories nearest to a text, by the encoder or by words.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        return await self._finder.nearest(request, text, limit=limit)

    def transaction(self, owner: Owner) -> AbstractAsyncContextManager[Connection]:
        """Open a transaction in which plans are committed.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        return self._database.tenant(owner.tenant_id)

    async def commit(
        self, connection: Connection, owner: Owner, planned: PlannedChange, trigger: Trigger
    ) -> UUID | None:
        """Carry a plan out in the caller's transaction; return the operation, None where nothing changes.

        Raises:
            NotFound: the owner was erased.
            InvalidInput: a value is not accepted.
        """
        return await self._hiding.commit(connection, owner, planned, trigger)

    async def last_operation(self, connection: Connection, owner: Owner) -> UUID | None:
        """Return the newest operation of the owner's log, by which a caller sees whether memory has changed."""
        row = await (await connection.execute(_LAST_OPERATION, vars(owner))).fetchone()
        return row[0] if row else None

    @again_if_contended
    async def _change(self, request: ChangeRequest, plan: Callable[[], Awaitable[PlannedChange]]) -> MemoryChange:
        """Plan and commit a change as one step: what was planned on an older state is planned again."""
        owner = request.owner
        async with self._locks[owner.user_id]:
            for _ in range(_MOST_ATTEMPTS):
                rows = await self._database.fetch(owner.tenant_id, _LAST_OPERATION, vars(owner), tuple_row)
                seen = rows[0][0] if rows else None
                planned = await plan()
                planned["own"] = "keep"
                if planned["change"]["operation_id"] is None:
                    return planned["change"]
                async with self._database.tenant(owner.tenant_id) as connection:
                    await self._hiding.lock(connection, owner)
                    if await self.last_operation(connection, owner) == seen:
                        await self._hiding.commit(connection, owner, planned, request.trigger)
                        return planned["change"]
        raise Conflict("Memory is being changed by others; try again.")

    async def _of_form(self, request: ChangeRequest, form: PlainForm, message: str) -> PlannedChange:
        match form.kind:
            case "forget" | "forget_everything":
                return await self._of_forgetting(request, form)
            case "remember" | "standing":
                return await self.plan_remember(request, form.what[:LONGEST_ITEM], kind=form.kind)
            case "off_record":
                return _left_out(form)
            case "remember_last":
                return await self._of_remembering_last(request, form)
            case "leave_out" | "forget_last":
                return _left_out(form) if form.rest else await self._of_forgetting_last(request, form, message)

    async def _of_forgetting(self, request: ChangeRequest, form: PlainForm) -> PlannedChange:
        found = await self._finder.find(request, form.what, everything=form.kind == "forget_everything")
        if found.meant:
            plan = await self.plan_forget(request, found.meant, target=form.what, whole=False)
        else:
            plan = _nothing("forget", form.what, found.candidates, form.language)
        plan["own"] = "leave out"
        return plan

    async def _of_forgetting_last(self, request: ChangeRequest, form: PlainForm, message: str) -> PlannedChange:
        """Plan to hide the exchange before this message."""
        previous = await self._finder.previous(request)
        if previous is None:
            return _nothing("forget", message, (), form.language)
        said = Memory("said", str(previous.id), previous.content, previous.created_at, message_id=previous.id)
        plan = await self.plan_forget(request, [said], target=message)
        plan["own"] = "leave out"
        return plan

    async def _of_remembering_last(self, request: ChangeRequest, form: PlainForm) -> PlannedChange:
        previous = None if form.rest else await self._finder.previous(request)
        text = previous.content if previous else form.rest
        if not text:
            return _nothing("remember", "", (), form.language)
        return await self.plan_remember(request, text[:LONGEST_ITEM])

    @staticmethod
    def _has_room(content: dict[str, Any], item: PlannedItem) -> bool:
        try:
            check_size(SECTION, apply_changes(content, [ItemChange(**item)]).content)
        except InvalidInput:
            return False
        return True


def _spoken(user: re.Match[str]) -> str:
    return "我" if user[0] == "用户" else "me"


def _language(request: ChangeRequest, *texts: str) -> Language:
    """Return the language in which a change is told: the user's, or that of the first text that has any."""
    return request.language or language_of([next((each for each in texts if each.strip()), "")])


def _holds(content: dict[str, Any], text: str) -> bool:
    """Return whether a section has a text as one of its values."""
    wanted = " ".join(text.split()).strip(_EDGES).casefold()
    for value in content.values():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str) and " ".join(item.split()).strip(_EDGES).casefold() == wanted:
                return True
    return False


def _planned(
    kind: MemoryChangeKind,
    target: str,
    language: Language,
    told: Sequence[str],
    *,
    has_changes: bool,
    also: Sequence[str] = (),
) -> PlannedChange:
    change = MemoryChange(
        kind=kind,
        summary=summary_of(kind, told or [target], language, also=also),
        operation_id=str(uuid7()) if has_changes else None,
        items=list(told),
    )
    if also:
        change["also_said"] = list(also)
    return PlannedChange(
        change=change,
        target=target,
        messages=[],
        episodes=[],
        items=[],
        written=[],
        own="keep",
        own_text=None,
        removed="",
        reaches_shared=kind == "forget",
    )


def _take(plan: PlannedChange, gone: Removal) -> None:
    """Add to a plan what goes."""
    plan["messages"] = [
        PlannedMessage(message_id=str(key), memory_text=text) for key, text in gone.messages.items()
    ]
    plan["episodes"] = gone.episodes
    plan["items"] = gone.items
    plan["removed"] = " ".join([*gone.told, *gone.also])


def _nothing(
    kind: MemoryChangeKind, target: str, candidates: Sequence[Memory], language: Language
) -> PlannedChange:
    named = [Candidate(id=each.id, text=each.text) for each in candidates]
    plan = _planned(kind, target, language, [], has_changes=False)
    plan["change"]["summary"] = nothing_found(target, named, language)
    if named:
        plan["change"]["candidates"] = named
    return plan


def _left_out(form: PlainForm) -> PlannedChange:
    plan = _planned("do_not_remember", "", form.language, [this_message(form.language)], has_changes=True)
    plan["own"] = "off the record" if form.kind == "off_record" else "leave out"
    return plan


def _own_once(planned: list[PlannedChange]) -> list[PlannedChange]:
    """Leave the turn itself out once, by the change that keeps the least of it."""
    order = {"keep": 0, "leave out": 1, "off the record": 2}
    effective = [each for each in planned if each["change"]["operation_id"]]
    decides = max(effective, key=lambda each: order[each["own"]], default=None)
    for each in planned:
        if each is not decides:
            each["own"] = "keep"
    return planned
