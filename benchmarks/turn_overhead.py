"""What one streamed chat turn costs in the service, compared with a floor measured in the same run.

`python -m benchmarks.turn_overhead [--quick] [--api chat] [--json FILE]`

Four processes on loopback: a stand-in for the language model, the floor (the stock chat model in a
bare route), the service with its embedded engines, and the client that loads them in turn.
"""

import argparse
import itertools
import json
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

from benchmarks.load_client import Load, Samples
from benchmarks.processes import Weight, child, environment_without_settings, free_port, wait_for, weigh
from benchmarks.remembering import QUESTIONS, Group, codes_seen, import_group, remembered, wait_until_quiet
from benchmarks.report import Cell, Reach, Results, show
from benchmarks.stand_in_llm import FIRST_TOKEN_S, Api, Mode

_MESSAGE = "Tell me, in a few words, what you know about it."
_SERVE = "from api.cli.main import app; app()"
_USERS = 50
_REACHES = ((2, 6), (48, 52), (198, 202))
"""Stretches of a long conversation that are compared: about turns 2, 50 and 200."""
_WARM_UP = 3
"""Turns that follow one another; before them, one of each at the highest concurrency."""
_SETTLE_S = 0.1
"""What a server still does after its answer belongs to the turn."""

_numbers = itertools.count()


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    rounds: int
    turns: dict[Mode, dict[int, int]]
    """Turns a round by mode and concurrency."""
    conversations: int
    groups: tuple[Group, ...]
    """Users who ask about their past; those who have said nothing come first."""
    questions: dict[int, int]
    """Of each group, a round by concurrency."""


FULL = Plan(
    3,
    {"paced": {1: 8, 20: 100, 100: 300}, "burst": {1: 60, 20: 400, 100: 300}},
    5,
    (Group(0, 20), Group(600, 20), Group(10_000, 1)),
    {1: 10, 20: 100},
)
QUICK = Plan(
    1,
    {"paced": {1: 3, 20: 40, 100: 100}, "burst": {1: 20, 20: 120, 100: 100}},
    1,
    (Group(0, 5), Group(600, 5)),
    {1: 8, 20: 60},
)


@dataclass(frozen=True)
class Server:
    """A server under test."""

    name: str
    pid: int
    port: int
    path: str
    first_marker: str
    done_marker: str
    data: Path | None = None
    """Its data folder, if it has one."""

    def load(self, lanes: list[list[dict[str, str]]], concurrency: int) -> Load:
        """Turns for this server."""
        return Load(self.port, self.path, lanes, concurrency, self.first_marker, self.done_marker)


class Client:
    """The load client's process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def measure(self, server: Server, load: Load) -> tuple[Samples, Weight, Weight]:
        """Send the turns; weigh the server before and after.

        Raises:
            RuntimeError: a turn failed.
        """
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("the client is piped")
        before = weigh(server.pid)
        self._process.stdin.write(json.dumps(asdict(load)) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        time.sleep(_SETTLE_S)
        after = weigh(server.pid)
        if not line:
            raise RuntimeError("the load client ended")
        samples = Samples(**json.loads(line))
        if samples.failures:
            raise RuntimeError(
                f"{len(samples.failures)} turns of {server.name} failed; the first: {samples.failures[0]}"
            )
        return samples, before, after


def fresh_lanes(turns: int) -> list[list[dict[str, str]]]:
    """Turns that are each the first of a new conversation."""
    return [[_body(f"user-{number % _USERS}", f"new-{number}")] for number in itertools.islice(_numbers, turns)]


def _body(user: str, session: str) -> dict[str, str]:
    return {"user_id": user, "session_id": session, "message": _MESSAGE}


@contextmanager
def stand_in() -> Iterator[int]:
    """The stand-in model's port."""
    with child(["-m", "benchmarks.stand_in_llm"], piped=True) as process:
        if process.stdout is None:
            raise AssertionError("it is piped")
        yield int(process.stdout.readline())


@contextmanager
def floor(base_url: str, api: Api) -> Iterator[Server]:
    """The floor, ready."""
    port = free_port()
    arguments = ["-m", "benchmarks.floor", str(port), base_url, api]
    with child(arguments, environment=environment_without_settings()) as process:
        wait_for(process, f"http://127.0.0.1:{port}/healthz")
        yield Server("floor", process.pid, port, "/chat", 'data: {"token"', "data: [DONE]")


@contextmanager
def service(
    base_url: str, api: Api, *, name: str = "ours", before: str = "", **variables: str
) -> Iterator[Server]:
    """The service over new data, with further environment variables; ready, its engines too.

    `before` is Python that its process runs first.
    """
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="anamnesis-bench-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        folder.chmod(0o755)  # root's embedded PostgreSQL runs under another account
        environment = {
            **environment_without_settings(),
            "ANAMNESIS_DATA_DIR": str(folder / "data"),
            "ANAMNESIS_LLM_MODEL": "stand-in",
            "ANAMNESIS_LLM_BASE_URL": base_url,
            "ANAMNESIS_LLM_API": api,
            "ANAMNESIS_LLM_API_KEY": "x",
            "ANAMNESIS_LOG_LEVEL": "warning",
            **variables,
        }
        arguments = ["-c", f"{before}{_SERVE}", "serve", "--port", str(port)]
        with child(arguments, environment=environment, folder=folder) as process:
            wait_for(process, f"http://127.0.0.1:{port}/readyz", b'{"state":"ok"')
            yield Server(
                name, process.pid, port, "/api/v1/chat/stream", "event: token", "event: done", folder / "data"
            )


