"""Cost of one streamed chat turn in the service, as a ratio to a floor measured in the same rounds.

`python -m benchmarks.turn_overhead [--quick] [--messages FOLDER] [--units 600 …] [--load burst-20 …]
[--kinds en-question …] [--rounds N] [--against PYTHON] [--api responses|chat] [--json FILE]`

Processes on loopback: a stand-in for the language model, the floor (the stock chat model in a bare route, nothing
stored), the service with its embedded engines and its encoder, and the client. Every message is another one, of a
kind (question, statement, task) and a language, by users of whom 0, 600 or 10,000 messages are remembered; three
turns make a conversation. In each round the floor and the service get the same messages in turn. CPU is counted
for the service's process, for Milvus Lite and for PostgreSQL: during the turns, and afterwards until everything is
indexed, no job is left and all is quiet, less what the service uses at rest. What is said is filed after a quiet
five seconds instead of thirty. With `--against`, the interpreter of another checkout, that one's service takes its
turn too.
"""

import argparse
import itertools
import json
import signal
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast, get_args

from rich.console import Console
from rich.table import Table

from benchmarks.processes import Weight, weigh
from benchmarks.remembering import import_lines, wait_until_done, wait_until_quiet
from benchmarks.report import p95, ratio_and_range
from benchmarks.rig import Client, Server, floor, interrupt_once, load_client, service, stand_in
from benchmarks.stand_in_llm import FIRST_TOKEN_S, Api, Mode
from benchmarks.turn_messages import Kind, Language, Messages

_TURNS_OF_A_CONVERSATION = 3
_USERS = 10
_OF_MANY = 2
"""Users with more than a thousand units."""
_BEGUN = datetime(2025, 1, 1, tzinfo=UTC)
_TURNS_OF_A_SESSION = 20
_SETTINGS = {"ANAMNESIS_MEMORY_FILING_QUIET_S": "5", "ANAMNESIS_MEMORY_FILING_PAUSE_S": "5"}
_LOOK_S, _BUSY_S, _LONGEST_S = 1.0, 0.05, 60.0
"""It is quiet when all processes together used less than so much more than at rest, between two looks."""
_LOOKS, _REST_S = 4, 5.0
_WARM_UPS, _WARM_UP_LANES = 3, 20

_numbers = itertools.count()


@dataclass(frozen=True)
class Cell:
    """One row of the measurement: which messages, by whom, and how many at once."""

    language: Language
    kind: Kind
    units: int
    mode: Mode
    at_once: int

    @property
    def turns(self) -> int:
        """Turns of a round, of each server."""
        return {1: 12, 20: 60}.get(self.at_once, 3 * self.at_once)


@dataclass
class Spent:
    """CPU of a server in the rounds of a cell: milliseconds a turn, a figure a round."""

    own: list[float] = field(default_factory=list)
    milvus: list[float] = field(default_factory=list)
    postgres: list[float] = field(default_factory=list)
    own_after: list[float] = field(default_factory=list)
    milvus_after: list[float] = field(default_factory=list)
    postgres_after: list[float] = field(default_factory=list)
    first_ms: list[float] = field(default_factory=list)
    """To the first token, less the model's own time: of every turn."""
    full_ms: list[float] = field(default_factory=list)
    without_recall: int = 0


@dataclass(frozen=True)
class Rest:
    """CPU that a server uses at rest, seconds a second."""

    own: float
    milvus: float
    postgres: float


