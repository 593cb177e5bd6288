"""Plans of what plain forms of a message order, and of what filing wants changed."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from services.memory.filing_answer import FilingOperation
from services.memory.items import apply_changes
from services.memory.model import ChangeRequest, Memory
from services.memory.planning.planner import LONGEST_ITEM, SECTION, ChangePlanner, as_written
from services.memory.planning.wording import not_clear, this_message
from state.memory import PlainForm, PlannedChange


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


async def plan_form(planner: ChangePlanner, request: ChangeRequest, form: PlainForm) -> PlannedChange:
    """Plan what a plain form of a message orders; what changes nothing has no operation."""
    match form.kind:
        case "forget" | "forget_everything":
            everything = form.kind == "forget_everything"
            plan = await planner.plan_named(request, form.what, everything=everything, language=form.language)
            return plan.of_order(form.order)
        case "remember" | "standing":
            return await planner.plan_remember(request, form.what[:LONGEST_ITEM], kind=form.kind)
        case "off_record":
            return PlannedChange.leaving_out(this_message(form.language))
        case "remember_last":
            return await _of_remembering_last(planner, request, form)
        case "leave_out" | "forget_last":
            return await _of_last(planner, request, form)


async def _of_remembering_last(planner: ChangePlanner, request: ChangeRequest, form: PlainForm) -> PlannedChange:
    previous = None if form.rest else await planner.finder.previous(request)
    text = previous.text if previous else form.rest
    if not text:
        return PlannedChange.nothing(not_clear("remember", "", (), form.language), "")
    return await planner.plan_remember(request, text[:LONGEST_ITEM])


async def _of_last(planner: ChangePlanner, request: ChangeRequest, form: PlainForm) -> PlannedChange:
    """Plan to leave out, or to forget, the exchange before this message; or what else the message says."""
    if form.rest or form.what:
        return PlannedChange.leaving_out(this_message(form.language))
    previous = await planner.finder.previous(request)
    if previous is None:
        return PlannedChange.nothing(not_clear("forget", form.order, (), form.language), form.order)
    if form.kind == "leave_out":
        return await planner.plan_leave_out(request, [UUID(previous.id)])
    return (await planner.plan_forget(request, [previous])).of_order(form.order)
