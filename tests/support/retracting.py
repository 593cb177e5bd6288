"""Facts that users told and memory is asked to forget, and models that repeat all they are shown."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from services.bootstrap import Services
from services.memory.core.blocks import Owner
from services.memory.model import ChangeRequest
from services.memory.operations import Trigger
from state.memory import MemoryChange
from state.turn import OpenTurn
from tests.support.model_server import Received, Reply
from tests.support.turns import exchange

SECRET = "asthma"
"""Word that occurs in no text of memory once it is forgotten."""
WHOLE = "I have had asthma since Hamburg."
"""Message of which nothing stays."""
FILED = "I have had asthma since Hamburg"
"""Value that is filed from it."""
PART = "I have had asthma since Hamburg. My sister lives in Porto, not in Hamburg."
"""Message of which the second statement stays."""

Answer = Callable[[Received], Reply]


async def long_talk(services: Services, told: str, count: int, length: int = 0, **values: Any) -> OpenTurn:
    """Tell a fact in one turn, then have `count` more turns; return the first."""
    turn = await exchange(services.turns, told, f"Noted: {told}", **values)
    for number in range(count):
        await exchange(services.turns, f"question {number} {'x' * length}", f"answer {number}", **values)
    return turn


async def forget(services: Services, owner: Owner, what: str = FILED) -> MemoryChange:
    """Make memory forget something that it knows."""
    change = await services.memory.changes.forget(ChangeRequest.outside_of_turns(owner, Trigger("user")), what)
    assert change["operation_id"], change
    return change


def shown(received: Received) -> str:
    """All that a request shows to the model."""
    return "\n".join(text for _, text in received.prompt)


def repeating(received: Received) -> Reply:
    """Reply as a model that repeats what it is shown."""
    return Reply([received.prompt[-1][1][:900]])


def retelling(received: Received) -> Reply:
    """Reply as a model that summarises a visit or a day by what it is shown."""
    return Reply([json.dumps({"summary": received.prompt[-1][1][:900], "key_topics": ["Health"]})])


def interrupted(work: Callable[[], Awaitable[Any]], answer: Answer, *, at: int = 1) -> Answer:
    """Return a model that answers the request with this number only after something else was done."""
    loop = asyncio.get_running_loop()
    asked = 0

    async def do() -> None:
        await work()

    def answered(received: Received) -> Reply:
        nonlocal asked
        asked += 1
        if asked == at:
            asyncio.run_coroutine_threadsafe(do(), loop).result(30)
        return answer(received)

    return answered