class Bench:
    """Servers with users who have said something, measured cell by cell."""

    def __init__(self, servers: Sequence[Server], client: Client, messages: Messages) -> None:
        self._servers = servers
        self._client = client
        self._messages = messages
        self._rest: dict[str, Rest] = {}
        self.first_ever_ms: dict[tuple[str, int], list[float]] = {}
        """By server and units: to the first token of a user whose memory nothing holds yet."""

    def fill(self, units: Sequence[int], languages: Sequence[Language]) -> None:
        """Import what users said, let all settle, and have each of them speak once."""
        ours = [each for each in self._servers if each.data is not None]
        for server in ours:
            for each, language in itertools.product(units, languages):
                for user in range(_users(each)):
                    import_lines(server.port, self._past(language, each, user))
            wait_until_quiet(server)
        for server, each, language in itertools.product(self._servers, units, languages):
            for user in range(_users(each)):
                lane = [_body(language, each, user, text) for text in self._messages.some(language, "question", 1)]
                samples, _, _ = self._client.measure(server, server.load([lane], 1))
                self.first_ever_ms.setdefault((server.name, each), []).extend(samples.first_ms)
        for server, each, language in itertools.product(self._servers, units, languages):
            self._warm_up(server, language, each)
        for server in ours:
            wait_until_quiet(server)
            self._rest[server.name] = _at_rest(server.pid)

    def _warm_up(self, server: Server, language: Language, units: int) -> None:
        """Ask much at once: then every connection to the database has been opened and has its plans."""
        for _ in range(_WARM_UPS):
            texts = self._messages.some(language, "question", _WARM_UP_LANES)
            lanes = [[_body(language, units, next(_numbers), text, f"new-{next(_numbers)}")] for text in texts]
            self._client.measure(server, server.load(lanes, _WARM_UP_LANES))

    def _past(self, language: Language, units: int, user: int) -> list[bytes]:
        lines = []
        for number, text in enumerate(self._messages.past(language, user, units // 2)):
            at = _BEGUN + timedelta(minutes=7 * number)
            for role, content, second in (("user", text, 0), ("assistant", f"{text[:80]} — {text[-80:]}", 20)):
                line = {
                    "user_id": f"{language}-{units}-{user}",
                    "session_id": f"past-{number // _TURNS_OF_A_SESSION}",
                    "role": role,
                    "content": content,
                    "created_at": (at + timedelta(seconds=second)).isoformat(),
                }
                lines.append(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        return lines

    def measure(self, cell: Cell, rounds: int) -> dict[str, Spent]:
        """Load the servers by turns, in every round in the other order, after a round that does not count."""
        spent = {server.name: Spent() for server in self._servers}
        for number in range(-1, rounds):
            texts = self._messages.some(cell.language, cell.kind, cell.turns)
            for server in self._servers if number % 2 == 0 else reversed(self._servers):
                into = spent[server.name] if number >= 0 else Spent()
                self._round(cell, server, texts, into)
        return spent

    def _round(self, cell: Cell, server: Server, texts: Sequence[str], into: Spent) -> None:
        lanes = []
        for each in _parts(texts):
            number = next(_numbers)
            lanes.append([_body(cell.language, cell.units, number, text, f"new-{number}") for text in each])
        samples, before, after = self._client.measure(server, server.load(lanes, cell.at_once))
        of_the_model = FIRST_TOKEN_S * 1000 if cell.mode == "paced" else 0.0
        into.first_ms += [first - of_the_model for first in samples.first_ms]
        into.full_ms += samples.full_ms
        into.without_recall += samples.without_recall
        _note(into.own, into.milvus, into.postgres, _used(before, after), len(texts))
        if rest := self._rest.get(server.name):
            begun, quiet = time.monotonic(), self._quiet(server, rest)
            at_rest = time.monotonic() - begun
            own, milvus, postgres = _used(after, quiet)
            more = (own - rest.own * at_rest, milvus - rest.milvus * at_rest, postgres - rest.postgres * at_rest)
            _note(into.own_after, into.milvus_after, into.postgres_after, more, len(texts))

    def _quiet(self, server: Server, rest: Rest) -> Weight:
        wait_until_done(server)
        ends, before = time.monotonic() + _LONGEST_S, weigh(server.pid)
        while time.monotonic() < ends:
            time.sleep(_LOOK_S)
            now = weigh(server.pid)
            if sum(_used(before, now)) < _BUSY_S + (rest.own + rest.milvus + rest.postgres) * _LOOK_S:
                return now
            before = now
        raise RuntimeError(f"{server.name} is not quiet after {_LONGEST_S:.0f} s")


def _at_rest(pid: int) -> Rest:
    """Return the least that a server used in several stretches: in the others it may have been at work."""
    found: list[tuple[float, float, float]] = []
    before = weigh(pid)
    for _ in range(_LOOKS):
        time.sleep(_REST_S)
        now = weigh(pid)
        found.append(_used(before, now))
        before = now
    own, milvus, postgres = min(found, key=sum)
    return Rest(own / _REST_S, milvus / _REST_S, postgres / _REST_S)


def _parts(texts: Sequence[str]) -> list[Sequence[str]]:
    step = _TURNS_OF_A_CONVERSATION
    return [texts[begin : begin + step] for begin in range(0, len(texts), step)]


def _users(units: int) -> int:
    return _OF_MANY if units > 1000 else _USERS


def _body(language: Language, units: int, user: int, text: str, session: str = "first") -> dict[str, str]:
    return {"user_id": f"{language}-{units}-{user % _users(units)}", "session_id": session, "message": text}


def _used(before: Weight, after: Weight) -> tuple[float, float, float]:
    """Seconds of CPU of the process, of Milvus Lite, and of PostgreSQL."""
    own = after.own_cpu_s - before.own_cpu_s
    others = after.cpu_s - before.cpu_s - own
    return own, others, after.postgres_cpu_s - before.postgres_cpu_s


def _note(
    own: list[float], milvus: list[float], postgres: list[float], used: tuple[float, float, float], turns: int
) -> None:
    for figures, seconds in zip((own, milvus, postgres), used, strict=True):
        figures.append(seconds * 1000 / turns)


_HEADINGS = (
    *("", "API ÷ floor", "after ÷ floor", "API ms", "after", "Milvus", "after", "PG ms", "after"),
    *("first ms", "p95", "full ms"),
)


def row(name: str, spent: Spent, bare: Spent) -> list[str]:
    """Return a line of the table; ratios with the middle 95 % of what they may be."""
    parts = (
        *(spent.own, spent.own_after, spent.milvus, spent.milvus_after),
        *(spent.postgres, spent.postgres_after),
    )
    milliseconds = [f"{statistics.mean(each):.1f}" if each else "" for each in parts]
    after = _ratio(spent.own_after, bare.own) if spent.own_after else ""
    middle = statistics.median(spent.first_ms)
    more = f" ({middle - statistics.median(bare.first_ms):+.0f})" if spent is not bare else ""
    times = (f"{middle:.0f}{more}", f"{p95(spent.first_ms):.0f}", f"{statistics.median(spent.full_ms):.0f}")
    return [name, _ratio(spent.own, bare.own), after, *milliseconds, *times]


def _ratio(ours: Sequence[float], others: Sequence[float]) -> str:
    ratio, low, high = ratio_and_range(ours, others)
    return f"{ratio:.2f} ({low:.2f}–{high:.2f})"


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure every cell that the options ask for, print as they come, and return plain values."""
    console = Console(width=150)
    messages = Messages(options.messages)
    found: dict[str, Any] = {"cells": [], "first_ever_ms": [], "at": datetime.now(UTC).isoformat()}
    loads = [(mode, int(at_once)) for mode, at_once in (each.split("-") for each in options.load)]
    for mode in dict.fromkeys(mode for mode, _ in loads):
        with ExitStack() as stack:
            url = f"http://127.0.0.1:{stack.enter_context(stand_in())}/{mode}/v1"
            client = stack.enter_context(load_client())
            servers = [stack.enter_context(floor(url, options.api))]
            pythons = {"ours": None} | ({"other": options.against} if options.against else {})
            for name, python in pythons.items():
                servers.append(
                    stack.enter_context(service(url, options.api, name=name, python=python, **_SETTINGS))
                )
            bench = Bench(servers, client, messages)
            languages = dict.fromkeys(kind.split("-")[0] for kind in options.kinds)
            bench.fill(options.units, cast("list[Language]", list(languages)))
            for (_, at_once), units, kind in itertools.product(
                [each for each in loads if each[0] == mode], options.units, options.kinds
            ):
                language, kind_name = kind.split("-")
                cell = Cell(language, kind_name, units, mode, at_once)
                spent = bench.measure(cell, options.rounds)
                title = f"{language} {kind_name}, {units:,} units, {mode} {at_once}"
                table = Table(
                    *_HEADINGS, title=f"{title}: {options.rounds} × {cell.turns} turns", title_justify="left"
                )
                for name, each in spent.items():
                    table.add_row(*row(name, each, spent["floor"]))
                console.print(table)
                found["cells"].append(
                    {**asdict(cell), "spent": {name: asdict(each) for name, each in spent.items()}}
                )
                if without := sum(each.without_recall for each in spent.values()):
                    console.print(f"{without} turns were answered without recall")
            for (name, units), first in bench.first_ever_ms.items():
                console.print(f"{mode}, first token of a user not asked before, {units:,} units, {name}: "
                              f"{statistics.median(first):.0f} ms, at most {max(first):.0f}")  # fmt: skip
                found["first_ever_ms"].append({"server": name, "units": units, "mode": mode, "ms": first})
            for server in servers:
                weight = weigh(server.pid)
                console.print(f"{mode}, {server.name}: {weight.rss_mb:.0f} MB resident, "
                              f"{weight.tree_rss_mb:.0f} MB with Milvus Lite")  # fmt: skip
    return found


_ALL_KINDS = [f"{language}-{kind}" for language in get_args(Language) for kind in get_args(Kind)]
_FULL: dict[str, Any] = {
    "units": [0, 600, 10_000],
    "load": ["burst-1", "burst-20", "burst-100", "paced-1", "paced-20"],
    "kinds": _ALL_KINDS,
    "rounds": 5,
}
_QUICK: dict[str, Any] = {
    "units": [600],
    "load": ["burst-20"],
    "kinds": ["en-question", "en-statement", "zh-question", "zh-statement"],
    "rounds": 2,
}


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.turn_overhead", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="four kinds, 600 units, burst 20: about four minutes")
    parser.add_argument("--messages", type=Path, metavar="FOLDER", help="of dialogues; without, they are made up")
    parser.add_argument("--units", type=int, nargs="+", help="remembered messages of each user")
    parser.add_argument("--load", nargs="+", metavar="MODE-N", help="burst or paced, and turns at once")
    parser.add_argument("--kinds", nargs="+", choices=_ALL_KINDS)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--against", metavar="PYTHON", help="interpreter of another checkout")
    parser.add_argument("--api", choices=get_args(Api), default="responses", help="the model's API")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    options = parser.parse_args()
    for name, value in (_QUICK if options.quick else _FULL).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt_once)
    try:
        found = run(options)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
