"""What a turn costs by way of `/v1`, compared with `/api/v1` in the same run; and what reconciling costs.

`python -m benchmarks.openai_clients [--turns 40] [--rounds 20] [--messages 200]`

The CPU is that of the service's process alone, which runs as one; a stand-in for the language model answers. What
runs in the background falls into the rounds of either, so many short rounds say more than a few long ones. The
range that is printed holds the true median in 95 of 100 runs.
"""

import argparse
import asyncio
import os
import signal
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from rich.console import Console

from api.openai.messages import ClientMessage, read_messages
from api.openai.reconciliation import Reconciliation, import_lines, lines_of
from api.openai.sessions import ClientIds
from benchmarks.dialogue import answer_to, message_of
from benchmarks.load_client import Load
from benchmarks.processes import child
from benchmarks.turn_overhead import Client, Server, interrupt_once, service, stand_in
from graph.builder import build_graph
from graph.turns.runner import TurnRunner
from services.bootstrap import open_services
from services.engines import migrate_if_owner, open_engines
from services.identity.tenants import DEFAULT_TENANT
from services.platform.settings import load_settings

_AT_ONCE = 20
_WARM_UP = 60
_SAID = "Tell me, in a few words, what you know about it."
_TRIES = 40
_USER = "reconciled"


def _own(user: str, session: str) -> dict[str, Any]:
    return {"user_id": user, "session_id": session, "message": _SAID}


def _openai(user: str, session: str) -> dict[str, Any]:
    said = [{"role": "user", "content": _SAID}]
    return {
        "model": "default",
        "user": user,
        "stream": True,
        "messages": said,
        "metadata": {"session_id": session},
    }


def cpu_per_turn(turns: int, rounds: int) -> dict[str, list[float]]:
    """Milliseconds of CPU for each first turn of a conversation, a figure a round, by way in."""
    found: dict[str, list[float]] = {"/api/v1": [], "/v1": []}
    with (
        stand_in() as port,
        child(["-m", "benchmarks.load_client"], piped=True) as process,
        service(f"http://127.0.0.1:{port}/burst/v1", "responses") as ours,
    ):
        client = Client(process)
        ways = {
            "/api/v1": (Server("api", ours.pid, ours.port, ours.path, ours.first_marker, ours.done_marker), _own),
            "/v1": (
                Server("v1", ours.pid, ours.port, "/v1/chat/completions", '"delta":{"content":', "data: [DONE]"),
                _openai,
            ),
        }
        for number in range(-1, rounds):
            order = list(ways) if number % 2 else list(reversed(ways))
            for way in order:
                server, body = ways[way]
                count = turns if number >= 0 else _WARM_UP
                lanes = [[body(f"user-{each % 50}", f"{uuid4()}")] for each in range(count)]
                load = Load(
                    server.port,
                    server.path,
                    cast("list[list[dict[str, str]]]", lanes),
                    _AT_ONCE,
                    server.first_marker,
                    server.done_marker,
                )
                _, before, after = client.measure(server, load)
                if number >= 0:
                    found[way].append((after.cpu_s - before.cpu_s) * 1000 / count)
    return found


async def reconciling_ms(messages: int) -> dict[str, list[float]]:
    """Milliseconds to find the place of a message after this many others, named and unnamed."""
    with tempfile.TemporaryDirectory(prefix="anamnesis-bench-", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)  # root's embedded PostgreSQL runs under another account
        settings = load_settings(data_dir=Path(folder) / "data", log_level="warning")
        async with open_engines(settings) as engines:
            await migrate_if_owner(engines)
            async with open_services(settings, engines) as services:
                runner = TurnRunner(build_graph(services).compile(), services)
                said = [message_of(1, turn) for turn in range(messages // 2)]
                shown = [
                    ClientMessage(role=role, content=text)
                    for each in said
                    for role, text in (("user", each), ("assistant", answer_to(each)))
                ]
                request = read_messages([*shown, ClientMessage(role="user", content=_SAID)])
                lines = lines_of(_USER, "s", "default", request.earlier)
                await import_lines(services, DEFAULT_TENANT, lines, "messages")
                reconciling = Reconciliation(services, runner, DEFAULT_TENANT, _USER, "default")
                found: dict[str, list[float]] = {"read the request": [], "named": [], "unnamed": []}
                for _ in range(_TRIES):
                    begun = time.perf_counter()
                    read_messages([*shown, ClientMessage(role="user", content=_SAID)])
                    found["read the request"].append((time.perf_counter() - begun) * 1000)
                    for name, ids in (("named", ClientIds(session="s")), ("unnamed", ClientIds())):
                        begun = time.perf_counter()
                        place = await reconciling.place(request, ids)
                        found[name].append((time.perf_counter() - begun) * 1000)
                        if place.session != "s":
                            raise RuntimeError("the conversation was not found")
                return found


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.openai_clients", description=__doc__)
    parser.add_argument("--turns", type=int, default=40, help="turns a round by each way in")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--messages", type=int, default=200, help="of a resent history")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt_once)
    console = Console()
    reconciled = asyncio.run(reconciling_ms(options.messages))
    for name, values in reconciled.items():
        best, median = min(values), statistics.median(values)
        console.print(f"{options.messages} messages, {name}: median {median:.2f} ms, least {best:.2f} ms")
    cpu = cpu_per_turn(options.turns, options.rounds)
    for way, rounds in cpu.items():
        listed = ", ".join(f"{each:.2f}" for each in rounds)
        console.print(f"{way}: {statistics.median(rounds):.2f} ms CPU a turn (rounds {listed})")
    ratios = sorted(one / other for one, other in zip(cpu["/v1"], cpu["/api/v1"], strict=True))
    away = round(0.98 * len(ratios) ** 0.5)  # the order statistics around a median's binomial distribution
    low, high = (
        ratios[max(len(ratios) // 2 - away, 0)],
        ratios[min((len(ratios) - 1) // 2 + away, len(ratios) - 1)],
    )
    console.print(
        f"/v1 costs {statistics.median(ratios):.3f} times as much as /api/v1 "
        f"(median of the rounds; {low:.3f} to {high:.3f})"
    )


if __name__ == "__main__":
    main()
