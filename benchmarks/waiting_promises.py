"""Cost of promises that wait, and of those that a turn has not: `python -m benchmarks.waiting_promises`.

Into a service's database go 100,000 promises of 10,000 users, due over the next year, a tenth of them recurring
and a hundredth after an event. Then are measured, as CPU time of PostgreSQL and of Python:

- the minute's search for what is due, and its share of a core;
- with `--idle S`, the whole service doing nothing for S seconds, before and after they were added;
- what a turn without promises pays: its message is read for plain forms, and the statement that reads the user's
  activity looks for what is coming up, in the same round trip. The statement is compared with itself without that
  part, in turns; once within a visit, where nothing is looked up, and once as a visit begins.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import psycopg

from benchmarks.conversation_rig import USER, Rig, rig
from benchmarks.dialogue import message_of
from benchmarks.processes import cpu_s, weigh
from services.context.sources.time import KNOWN
from services.identity.tenants import DEFAULT_TENANT
from services.promises.coming_up import COMING_UP, coming_up_line, coming_up_within
from services.promises.plain_forms import plain_promise
from services.promises.sql import USERS_WITH_DUE

_PROMISES, _USERS, _ROUNDS, _REPEATS = 100_000, 10_000, 300, 7
_MINUTE_S = 60
_FILL = """
WITH made AS (
    INSERT INTO users (id, tenant_id, external_id, timezone)
    SELECT gen_random_uuid(), %(tenant_id)s, 'waiting-' || g.n, 'UTC' FROM generate_series(1, %(users)s) AS g (n)
    RETURNING id
), numbered AS (SELECT id, row_number() OVER () AS place FROM made)
INSERT INTO promises (id, tenant_id, user_id, expert_id, text, said, rule, timezone, due_at, event)
SELECT gen_random_uuid(), %(tenant_id)s, u.id, e.id, 'call the dentist about promise ' || g.n, 'tomorrow at nine',
       CASE WHEN g.n %% 10 = 0 THEN 'every monday at 9' ELSE '' END, 'UTC',
       now() + interval '1 hour' + g.n * interval '5 minutes', CASE WHEN g.n %% 100 = 1 THEN 'read' END
FROM generate_series(1, %(promises)s) AS g (n) JOIN numbered u ON u.place = 1 + g.n %% %(users)s
CROSS JOIN (SELECT id FROM experts WHERE tenant_id = %(tenant_id)s AND name = 'default') e
"""


class _Backend:
    """A connection whose process of PostgreSQL is weighed."""

    def __init__(self, database: "psycopg.Connection[Any]") -> None:
        self._database = database
        self._pid = database.info.backend_pid

    def ms(self, statement: str, values: dict[str, Any]) -> float:
        """Return the milliseconds of CPU that PostgreSQL takes for a statement: median of means."""
        means = []
        for _ in range(_REPEATS):
            begun = cpu_s(self._pid)
            for _ in range(_ROUNDS):
                self._database.execute(cast(Any, statement), values, prepare=True).fetchall()
            means.append((cpu_s(self._pid) - begun) * 1000 / _ROUNDS)
        return statistics.median(means)


def _python_ms(work: Callable[[int], object]) -> float:
    means = []
    for _ in range(_REPEATS):
        begun = time.process_time()
        for number in range(_ROUNDS):
            work(number)
        means.append((time.process_time() - begun) * 1000 / _ROUNDS)
    return statistics.median(means)


def _idle(service: Rig, seconds: float) -> None:
    before = weigh(service.pid)
    time.sleep(seconds)
    after = weigh(service.pid)
    python, postgres = after.cpu_s - before.cpu_s, after.postgres_cpu_s - before.postgres_cpu_s
    print(
        f"  idle for {seconds:.0f} s: Python {python / seconds:.2%} of a core, PostgreSQL {postgres / seconds:.2%}"
    )


def _turn(service: Rig, backend: _Backend) -> None:
    user = service.database.execute("SELECT id FROM users WHERE external_id = %s", [USER]).fetchone()
    expert = service.database.execute("SELECT id FROM experts WHERE name = 'default' LIMIT 1").fetchone()
    assert user is not None
    assert expert is not None
    now = datetime.now(UTC)
    values = {
        **{"tenant_id": DEFAULT_TENANT, "user_id": user[0], "expert_id": expert[0], "space_id": None},
        **{"most_visits": 1000, "newest_visits": 10, "felt_since": now, "most_visits_after": 3},
        "quiet_hours": "never",
    }
    for name, at in (("within a visit", now), ("as a visit begins", now + timedelta(hours=2))):
        about = {**values, **coming_up_within(at)}
        bare = KNOWN.replace(f"({COMING_UP})", "'[]'::jsonb")
        print(
            f"  its statement {name}: +{backend.ms(KNOWN, about) - backend.ms(bare, about):.3f} ms of PostgreSQL"
        )
    messages = [message_of(7, number) for number in range(_ROUNDS)]
    read = _python_ms(lambda number: plain_promise(messages[number], now, "UTC"))
    asked = _python_ms(lambda _: plain_promise("Remind me tomorrow at nine to call the dentist.", now, "UTC"))
    print(f"  its message read for plain forms: {read:.3f} ms (one that asks: {asked:.3f} ms)")
    about_it = {"now": now, "last_visit": now - timedelta(hours=3)}
    line = _python_ms(lambda _: coming_up_line([], [{"plans": ["to learn Dutch"]}], "UTC", "en", len, **about_it))
    soon = f"exam on {now.date() + timedelta(days=3)}"
    dated = _python_ms(lambda _: coming_up_line([], [{"plans": [soon]}], "UTC", "en", len, **about_it))
    print(f"  the line of what is coming up: {line:.3f} ms for a plan without a day, {dated:.3f} ms with one")


def main() -> None:
    """Add the promises and print what they cost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--idle", type=float, default=0, metavar="S", help="seconds of an idle service")
    seconds = parser.parse_args().idle
    with rig() as service:
        service.say("s-1", "Hello")
        service.settle()
        backend = _Backend(service.database)
        now = {"now": datetime.now(UTC)}
        if seconds:
            print("without promises:")
            _idle(service, seconds)
        empty = backend.ms(USERS_WITH_DUE, now)
        values = {"tenant_id": DEFAULT_TENANT, "users": _USERS, "promises": _PROMISES}
        service.database.execute(cast(Any, _FILL), values)
        service.database.execute("ANALYZE promises")
        full = backend.ms(USERS_WITH_DUE, now)
        print(f"with {_PROMISES} promises of {_USERS} users:")
        share = f"{full / 1000 / _MINUTE_S:.5%} of a core"
        print(f"  the search of a minute: {full:.3f} ms, {share} (none: {empty:.3f} ms)")
        if seconds:
            _idle(service, seconds)
        print("a turn without promises:")
        _turn(service, backend)


if __name__ == "__main__":
    main()
