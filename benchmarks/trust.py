"""Cost of origins, versions and encryption in CPU of a turn, and of a search as of a moment.

`python -m benchmarks.trust [--rounds 60] [--turns 8] [--searches 40]`

Three services take turns in random order: as shipped, without origins and versions (the end of a turn inherits no
origin and the triggers that keep versions are gone), and with encryption. The CPU is that of the service, of its
Milvus Lite and of PostgreSQL. The range that is printed is a bootstrap's over rounds, its middle 95 %.
"""

import argparse
import random
import signal
import statistics
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import orjson
import psycopg
from psycopg import sql

from benchmarks.processes import child, weigh
from benchmarks.remembering import QUESTIONS, Group, import_group, wait_until_quiet
from benchmarks.report import ratio_and_range
from benchmarks.rig import Client, Server, interrupt_once, service, stand_in
from services.platform.embedded_postgres import OWNER_ROLE, EmbeddedPostgres

_AT_ONCE = 4
_USERS = 20
_WARM_UP = 40
_PAUSE_S = (0.02, 0.3)
_MESSAGES = (
    "I moved to Porto with my sister last spring, and we share a flat near the river.",
    "What did I tell you about where I live, and with whom?",
    "Remember that I am allergic to peanuts and would rather have short answers.",
    "Tell me, in a few words, what you know about it.",
)
_BARE = """
import re
from services.conversations import turn_sql
inherited = re.compile(r"inherited AS [(]\\n    SELECT .*? AS origin\\n[)]", re.DOTALL)
assert inherited.search(turn_sql.END)
turn_sql.END = inherited.sub("inherited AS (SELECT NULL::foreign_origin AS origin)", turn_sql.END)
import graph.turns.run, nodes.persist
graph.turns.run.foreign_origin = nodes.persist.foreign_origin = lambda state: None
"""
"""Runs before the service begins, in its process: its turns have no origins."""
_VERSIONED = ("episodes", "messages", "daily_summaries")
_WARM_UP_SEARCHES = 5
_QUIET = {"ANAMNESIS_LOG_LEVEL": "error"}
"""The stand-in model answers no background job in its form."""
_ASKING = Group(600, 1)


@contextmanager
def _services(base_url: str) -> Iterator[dict[str, Server]]:
    with (
        service(base_url, "responses", name="as shipped", **_QUIET) as shipped,
        service(base_url, "responses", name="without", before=_BARE, **_QUIET) as bare,
        service(base_url, "responses", name="encrypted", ANAMNESIS_ENCRYPTION="on", **_QUIET) as encrypted,
    ):
        if bare.data is None:
            raise AssertionError("a service has a data folder")
        with psycopg.connect(EmbeddedPostgres(bare.data).url(OWNER_ROLE), autocommit=True) as connection:
            for table in _VERSIONED:
                connection.execute(sql.SQL("DROP TRIGGER keep_version ON {}").format(sql.Identifier(table)))
        yield {server.name: server for server in (shipped, bare, encrypted)}


def _turns(client: Client, server: Server, count: int) -> float:
    """Have some users say something; return milliseconds of CPU a turn, PostgreSQL's included."""
    users = random.sample(range(_USERS), min(count, _USERS))
    lanes = [
        [{"user_id": f"user-{user}", "session_id": f"s-{user}", "message": random.choice(_MESSAGES)}]
        for user in users
    ]
    _, before, after = client.measure(server, server.load(lanes, _AT_ONCE))
    spent = after.cpu_s + after.postgres_cpu_s - before.cpu_s - before.postgres_cpu_s
    return spent * 1000 / len(lanes)


def turn_costs(client: Client, servers: dict[str, Server], rounds: int, turns: int) -> dict[str, list[float]]:
    """Milliseconds of CPU for each turn, a figure a round, by service; PostgreSQL's included."""
    for server in servers.values():
        for _ in range(_WARM_UP // _AT_ONCE):
            _turns(client, server, _AT_ONCE)
        wait_until_quiet(server)
    found: dict[str, list[float]] = {name: [] for name in servers}
    for _ in range(rounds):
        for name in random.sample(list(servers), len(servers)):
            found[name].append(_turns(client, servers[name], turns))
            time.sleep(random.uniform(*_PAUSE_S))
    return found


def search_costs(server: Server, searches: int) -> dict[str, list[float]]:
    """Milliseconds of CPU for each search of a user with 600 messages: of now, and as of the end of the import."""
    import_group(server.port, _ASKING)
    wait_until_quiet(server)
    moment = datetime.now(UTC).isoformat()
    bodies: dict[str, dict[str, str]] = {"now": {}, "as of": {"as_of": moment}}
    found: dict[str, list[float]] = {name: [] for name in bodies}
    for number in range(-_WARM_UP_SEARCHES, searches):
        for name in random.sample(list(bodies), len(bodies)):
            before = weigh(server.pid)
            _search(server, {"query": QUESTIONS[number % len(QUESTIONS)], **bodies[name]})
            after = weigh(server.pid)
            if number >= 0:
                spent = after.cpu_s + after.postgres_cpu_s - before.cpu_s - before.postgres_cpu_s
                found[name].append(spent * 1000)
    return found


def _search(server: Server, body: dict[str, str]) -> None:
    address = f"http://127.0.0.1:{server.port}/api/v1/users/{_ASKING.name(0)}/episodes/search"
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(address, orjson.dumps(body), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trust", description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--turns", type=int, default=8, help="of different users in a round, 20 at most")
    parser.add_argument("--searches", type=int, default=40)
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt_once)
    with stand_in() as llm_port, child(["-m", "benchmarks.load_client"], piped=True) as process:
        client = Client(process)
        with _services(f"http://127.0.0.1:{llm_port}/burst/v1") as servers:
            costs = turn_costs(client, servers, options.rounds, options.turns)
            searches = search_costs(servers["as shipped"], options.searches)
    for name, cost in costs.items():
        print(f"a turn {name:12} {statistics.mean(cost):7.2f} ms CPU (median {statistics.median(cost):.2f})")
    _compare("origins and versions", costs["as shipped"], costs["without"])
    _compare("encryption", costs["encrypted"], costs["as shipped"])
    for name, cost in searches.items():
        print(f"a search {name:10} {statistics.mean(cost):7.2f} ms CPU (median {statistics.median(cost):.2f})")
    _compare("as_of", searches["as of"], searches["now"])


def _compare(name: str, ours: list[float], others: list[float]) -> None:
    ratio, low, high = ratio_and_range(ours, others)
    print(f"{name}: {ratio:.3f} times as much ({low:.3f} to {high:.3f})")


if __name__ == "__main__":
    main()
