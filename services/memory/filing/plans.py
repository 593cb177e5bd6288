"""Plans of what filing wants changed."""

from collections.abc import Mapping, Sequence

from services.memory.core.items import apply_changes
from services.memory.filing.answer import FilingOperation
from services.memory.model import ChangeRequest, Memory
from services.memory.planning.planner import SECTION, ChangePlanner, as_written
from state.memory import PlannedChange


async def plan_filed(
    planner: ChangePlanner,
    memories: Mapping[str, Memory],
    operations: Sequence[tuple[FilingOperation, ChangeRequest]],
) -> list[PlannedChange]:
    """Plan what filing wants changed: operations, each with the request of the message that it rests on.

    `memories` are those that the model was shown, by their short ids.
    """
    adds = next((request for operation, request in operations if operation.kind == "add"), None)
    known = dict(await planner.core.known(adds.owner)) if adds else {}
    planned = []
    for operation, request in operations:
        if operation.kind != "add":
            planned.append(await _of_filing(planner, memories, operation, request))
            continue
        plan = planner.plan_added(request, known, operation.text, operation.field)
        planned.append(plan)
        # The next must not count on room that this one takes.
        known[SECTION] = apply_changes(known.get(SECTION, {}), plan.items).content
    return planned


async def _of_filing(
    planner: ChangePlanner, memories: Mapping[str, Memory], operation: FilingOperation, request: ChangeRequest
) -> PlannedChange:
    if operation.kind == "leave_out":
        # A request never takes its own message away, so that it is made outside of it.
        outside = ChangeRequest.outside_of_turns(request.owner, request.trigger)
        return await planner.plan_leave_out(outside, [request.message_id])
    memory = memories[operation.memory]
    if operation.kind == "replace":
        plan = await planner.plan_replace(request, [memory], operation.text, field=memory.field)
        return as_written(plan, operation.text) if memory.kind == "written" else plan
    return await planner.plan_end(request, memory, operation.date)
