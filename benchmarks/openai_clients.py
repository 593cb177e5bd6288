"""Cost of a turn through `/v1` over one through `/api/v1` in one run, and the cost of reconciling.

`python -m benchmarks.openai_clients [--turns 20] [--rounds 120] [--messages 200]`

The CPU is that of the service's process alone, without Milvus Lite and PostgreSQL; a stand-in for the language
model answers. The service also works in the background, at its own intervals. The order of the two ways and the
pauses between them are therefore random: regular turns fall in step with that work, and one way then pays for the
other's.
The range that is printed is a bootstrap's: rounds drawn again with replacement, the middle 95 % of the ratios.
"""

import argparse
import asyncio
import os
import random
import signal
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from rich.console import Console

from api.openai.client_message import ClientMessage
from api.openai.messages import read_messages
from api.openai.reconciliation import Reconciliation, import_lines, lines_of
from api.openai.sessions import ClientIds
from benchmarks.dialogue import answer_to, message_of
from benchmarks.load_client import Load
from benchmarks.processes import child, cpu_s
from benchmarks.report import ratio_and_range
from benchmarks.rig import Client, Server, interrupt_once, service, stand_in
from graph.builder import build_graph
from graph.turns.runner import TurnRunner
from services.bootstrap import open_services
from services.engines import migrate_if_owner, open_engines
from services.identity.tenants import DEFAULT_TENANT
from services.platform.settings import load_settings

_AT_ONCE = 20
_WARM_UP = 60
_WARM_UP_S = 3.0
_PAUSE_S = (0.02, 0.4)
_USERS = 50
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
        for server, body in ways.values():
            _load(client, server, body, _WARM_UP)
        time.sleep(_WARM_UP_S)
        for _ in range(rounds):
            for way in random.sample(list(ways), len(ways)):
                before = cpu_s(ours.pid)
                _load(client, *ways[way], turns)
                time.sleep(random.uniform(*_PAUSE_S))
                found[way].append((cpu_s(ours.pid) - before) * 1000 / turns)
    return found


def _load(client: Client, server: Server, body: Callable[[str, str], dict[str, Any]], turns: int) -> None:
    lanes = [[body(f"user-{each % _USERS}", f"{uuid4()}")] for each in range(turns)]
    load = Load(
        server.port,
        server.path,
        cast("list[list[dict[str, str]]]", lanes),
        _AT_ONCE,
        server.first_marker,
        server.done_marker,
    )
    client.measure(server, load)


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
    parser.add_argument("--turns", type=int, default=20, help="turns a round by each way in")
    parser.add_argument("--rounds", type=int, default=120)
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
        mean, median = statistics.mean(rounds), statistics.median(rounds)
        console.print(f"{way}: {mean:.2f} ms CPU a turn (median of the rounds {median:.2f})")
    ratio, low, high = ratio_and_range(cpu["/v1"], cpu["/api/v1"])
    console.print(f"/v1 costs {ratio:.3f} times as much as /api/v1 ({low:.3f} to {high:.3f})")


if __name__ == "__main__":
    main()
