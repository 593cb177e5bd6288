"""Changes of memory: planned, applied and undone alike for tools, the API, plain forms and filing.

A plan (`planner.py`) names exactly what changes: messages with what memory keeps of them, written memories, values
of core memory. What a removal reaches is its closure. Nothing is removed that the request does not name.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from psycopg.rows import tuple_row

from services.errors import Conflict
from services.memory.finding import MemoryFinder
from services.memory.model import ChangeRequest
from services.memory.operations import LAST_CHANGE
from services.memory.plain_forms import plain_forms
from services.memory.planner import ChangePlanner, Kept, language_for
from services.memory.plans import plan_of_nothing, summary_of
from services.memory.removal.hiding import COMMAND, Hiding
from services.platform.connections import again_if_contended
from services.platform.postgres import Database
from state.memory import MemoryChange, PlannedChange

_MOST_ATTEMPTS = 60
_USER = re.compile(r"\bthe user\b|用户", re.IGNORECASE)
_SPOKEN = {"用户": "我"}
"""Models write of the user in the third person."""

_MADE = """
SELECT id, field, query, results FROM memory_operations
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND turn_id = %(turn_id)s AND type = %(type)s
  AND undone_at IS NULL
ORDER BY at, id
"""


class Changes:
    """Keeps, replaces and removes what a caller or a model names; everything is logged and can be undone."""

    def __init__(self, database: Database, planner: ChangePlanner, finder: MemoryFinder, hiding: Hiding) -> None:
        self._database = database
        self.planner = planner
        self.finder = finder
        self._hiding = hiding
        self._locks: defaultdict[UUID, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def remember(
        self, request: ChangeRequest, text: str, *, replaces: str = "", field: str = "", kind: Kept | None = None
    ) -> MemoryChange:
        """Keep a statement; with `replaces`, in place of what an id or words name.

        A wish about all answers is kept as such, and everything else in the `field`. If `replaces` names
        nothing, the text is kept all the same; if it may name several, nothing is changed. With `kind` None, a
        text in the plain form of a standing wish is one, and any other a fact.

        Raises:
            InvalidInput: it cannot be stored.
        """
        forms = plain_forms(_USER.sub(lambda user: _SPOKEN.get(user[0], "me"), text))
        kept: Kept = kind or ("standing" if any(each.kind == "standing" for each in forms) else "remember")

        name = "" if kept == "standing" else field

        async def plan() -> PlannedChange:
            if not replaces:
                return await self.planner.plan_remember(request, text, field=name, kind=kept)
            found = await self.finder.find(request, replaces, reaches_shared=False)
            if found.meant:
                return await self.planner.plan_replace(request, found.meant, text, field=name)
            if found.candidates:
                return plan_of_nothing("correct", replaces, found.candidates, language_for(request, text))
            return await self.planner.plan_remember(request, text, field=name, kind=kept)

        return await self._change(request, plan)

    async def correct(self, request: ChangeRequest, what: str, text: str, *, field: str = "") -> MemoryChange:
        """Replace what an id or words name by a text; without `operation_id` in the result nothing was changed.

        Raises:
            InvalidInput: the text cannot be stored.
        """

        async def plan() -> PlannedChange:
            # What is said in a space stays there: what all spaces share is not corrected by it.
            found = await self.finder.find(request, what, reaches_shared=False)
            if not found.meant:
                return plan_of_nothing("correct", what, found.candidates, language_for(request, text))
            return await self.planner.plan_replace(request, found.meant, text, field=field)

        return await self._change(request, plan)

    async def forget(self, request: ChangeRequest, what: str = "", *, ids: Sequence[str] = ()) -> MemoryChange:
        """Hide what ids or words name from memory; messages stay to be read, and it can be undone.

        Without `operation_id` in the result nothing was changed; `candidates` are what may be meant.
        """
        return await self._change(request, lambda: self.planner.plan_named(request, what, ids=ids))

    async def made(self, request: ChangeRequest) -> list[MemoryChange]:
        """Return what the turn of a request has changed so far, by tools that the model called."""
        owner = request.owner
        values = {**vars(owner), "turn_id": request.trigger.turn_id, "type": COMMAND}
        rows = await self._database.fetch(owner.tenant_id, _MADE, values, tuple_row)
        language = language_for(request)
        return [
            MemoryChange(
                kind=kind,
                summary=summary_of(kind, [target] if kind == "correct" else results["items"], language),
                operation_id=str(operation_id),
                items=results["items"],
            )
            for operation_id, kind, target, results in rows
        ]

    @again_if_contended
    async def _change(self, request: ChangeRequest, plan: Callable[[], Awaitable[PlannedChange]]) -> MemoryChange:
        """Plan and commit a change as one step: what was planned on an older state is planned again."""
        owner = request.owner
        async with self._locks[owner.user_id]:
            for _ in range(_MOST_ATTEMPTS):
                rows = await self._database.fetch(owner.tenant_id, LAST_CHANGE, vars(owner), tuple_row)
                seen = rows[0][0] if rows else None
                planned = await plan()
                planned["own"] = "keep"
                if planned["change"]["operation_id"] is None:
                    return planned["change"]
                async with self._database.tenant(owner.tenant_id) as connection:
                    await self._hiding.lock(connection, owner)
                    row = await (await connection.execute(LAST_CHANGE, vars(owner))).fetchone()
                    if (row[0] if row else None) == seen:
                        await self._hiding.commit(connection, owner, planned, request.trigger)
                        return planned["change"]
        raise Conflict("Memory is being changed by others; try again.")
