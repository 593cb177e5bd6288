"""Plans of filing: an operation of the model as a planned change of memory."""

from collections.abc import Mapping, Sequence

from services.memory.blocks import Owner
from services.memory.core import CoreMemory
from services.memory.filing_answer import FilingOperation
from services.memory.filing_store import StoredMessage
from services.memory.items import SINGLE_FIELDS, ItemChange, apply_changes
from services.memory.model import ChangeRequest, Memory
from services.memory.operations import Trigger
from services.memory.planner import SECTION, ChangePlanner, KnownSections
from state.memory import PlannedChange

_EVENTS = frozenset(["event", "events", "decision", "decisions", "outcome", "outcomes"])
"""Fields of what matters only when its subject returns: it is written, and not shown in every prompt."""


class FilingPlans:
    """Plans operations."""

    def __init__(self, planner: ChangePlanner, core: CoreMemory) -> None:
        self._planner = planner
        self._core = core

    async def plan_all(
        self,
        owner: Owner,
        memories: Mapping[str, Memory],
        operations: Sequence[tuple[FilingOperation, StoredMessage]],
    ) -> list[PlannedChange]:
        """Return what each operation changes.

        Args:
            memories: those that the model was shown, by their short ids.
            operations: each with the user's message that it rests on.
        """
        adds = any(operation.kind == "add" for operation, _ in operations)
        known = dict(await self._core.known(owner)) if adds else {}
        planned = []
        for operation, message in operations:
            plan = await self._plan(owner, memories, known, operation, message)
            planned.append(plan)
            if operation.kind == "add":  # the next must not count on room that this one takes
                added = [ItemChange(**item) for item in plan["items"]]
                known[SECTION] = apply_changes(known.get(SECTION, {}), added).content
        return planned

    async def _plan(
        self,
        owner: Owner,
        memories: Mapping[str, Memory],
        known: KnownSections,
        operation: FilingOperation,
        message: StoredMessage,
    ) -> PlannedChange:
        request = request_of(owner, message)
        if operation.kind == "leave_out":
            # A request never takes its own message away, so that it is made outside of it.
            outside = ChangeRequest.outside_of_turns(owner, request.trigger)
            return await self._planner.plan_leave_out(outside, [message.id])
        if operation.kind == "add":
            return self._addition(request, known, operation)
        memory = memories[operation.memory]
        if operation.kind == "replace":
            plan = await self._planner.plan_replace(request, [memory], operation.text, field=memory.field)
            return _written(plan, operation.text) if memory.kind == "written" else plan
        if operation.kind == "end":
            return await self._planner.plan_end(request, memory, operation.date)
        return await self._planner.plan_forget(request, [memory], target=operation.quote)

    def _addition(self, request: ChangeRequest, known: KnownSections, operation: FilingOperation) -> PlannedChange:
        field = operation.field
        if field in _EVENTS:
            return _written(self._planner.plan_kept(request, known, operation.text), operation.text)
        # Adding to it would replace what it holds, which only `replace` may.
        if field in SINGLE_FIELDS and known.get(SECTION, {}).get(field):
            field = "facts"
        return self._planner.plan_kept(request, known, operation.text, field=field)


def _written(plan: PlannedChange, text: str) -> PlannedChange:
    """Return a plan that writes a text where it would add a value; what memory says already stays as it is."""
    items = [each for each in plan["items"] if each["action"] != "add"]
    return {**plan, "items": items, "written": [text] if len(items) < len(plan["items"]) else plan["written"]}


def request_of(owner: Owner, message: StoredMessage) -> ChangeRequest:
    """Return for whom memory is changed, and because of which message."""
    ids = (message.id, message.conversation_id, message.turn_id, owner.expert_id, owner.space_id)
    return ChangeRequest(owner, message.conversation_id, message.id, Trigger("filing", *ids))
