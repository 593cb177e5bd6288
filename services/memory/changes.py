"""Changes of memory: planned, applied and undone in the same way for tools, the API, plain forms and filing.

A plan (`planner.py`) names exactly what changes: messages with the text that memory keeps of them, written
memories, and values of core memory. The closure (`closure.py`) is everything that a removal reaches. Nothing is
removed that the request does not name, and replacing a statement changes no message.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from uuid import UUID

from psycopg.rows import tuple_row

from services.errors import Conflict
from services.memory.finding.finder import Found, MemoryFinder, is_id
from services.memory.model import ChangeRequest
from services.memory.operations import LAST_CHANGE
from services.memory.planning.planner import ChangePlanner, Kept, language_for
from services.memory.planning.wording import not_clear, told
from services.memory.reading.plain_forms import plain_forms
from services.memory.reading.quotes import folded
from services.memory.removal.hiding import COMMAND, Hiding
from services.platform.connections import again_if_contended
from services.platform.postgres import Database
from state.memory import MemoryChange, PlannedChange

_MOST_ATTEMPTS = 60
_USER = re.compile(r"\bthe user\b|用户", re.IGNORECASE)
_SPOKEN = {"用户": "我"}
"""Replacement of the third person, in which models write about the user, by the first."""

_MADE = """
SELECT id, field, query, results FROM memory_operations
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND type = %(type)s AND undone_at IS NULL
  AND (turn_id = %(turn_id)s OR id = ANY(%(operations)s::uuid[]))
ORDER BY at, id
"""


# What is off the record, with every operation of its turn that left something out, and what was played.
_LEFT_OUT = """
SELECT m.content, array(
    SELECT part.id FROM memory_operations part
    WHERE part.tenant_id = o.tenant_id AND part.user_id = o.user_id AND part.type = o.type AND part.field = o.field
      AND part.undone_at IS NULL AND (part.id = o.id OR part.turn_id = o.turn_id)
    ORDER BY part.at DESC, part.id DESC), o.at
FROM memory_operations o
JOIN messages m ON m.retraction_id = o.id AND m.tenant_id = o.tenant_id AND m.role = 'user' AND m.off_record
WHERE o.tenant_id = %(tenant_id)s AND o.user_id = %(user_id)s AND o.type = %(type)s
  AND o.field = 'do_not_remember' AND o.undone_at IS NULL
  AND (%(anywhere)s OR m.conversation_id = %(conversation_id)s)
UNION ALL
SELECT m.content, ARRAY[e.retraction_id], e.held_at
FROM episodes e JOIN messages m ON m.id = ANY(e.source_message_ids) AND m.role = 'user'
WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.held_at IS NOT NULL
  AND e.retracted_at IS NULL AND e.retraction_id IS NOT NULL
  AND (%(anywhere)s OR e.conversation_id = %(conversation_id)s)
