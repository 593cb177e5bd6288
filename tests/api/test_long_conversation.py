"""Sixty turns over HTTP, in soak twice as many: what the first said is known in the last, and nothing is lost."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from services.summaries.schedule import SUMMARISE
from tests.support.jobs import statuses, until
from tests.support.model_server import ModelServer, Received, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]

_FACT = re.compile(r"fact-\d+ ")
_VOLATILE = {"message", "core_memory_changes", "recall", "time"}
_SUMMARY = "Earlier in this conversation:"


def _is_summary(received: Received) -> bool:
    return received.prompt[0][1].startswith("You write a summary")


def _stand_in(received: Received) -> Reply:
    """It keeps every fact in a summary, and answers everything else with the number of the message."""
    if _is_summary(received):
        return Reply([f"They talk of {''.join(dict.fromkeys(_FACT.findall(received.prompt[1][1])))}and more."])
    return Reply([f"Answer to {received.prompt[-1][1][:8]} {'and so on ' * 15}"])


async def _play(http: httpx.AsyncClient, services: Services, turns: int) -> list[dict[str, Any]]:
    """Play this many turns, each after the job of the one before; return their final events."""
    ends = []
    for number in range(turns):
        fact = f"I remember fact-{number} well. " if number % 10 == 0 else ""
        body = {
            "user_id": "u-1",
            "session_id": "s-1",
            "message": f"<{number:03}>  {fact}{'the ferry was late and the sea was grey ' * 5}",
            "debug": True,
        }
        answer = await http.post("/api/v1/chat", json=body)
        assert answer.status_code == 200, answer.text
        ends.append(answer.json())

        async def nothing_to_do() -> bool:
            return not {"todo", "doing"} & set(await statuses(services.database, SUMMARISE))

        await until(nothing_to_do)
    return ends


def _is_turn(received: Received) -> bool:
    """Whether it asks for the answer of a turn, and not for a summary or for what to remember."""
    return received.prompt[-1][1].startswith("<")


def _numbers(prompt: Sequence[tuple[str, str]]) -> list[int]:
    """The turns whose messages stand in a prompt's history, the new message apart."""
    return [int(text[1:4]) for role, text in prompt[:-1] if role == "user" and text != "…"]


@pytest.mark.slow
@pytest.mark.parametrize("turns", [60, pytest.param(120, marks=pytest.mark.soak)])
async def test_a_long_conversation_stays_bounded_and_loses_nothing(
    url: str, services: Services, model_server: ModelServer, turns: int
) -> None:
    model_server.default = _stand_in
    services.jobs.start_worker()
    async with httpx.AsyncClient(base_url=url, timeout=30) as http:
        ends = await _play(http, services, turns)
    asked = [received for received in model_server.requests if _is_turn(received)]
    summaries = [received for received in model_server.requests if _is_summary(received)]

    # Five turns for the first, then every three (six messages, five are enough): one call each.
    parts = [received for received in summaries if "a part of a long" in received.prompt[0][1]]
    assert len(parts) <= 1, "the transcript fills one call, which is kept"
    updates = len(summaries) - len(parts)
    assert updates == 1 + (turns - 5) // 3
    increments = [received for received in summaries if "Old summary" in received.prompt[1][1]]
    assert updates - len(increments) == 1 + (updates - 1) // 11

    last = asked[-1].prompt
    assert last[0][0] in {"system", "developer"}
    assert "fact-0 " in last[0][1].partition(_SUMMARY)[2]

    for received in asked:
        shown = _numbers(received.prompt)
        new = int(received.prompt[-1][1][1:4])
        assert shown == list(range(shown[0] if shown else new, new)), "the history has no gap and no double"
        summary = received.prompt[0][1].partition(_SUMMARY)[2]
        for number in range(0, new, 10):
            assert number in shown or f"fact-{number} " in summary, f"turn {number} is lost in turn {new}"
    _check_prefix(ends, asked)


def _without_tail(prompt: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The part that only grows: before the new message stands the tail, which always tells the time."""
    *before, (role, _), _ = prompt
    assert role == "system"
    return before


def _check_prefix(ends: Sequence[dict[str, Any]], asked: Sequence[Received]) -> None:
    """What the reports say of the prefix is what was sent; and prompts do not grow."""
    reports = [end["context_report"] for end in ends]
    for (before, one), report in zip(pairwise(asked), reports[1:], strict=True):
        same = 0
        stable = _without_tail(before.prompt)
        for old, new in zip(stable, _without_tail(one.prompt), strict=False):
            if old != new:
                break
            same += 1
        if report["epoch_reason"] == "first turn" or report["prefix"]["tokens"] > report["tokens"]["system"]:
            assert same == len(stable), "all of the prompt before, its tail and its message apart"
        else:
            rules = before.prompt[0][1].partition("<memory>\n")[0].partition(_SUMMARY)[0].strip()
            assert one.prompt[0][1].startswith(rules), "the system prompt at least"
    sizes = [sum(report["tokens"].values()) for report in reports]
    assert max(sizes) <= 4000
    assert reports[-1]["epoch"] > 1
    shared = sum(report["prefix"]["tokens"] for report in reports[1:50])
    stable = sum(
        size for report in reports[1:50] for name, size in report["tokens"].items() if name not in _VOLATILE
    )
    assert shared / stable >= 0.9


async def test_turns_go_on_when_only_the_summary_fails(
    url: str, services: Services, model_server: ModelServer
) -> None:
    def fails_to_summarise(received: Received) -> Reply:
        return Reply(status=500) if _is_summary(received) else _stand_in(received)

    model_server.default = fails_to_summarise
    async with httpx.AsyncClient(base_url=url, timeout=30) as http:
        for number in range(25):
            message = f"<{number:03}> {'so it was and so it is ' * 30}"
            body = {"user_id": "u-1", "session_id": "s-1", "message": message, "debug": True}
            answer = await http.post("/api/v1/chat", json=body)
            assert answer.status_code == 200, answer.text
            if number == 10:
                services.jobs.start_worker()
    report = answer.json()["context_report"]
    (dropped,) = report["dropped"]
    assert (dropped["section"], dropped["reason"]) == ("history", "over the budget")
    # A summary may be tried again at any time, also after the last turn.
    last = [received for received in model_server.requests if _is_turn(received)][-1]
    assert _numbers(last.prompt)[-1] == 23
    failed = [received for received in model_server.requests if _is_summary(received)]
    assert failed, "it was tried"
