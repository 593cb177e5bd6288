"""The change of memory on which a review decided, in the form of one that rules planned."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from services.memory.commands.change_wording import this_message
from services.memory.commands.effects import plan_of, rewritten
from services.memory.commands.holdings import CoreItem
from services.memory.commands.pieces import Stored
from services.memory.commands.reading import ResolutionRequest
from services.memory.commands.resolution import Resolution, to_keep
from services.text.mentions import Subject
from state.memory import Command, CommandScope, MemoryChangeKind, PlannedChange, Recognised


async def reviewed_change(
    resolution: Resolution,
    asking: ResolutionRequest,
    command: Literal["forget", "correct", "leave_out", "standing"],
    texts: Sequence[tuple[Stored | CoreItem, str]],
    own: str,
) -> PlannedChange:
    """Return the change: some memories with their texts afterwards, and what is kept of the message.

    Raises:
        DatabaseUnavailable: the database does not answer.
    """
    kind: MemoryChangeKind = "do_not_remember" if command == "leave_out" else command
    asking = replace(asking, recognised=Recognised((), own))
    if kind == "standing":
        made = Command("standing", "stated", target=own or asking.message)
        return plan_of(made, to_keep(made, asking, (await resolution.reader.core(asking)).own, ()), asking)
    scope: CommandScope = "present" if kind == "do_not_remember" else "stated"
    found = rewritten(kind, texts)
    if kind == "do_not_remember":
        found.own, found.told = "off the record", found.told or [this_message(asking.language)]
    await resolution.leave_out_answers(asking, found, Subject.of(found.gives_away))
    return plan_of(Command(kind, scope), found, asking)
