"""Plans of what plain forms of a message order."""

from uuid import UUID

from services.memory.model import ChangeRequest
from services.memory.planning.planner import LONGEST_ITEM, ChangePlanner
from services.memory.planning.wording import not_clear, this_message
from state.memory import PlainForm, PlannedChange


async def plan_form(planner: ChangePlanner, request: ChangeRequest, form: PlainForm) -> PlannedChange:
    """Plan what a plain form in a message orders; a plan that changes nothing has no operation."""
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
    """Plan to leave out or forget the exchange before this message, or a message that says something itself."""
    if form.rest or form.what:
        return PlannedChange.leaving_out(this_message(form.language))
    previous = await planner.finder.previous(request)
    if previous is None:
        return PlannedChange.nothing(not_clear("forget", form.order, (), form.language), form.order)
    if form.kind == "leave_out":
        return await planner.plan_leave_out(request, [UUID(previous.id)])
    return (await planner.plan_forget(request, [previous])).of_order(form.order)
