"""Proposals: changes of memory that wait for the user.

Some rest on words that are not the user's own; others were found by the nightly upkeep, in two memories that say
nearly the same or contradict each other (`pairs.py`). They are in the log of operations, so they are removed with
their turn, their conversation and their user.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, LiteralString
from uuid import UUID

from psycopg.rows import class_row, tuple_row

from services.errors import Conflict, NotFound
from services.identity.tenants import user_id_of
from services.memory.changes import Changes
from services.memory.core.blocks import Owner
from services.memory.core.values import CoreValues
from services.memory.finding.finder import is_id
from services.memory.model import ChangeRequest
from services.memory.operations import PROPOSAL, Operation, OperationLog, Trigger
from services.memory.planning.planner import Kept
from services.memory.proposals.listing import ProposalList
from services.memory.proposals.pairs import Pairs, Side
from services.memory.proposals.questions import OPEN, SETTLE, OpenQuestion, OpenQuestions, State
from services.platform.connections import Connection, again_if_contended
from services.platform.postgres import Database
from state.memory import MemoryChange

_PROPOSED: LiteralString = f"{OPEN} AND o.id = %(id)s"

EditKind = Literal["remember", "forget"]


class Proposals(ProposalList):
    """Keeps proposals until the user settles them."""

    def __init__(
        self,
        database: Database,
        changes: Changes,
        log: OperationLog,
        values: CoreValues,
        pairs: Pairs,
        questions: OpenQuestions,
    ) -> None:
        super().__init__(database, values)
        self._changes = changes
        self.questions = questions
        self._log = log
        self.pairs = pairs

    @again_if_contended
    async def add(self, request: ChangeRequest, kind: EditKind, text: str, replaces: str = "") -> UUID:
        """Store a change that a tool wants, to be asked about in the same answer; return its id.

        `text` would be remembered, or names by ids or words what would be forgotten; `replaces` names memories in
        the same way.
        """
        named = [each.strip() for each in (replaces or (text if kind == "forget" else "")).split(",")]
        memory = ",".join(named) if all(map(is_id, named)) else ""
        if memory:
            shown = "; ".join(await self._changes.planner.texts(request, "", ids=named))
            text, replaces = (shown or text, "") if kind == "forget" else (text, shown or replaces)
        async with self._database.tenant(request.owner.tenant_id) as connection:
            return await self.add_in(connection, request, kind, text, replaces, memory, is_asked=True)

    async def add_in(
        self,
        connection: Connection,
        request: ChangeRequest,
        kind: EditKind,
        text: str,
        replaces: str = "",
        memory: str = "",
        *,
        is_asked: bool = False,
        by: str = "",
    ) -> UUID:
        """Store a change that waits, in the caller's transaction; return its id, or that of an equal one that
        already waits.

        If the maximum number wait, the oldest is closed. `memory` lists the ids of what would go, separated by
        commas; `is_asked` says that the turn itself asks the user; `by` is as in `OpenQuestion`.
        """
        text, replaces = text.replace("\x00", ""), replaces.replace("\x00", "")
        for each in await self.questions.make_room(connection, request.owner):
            if (each.kind, each.text, each.memory) == (kind, text, memory):  # compared here: it may be encrypted
                return each.id
        asked = {"asked": str(request.trigger.turn_id)} if is_asked and request.trigger.turn_id else {}
        value = {"text": text, "replaces": replaces or None, "memory": memory or None}
        operation = Operation(
            PROPOSAL, kind, new_value=value, results={"state": "waiting", **({"by": by} if by else {}), **asked}
        )
        owner = request.owner
        whose = replace(request.trigger, expert_id=owner.expert_id, space_id=owner.space_id, details={})
        return await self._log.append(connection, owner.tenant_id, owner.user_id, operation, whose)

    async def settle(self, tenant_id: UUID, user: str, proposal_id: UUID, *, accept: bool) -> MemoryChange | None:
        """Carry a proposal out, or reject it; return the change of an accepted one that is not about two
        memories. Raises `NotFound` if the user has no such proposal, and `Conflict` if it was settled before,
        or what it is about has changed since."""
        user_id = await user_id_of(self._database, tenant_id, user)
        values: dict[str, Any] = {"tenant_id": tenant_id, "user_id": user_id, "id": proposal_id}
        proposed = await self._waiting(values)
        if accept:
            return await self._accept(values, proposed, Trigger("user"))
        await self._settle(values, "rejected")
        return None

    async def confirm(self, owner: Owner, proposal_id: UUID, request: ChangeRequest) -> MemoryChange:
        """Carry a proposal out after the user's yes in a turn. Raises `NotFound` if the user has no such
        proposal under this expert in this space, and `Conflict` if it was settled before, or no earlier turn
        has asked the user."""
        values = {**vars(owner), "id": proposal_id}
        proposed = await self._waiting(values, owner)
        if proposed.asked_in in {None, request.trigger.turn_id}:
            raise Conflict("The user has not been asked yet: ask them first.")
        change = await self._accept(values, proposed, request.trigger)
        assert change is not None  # noqa: S101 — no turn asks about two memories
        return change

    async def _waiting(self, values: dict[str, Any], owner: Owner | None = None) -> OpenQuestion:
        """Return a proposal that waits; with `owner`, only if it is of this expert and space."""
        rows = await self._database.fetch(values["tenant_id"], _PROPOSED, values, class_row(OpenQuestion))
        if not rows or (owner and (rows[0].expert_id, rows[0].space_id) != (owner.expert_id, owner.space_id)):
            raise NotFound(f"There is no proposal {values['id']}.")
        if rows[0].state != "waiting":
            raise Conflict(f"The proposal {values['id']} was settled before.")
        return rows[0]

    async def _accept(self, values: dict[str, Any], proposed: OpenQuestion, by: Trigger) -> MemoryChange | None:
        """Carry a proposal out; return the change, or None for a proposal about two memories."""
        owner = Owner(values["tenant_id"], values["user_id"], proposed.expert_id, proposed.space_id)
        trigger = replace(by, message_id=None, expert_id=owner.expert_id, accepts=proposed.id)
        if proposed.kept is not None and proposed.dropped is not None:
            sides = Side(proposed.kept, proposed.kept_value), Side(proposed.dropped, proposed.dropped_value)
            await self.pairs.carry_out(owner, *sides, trigger)
            return None
        change = await self._carry_out(owner, proposed, trigger)
        if change["operation_id"] is None:
            await self._settle(values, "accepted")
        return change

    async def close(self, request: ChangeRequest, ids: Sequence[str]) -> str:
        """Reject those of some proposals that still wait, after the user's no; return the note for the model, or
        nothing."""
        owner, closed = request.owner, []
        for each in ids:
            try:
                values = {**vars(owner), "id": UUID(each)}
                await self._waiting(values, owner)
                await self._settle(values, "rejected")
            except (ValueError, Conflict, NotFound):
                continue
            closed.append(each)
        return f"Closed, nothing was changed: {', '.join(closed)}." if closed and len(closed) == len(ids) else ""

    async def _carry_out(self, owner: Owner, proposed: OpenQuestion, trigger: Trigger) -> MemoryChange:
        request = ChangeRequest.outside_of_turns(owner, replace(trigger, expert_id=None))
        ids = [each for each in proposed.memory.split(",") if each]
        if proposed.kind == "forget":
            return await self._changes.forget(request, "" if ids else proposed.text, ids=ids)
        kind: Kept | None = "standing" if proposed.by == "feedback" else None
        replaces = proposed.memory or proposed.replaces
        return await self._changes.remember(request, proposed.text, replaces=replaces, kind=kind)

    async def _settle(self, values: dict[str, Any], state: State) -> None:
        """Change the state of a proposal that waits. Raises `Conflict` if it no longer waits."""
        settled = {**values, "ids": [values["id"]], "state": state}
        if not await self._database.fetch(values["tenant_id"], SETTLE, settled, tuple_row):
            raise Conflict(f"The proposal {values['id']} was settled before.")