def measure_load(plan: Plan, mode: Mode, servers: list[Server], client: Client, results: Results) -> None:
    """Load the servers by turns, in every round in the other order."""
    most = max(plan.turns[mode])
    for server in servers:
        client.measure(server, server.load(fresh_lanes(most), most))
        client.measure(server, server.load(fresh_lanes(_WARM_UP), 1))
    for number in range(plan.rounds):
        for concurrency, turns in plan.turns[mode].items():
            cells = results.cells.setdefault((mode, concurrency), {server.name: Cell() for server in servers})
            for server in servers if number % 2 == 0 else reversed(servers):
                load = server.load(fresh_lanes(turns), concurrency)
                samples, before, after = client.measure(server, load)
                postgres = after.postgres_cpu_s - before.postgres_cpu_s
                cells[server.name].add(mode, samples, after.cpu_s - before.cpu_s, postgres)
    for server in servers:
        weight = weigh(server.pid)
        results.memory_mb[f"{mode} {server.name}"] = {"api": weight.rss_mb, "tree": weight.tree_rss_mb}


def measure_remembering(
    plan: Plan, mode: Mode, servers: list[Server], client: Client, llm_port: int, results: Results
) -> None:
    """Let users ask about what they have said, before the question nothing else of it being at hand."""
    ours = next(server for server in servers if server.name == "ours")
    for group in plan.groups:
        import_group(ours.port, group)
    wait_until_quiet(ours.pid)
    for group in plan.groups:
        # Each user's first turn reads what is remembered of them.
        lanes = _asking(group, group.users)
        results.without_recall += client.measure(ours, ours.load(lanes, 1))[0].without_recall
        for concurrency, turns in plan.questions.items():
            first_ms: dict[str, list[float]] = {server.name: [] for server in servers}
            cpu_s = dict.fromkeys(first_ms, 0.0)
            before = codes_seen(llm_port)
            for number in range(plan.rounds):
                for server in servers if number % 2 == 0 else reversed(servers):
                    samples, began, ended = client.measure(server, server.load(_asking(group, turns), concurrency))
                    of_the_model = FIRST_TOKEN_S * 1000 if mode == "paced" else 0.0
                    first_ms[server.name] += [first - of_the_model for first in samples.first_ms]
                    cpu_s[server.name] += ended.cpu_s - began.cpu_s
                    if server is ours:
                        results.without_recall += samples.without_recall
            after = codes_seen(llm_port)
            codes = {group.code(number) for number in range(group.users)}
            evident = sum(after.get(code, 0) - before.get(code, 0) for code in codes)
            results.remembered.append(remembered(mode, concurrency, group, first_ms, cpu_s, evident))


def _asking(group: Group, turns: int) -> list[list[dict[str, str]]]:
    return [
        [
            {
                "user_id": group.name(number),
                "session_id": f"asks-{number}",
                "message": QUESTIONS[number % len(QUESTIONS)],
            }
        ]
        for number in itertools.islice(_numbers, turns)
    ]


def measure_conversations(conversations: int, server: Server, client: Client) -> list[Reach]:
    """Compare conversations of different lengths, side by side.

    Each reach has separate conversations, brought to its beginning first. Then the reaches take
    turns, one turn at a time, so that whatever else the machine does falls on all alike.
    """
    for first, _ in _REACHES:
        _speak(first, conversations, first - 1, server, client, concurrency=conversations)
    measured: dict[int, list[tuple[Samples, float]]] = {first: [] for first, _ in _REACHES}
    for _ in range(_REACHES[0][0], _REACHES[0][1] + 1):
        for first, _ in _REACHES:
            samples, before, after = _speak(first, conversations, 1, server, client, concurrency=1)
            measured[first].append((samples, after.cpu_s - before.cpu_s))
    return [_reach(first, last, measured[first]) for first, last in _REACHES]


def _reach(first: int, last: int, measured: list[tuple[Samples, float]]) -> Reach:
    first_ms = [value for samples, _ in measured for value in samples.first_ms]
    full_ms = [value for samples, _ in measured for value in samples.full_ms]
    cpu_ms = sum(cpu for _, cpu in measured) * 1000 / len(full_ms)
    return Reach(first, last, statistics.median(first_ms), statistics.median(full_ms), cpu_ms)


def _speak(
    reach: int, conversations: int, turns: int, server: Server, client: Client, *, concurrency: int
) -> tuple[Samples, Weight, Weight]:
    lanes = [[_body(f"talker-{talker}", f"long-{reach}")] * turns for talker in range(conversations)]
    return client.measure(server, server.load(lanes, concurrency))


def run(plan: Plan, api: Api) -> Results:
    """Measure everything, with separate servers for each mode."""
    results = Results(api)
    with stand_in() as llm_port, child(["-m", "benchmarks.load_client"], piped=True) as process:
        client = Client(process)
        for mode in get_args(Mode):
            base_url = f"http://127.0.0.1:{llm_port}/{mode}/v1"
            with floor(base_url, api) as bare, service(base_url, api) as ours:
                measure_load(plan, mode, [bare, ours], client, results)
                measure_remembering(plan, mode, [bare, ours], client, llm_port, results)
                if mode == "burst":
                    results.conversation = measure_conversations(plan.conversations, ours, client)
    return results


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.turn_overhead", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round, in less than a minute")
    parser.add_argument("--api", choices=get_args(Api), default="responses", help="the model's API")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt_once)
    try:
        results = run(QUICK if options.quick else FULL, options.api)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    show(results)
    if options.json:
        options.json.write_text(json.dumps(results.as_json(), indent=1) + "\n")


def interrupt_once(*_: Any) -> None:
    """Leave through the `finally` blocks, which end our processes; let nothing interrupt those."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
