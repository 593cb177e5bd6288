"""Plans of changes of memory: what exactly each changes, as it is shown and logged. Pure."""

from collections.abc import Sequence

from uuid_utils.compat import uuid7

from services.memory.change_wording import nothing_found, summary_of, this_message
from services.memory.closure import Removal
from services.memory.model import Memory
from services.text.language import Language
from state.memory import Candidate, MemoryChange, MemoryChangeKind, PlainForm, PlannedChange, PlannedMessage


def new_plan(
    kind: MemoryChangeKind, summary: str, items: Sequence[str] = (), *, target: str = "", has_changes: bool = True
) -> PlannedChange:
    """Return a plan that changes nothing yet; without `has_changes` it never will.

    `items` = what is removed, kept or corrected, in brief; `target` = what the user named, for the log.
    """
    operation_id = str(uuid7()) if has_changes else None
    return PlannedChange(
        change=MemoryChange(kind=kind, summary=summary, operation_id=operation_id, items=list(items)),
        target=target,
        messages=[],
        episodes=[],
        items=[],
        written=[],
        own="keep",
        own_text=None,
        removed="",
        reaches_shared=False,
    )


def plan_of(
    kind: MemoryChangeKind, target: str, language: Language, gone: Removal, *, summary: str = ""
) -> PlannedChange:
    """Return the plan by which something goes; a correction changes something in any case."""
    also = gone.also
    told = summary or summary_of(kind, gone.told or [target], language, also=also)
    plan = new_plan(kind, told, gone.told, target=target, has_changes=bool(gone) or kind == "correct")
    if also:
        plan["change"]["also_said"] = list(also)
    plan["messages"] = [
        PlannedMessage(message_id=str(key), memory_text=text) for key, text in gone.messages.items()
    ]
    plan["episodes"], plan["items"] = gone.episodes, gone.items
    plan["removed"] = " ".join([*gone.told, *also])
    plan["reaches_shared"] = kind == "forget"
    return plan


def plan_of_nothing(
    kind: MemoryChangeKind, target: str, candidates: Sequence[Memory], language: Language
) -> PlannedChange:
    """Return the plan that changes nothing, as nothing, or more than one thing, may be meant."""
    named = [Candidate(id=each.id, text=each.text) for each in candidates]
    plan = new_plan(kind, nothing_found(target, named, language), target=target, has_changes=False)
    if named:
        plan["change"]["candidates"] = named
    return plan


def plan_of_leaving_out(form: PlainForm) -> PlannedChange:
    """Return the plan by which the turn itself is not remembered."""
    this = this_message(form.language)
    plan = new_plan("do_not_remember", summary_of("do_not_remember", [this], form.language), [this])
    plan["own"] = "off the record" if form.kind == "off_record" else "leave out"
    return plan


def own_once(planned: list[PlannedChange]) -> list[PlannedChange]:
    """Leave the turn itself out once, by the change that keeps the least of it."""
    order = {"keep": 0, "leave out": 1, "off the record": 2}
    effective = [each for each in planned if each["change"]["operation_id"]]
    decides = max(effective, key=lambda each: order[each["own"]], default=None)
    for each in planned:
        if each is not decides:
            each["own"] = "keep"
    return planned