ORDER BY 3 DESC LIMIT CASE WHEN %(anywhere)s THEN NULL ELSE 1 END
"""


class Changes:
    """Keeps, replaces and removes what a caller or a model names. Every change is logged and can be undone."""

    def __init__(self, database: Database, planner: ChangePlanner, finder: MemoryFinder, hiding: Hiding) -> None:
        self._database = database
        self.planner = planner
        self.finder = finder
        self._hiding = hiding
        self._locks: defaultdict[UUID, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def remember(
        self, request: ChangeRequest, text: str, *, replaces: str = "", field: str = "", kind: Kept | None = None
    ) -> MemoryChange:
        """Keep a statement; with `replaces`, in place of the memory that an id or words name.

        A standing wish about all answers is kept as a wish, any other statement in the `field`. If `replaces`
        names nothing, the text is kept anyway; if it may name several memories, nothing is changed. With `kind`
        None, a text in the plain form of a standing wish is a wish, any other text a fact. Raises `InvalidInput`
        if it cannot be stored.
        """
        forms = plain_forms(_USER.sub(lambda user: _SPOKEN.get(user[0], "me"), text))
        kept: Kept = kind or ("standing" if any(each.kind == "standing" for each in forms) else "remember")

        name = "" if kept == "standing" else field

        async def plan() -> PlannedChange:
            found = await self.finder.find(request, replaces, reaches_shared=False) if replaces else Found()
            if found.meant:
                named = "" if is_id(replaces) else replaces
                return await self.planner.plan_replace(request, found.meant, text, field=name, what=named)
            if found.candidates:
                change = not_clear("correct", replaces, found.candidates, language_for(request, text))
                return PlannedChange.nothing(change, replaces)
            return await self.planner.plan_remember(request, text, field=name, kind=kept)

        return await self._change(request, plan)

    async def correct(self, request: ChangeRequest, what: str, text: str, *, field: str = "") -> MemoryChange:
        """Replace what an id or words name by a text. A result without `operation_id` means that nothing was
        changed. Raises `InvalidInput` if the text cannot be stored."""

        async def plan() -> PlannedChange:
            # Statements made in a space stay in it: they do not correct what all spaces share.
            found = await self.finder.find(request, what, reaches_shared=False)
            if not found.meant:
                change = not_clear("correct", what, found.candidates, language_for(request, text))
                return PlannedChange.nothing(change, what)
            named = "" if is_id(what) else what
            return await self.planner.plan_replace(request, found.meant, text, field=field, what=named)

        return await self._change(request, plan)

    async def forget(
        self,
        request: ChangeRequest,
        what: str = "",
        *,
        ids: Sequence[str] = (),
        takes_all: bool = False,
        keep: str = "",
    ) -> MemoryChange:
        """Hide from memory what ids or words name. Messages can still be read, and the change can be undone.

        A result without `operation_id` means that nothing was changed. Then `candidates` are memories that may be
        meant, and `also_said` lists what would go along, unless `takes_all` agrees to that or `keep` names what
        stays.

        Raises:
            InvalidInput: `keep` is not a part of what stands there.
        """
        return await self._change(
            request, lambda: self.planner.plan_named(request, what, ids=ids, takes_all=takes_all, keep=keep)
        )

    async def leave_out(self, request: ChangeRequest, message_ids: Sequence[UUID]) -> MemoryChange:
        """Keep messages out of memory. Their conversation still shows them, and the change can be undone."""
        outside = ChangeRequest.outside_of_turns(request.owner, request.trigger)
        outside = replace(outside, language=request.language)
        return await self._change(outside, lambda: self.planner.plan_leave_out(outside, message_ids))

    async def left_out(self, request: ChangeRequest, quote: str) -> list[tuple[str, list[UUID]]]:
        """Return the messages off the record that contain a quote, with the operations to undo.

        The quote is looked for in all of the user's conversations. Without a quote, return the newest in the
        request's conversation.
        """
        owner = request.owner
        values = {
            **vars(owner),
            "conversation_id": request.conversation_id,
            "type": COMMAND,
            "anywhere": bool(quote.strip()),
        }
        found = await self._database.fetch(owner.tenant_id, _LEFT_OUT, values, tuple_row)
        rows: list[tuple[str, list[UUID]]] = [row[:2] for row in found]
        return [each for each in rows if folded(quote) in folded(each[0])]

    async def made(self, request: ChangeRequest, operations: Sequence[str] = ()) -> list[tuple[MemoryChange, str]]:
        """Return the changes that tools called by the model have made in the request's turn so far.

        Args:
            request: Request of the turn.
            operations: Ids of changes that another agent has made for it.

        Returns:
            Each change with the words that named what it changed; empty = ids named it.
        """
        owner = request.owner
        values = {**vars(owner), "turn_id": request.trigger.turn_id, "type": COMMAND, "operations": [*operations]}
        rows = await self._database.fetch(owner.tenant_id, _MADE, values, tuple_row)
        language = language_for(request)
        return [
            (
                MemoryChange(
                    kind=kind,
                    summary=told(kind, [target] if kind == "correct" else results["items"], language),
                    operation_id=str(operation_id),
                    items=results["items"],
                ),
                target or "",
            )
            for operation_id, kind, target, results in rows
        ]

    @again_if_contended
    async def _change(self, request: ChangeRequest, plan: Callable[[], Awaitable[PlannedChange]]) -> MemoryChange:
        """Plan and commit a change as one step. A plan made on an older state is made again."""
        owner = request.owner
        async with self._locks[owner.user_id]:
            for _ in range(_MOST_ATTEMPTS):
                rows = await self._database.fetch(owner.tenant_id, LAST_CHANGE, vars(owner), tuple_row)
                seen = rows[0][0] if rows else None
                planned = await plan()
                if not planned.changes:
                    return planned.change
                async with self._database.tenant(owner.tenant_id) as connection:
                    await self._hiding.lock(connection, owner)
                    row = await (await connection.execute(LAST_CHANGE, vars(owner))).fetchone()
                    if (row[0] if row else None) == seen:
                        await self._hiding.commit(connection, owner, planned, request.trigger)
                        return planned.change
        raise Conflict("Memory is being changed by others; try again.")
