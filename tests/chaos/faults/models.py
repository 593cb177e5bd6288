"""Models that answer without end, or with calls of tools that make no sense."""

import asyncio
from collections.abc import Awaitable, Callable

import httpx

from tests.chaos.cluster import echo
from tests.chaos.faults.rig import Rig
from tests.support.model_server import Received, Reply, ToolCall

_WITH = "strange"
"""Begins the messages that get a strange answer; all others are answered as usual, beside them."""
_ASKED = 4

Answer = Callable[[int], Reply | None]
"""What the model says in a round of a turn, counted from 0; None = the usual answer."""


def strange(
    answer: Answer, *, ends_as: set[int], within_s: float, finish: str = "stop"
) -> Callable[[Rig], Awaitable[None]]:
    """Ask a model that answers so, several at once.

    Args:
        answer: of the model.
        ends_as: HTTP statuses that are right for such a turn.
        within_s: how long it may take.
        finish: how the answers end.
    """

    async def bring(rig: Rig) -> None:
        def script(received: Received) -> Reply:
            places = [place for place, (role, _) in enumerate(received.prompt) if role == "user"]
            said = received.prompt[places[-1]][1] if places else ""
            if not said.startswith(_WITH):
                return echo(received)
            results = sum(role in {"tool", "function_call_output"} for role, _ in received.prompt[places[-1] :])
            return answer(results) or Reply([said])

        rig.model.default = script
        async with httpx.AsyncClient() as http:
            asked = await asyncio.gather(
                *(rig.ask(http, f"{_WITH}-{number}", f"u-{number}", answer=None) for number in range(_ASKED))
            )
        for one in asked:
            rig.findings.expect(f"{one.message} got {one.status} {one.problem}", one.status in ends_as)
            rig.findings.expect(f"{one.message} ended by {one.finish}", one.finish in {"", finish})
            rig.findings.expect(f"{one.message} took {one.seconds:.0f} s", one.seconds <= within_s)
        rig.model.default = echo

    return bring


def a_token_a_minute(_: int) -> Reply:
    """Three words, and a minute after each."""
    return Reply(["One ", "two ", "three."], gap_s=60)


def ten_megabytes(_: int) -> Reply:
    """Ten million characters."""
    return Reply(["word " * 2000] * 1000)


def endless_calls(_: int) -> Reply:
    """A tool, whatever it was told before, and offered or not."""
    return Reply(tool_calls=[ToolCall("current_time", {})])


def invalid_arguments(number: int) -> Reply | None:
    """Arguments that no tool takes, then an answer."""
    wrong = ToolCall("search_memory", {"query": {"deep": [1, None]}, "nonsense": "x" * 1000})
    return None if number else Reply(tool_calls=[wrong])


def unknown_tool(number: int) -> Reply | None:
    """A tool that nobody offered, then an answer."""
    return None if number else Reply(tool_calls=[ToolCall("format_disk", {"now": True})])
