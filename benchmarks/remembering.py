"""Users who have said much: what they said is imported before they are measured."""

import asyncio
import itertools
import json
import time
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString

import psycopg

from benchmarks.dialogue import answer_to, message_of
from benchmarks.processes import weigh
from benchmarks.rig import Server
from services.memory.upkeep.scheduler import ROUND
from services.platform.embedded_postgres import EmbeddedPostgres

QUESTIONS = (
    "What is the code of my bicycle lock?",
    "Do you remember the code of my bicycle lock?",
    "I forgot it again: which code does my bicycle lock have?",
)
_SCALE = 0.4
_BEGUN = datetime(2025, 1, 1, tzinfo=UTC)
_TURNS_OF_A_SESSION = 20
_AT_ONCE = 4_000
"""Lines of one import."""
_QUIET_S, _QUIET_SHARE = 2.0, 0.1
_LOOK_S = 0.2
_LONGEST_S = 600.0

_UNFINISHED: LiteralString = """
SELECT (SELECT count(*) FROM procrastinate_jobs
        WHERE status = 'doing'
           OR status = 'todo' AND coalesce(scheduled_at, now()) < now() + interval '30 seconds')
     + (SELECT count(*) FROM tenants_to_index())
     + (SELECT count(*) FROM visits WHERE daily_due_at <= now())
"""
"""Jobs of this half minute, tenants with something to index, and visits whose days nobody summarises yet."""
_FIND_DAYS: LiteralString = """
INSERT INTO procrastinate_jobs (task_name, queue_name, queueing_lock, args)
VALUES (%(task)s::text, 'default', %(task)s::text, '{"timestamp": 0}') ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True)
class Group:
    """Users who have said as much as one another."""

    units: int
    """Messages of each, their own and the answers."""
    users: int

    def name(self, number: int) -> str:
        """A user's name."""
        return f"knows-{self.units}-{number % self.users}"

    def code(self, number: int) -> str:
        """Return the code of the lock that the user once told."""
        return f"lock-{self.units}-{number % self.users}"


def import_group(port: int, group: Group) -> None:
    """Store what the users of a group have said."""
    import_lines(port, _lines(group))


def import_lines(port: int, lines: Iterable[bytes]) -> None:
    """Import messages, as lines of JSON, in requests of a bearable size.

    Raises:
        RuntimeError: some were refused.
    """
    waiting = iter(lines)
    while part := list(itertools.islice(waiting, _AT_ONCE)):
        _send(port, part)


def wait_until_quiet(server: Server) -> None:
    """Wait until a server has done all that follows an import, summaries of days included, and uses no CPU.

    Raises:
        RuntimeError: it goes on for ten minutes.
    """
    wait_until_done(server, summarise_days=True)
    ends = time.monotonic() + _LONGEST_S
    while time.monotonic() < ends:
        before = weigh(server.pid)
        time.sleep(_QUIET_S)
        after = weigh(server.pid)
        used = after.cpu_s + after.postgres_cpu_s - before.cpu_s - before.postgres_cpu_s
        if used < _QUIET_SHARE * _QUIET_S:
            return
    raise RuntimeError(f"{server.name} is not quiet")


def wait_until_done(server: Server, *, summarise_days: bool = False) -> None:
    """Wait until nothing is left to index and no job is under way or due; a server without data has none.

    With `summarise_days` the days that are due are summarised now, not at a moment of the next five minutes, and
    PostgreSQL cleans up.

    Raises:
        RuntimeError: it goes on for ten minutes.
    """
    if server.data is None:
        return
    postgres = EmbeddedPostgres(server.data)
    asyncio.run(postgres.start())  # the server has started it; this finds it
    ends = time.monotonic() + _LONGEST_S
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as database:
        _wait(database, ends, server.name)
        if summarise_days:
            database.execute(_FIND_DAYS, {"task": ROUND})
            _wait(database, ends, server.name)
            database.execute("VACUUM (ANALYZE)")  # PostgreSQL would do it within minutes


def _wait(database: "psycopg.Connection[Any]", ends: float, name: str) -> None:
    while database.execute(_UNFINISHED).fetchone() != (0,):
        if time.monotonic() > ends:
            raise RuntimeError(f"{name} does not get done with its jobs")
        time.sleep(_LOOK_S)


def _lines(group: Group) -> Iterator[bytes]:
    for user in range(group.users):
        told = group.units // 6
        for turn in range(group.units // 2):
            asked = message_of(user, turn, _SCALE)
            answer = answer_to(asked, _SCALE)
            if turn == told:
                asked, answer = f"The code of my bicycle lock is {group.code(user)}.", "I will keep it in mind."
            at = _BEGUN + timedelta(minutes=7 * turn)
            for role, content, second in (("user", asked, 0), ("assistant", answer, 20)):
                line = {
                    "user_id": group.name(user),
                    "session_id": f"s-{turn // _TURNS_OF_A_SESSION}",
                    "role": role,
                    "content": content,
                    "created_at": (at + timedelta(seconds=second)).isoformat(),
                }
                yield json.dumps(line, ensure_ascii=False).encode() + b"\n"


def _send(port: int, lines: list[bytes]) -> None:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/v1/import",
        data=b"".join(lines),
        headers={"Content-Type": "application/x-ndjson"},
    )
    with urllib.request.urlopen(request, timeout=_LONGEST_S) as answer:
        report = json.loads(answer.read())
    if report["refused"]:
        raise RuntimeError(f"an import was refused: {report['errors'][:1]}")
