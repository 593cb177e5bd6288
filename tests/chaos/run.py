"""Break the service at random under load, then look whether every promise was kept.

    python -m tests.chaos.run --turns 1000

prints the figures; the exit code is 1 when a promise was broken. The suite runs it in a short form.
"""

import argparse
import asyncio
import contextlib
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

import httpx

from tests.chaos.checks import broken_promises, query
from tests.chaos.client import Client, Told
from tests.chaos.cluster import Cluster, echoed, open_cluster
from tests.chaos.memory import check_memory

_MOST_BEHIND = 20
"""Messages behind a summary: 6 + 5, and what turns have left that did not complete."""
_SETTLED_WITHIN_S = 60.0


@dataclass
class Report:
    """The figures, and every promise that was broken."""

    figures: dict[str, object] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"  {name:<42}{value}" for name, value in self.figures.items()]
        verdict = [f"  BROKEN: {line}" for line in self.broken] or ["  every promise was kept"]
        return "\n".join([*lines, *verdict])


async def run(turns: int, *, at_once: int, seed: int) -> Report:
    """Send `turns` messages, `at_once` at the same time, while processes die; then check."""
    chance = random.Random(seed)
    report = Report()
    async with open_cluster() as cluster:
        begun = time.monotonic()
        disturbing = asyncio.create_task(cluster.disturb(random.Random(seed + 1)))
        told = [
            Told(f"u-{number % 7}", f"s-{chance.randrange(1 + at_once // 3)}", f"message-{number}")
            for number in range(turns)
        ]
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        async with httpx.AsyncClient(timeout=25, limits=limits) as http:
            erasing = asyncio.create_task(_erase_users(http, cluster, report))
            await _send_all(told, http, cluster, at_once, chance, report)
            for task in (disturbing, erasing):
                task.cancel()
            await asyncio.gather(disturbing, erasing, return_exceptions=True)
            seconds = time.monotonic() - begun
            await cluster.until_ready()
            await _until_settled(cluster, report)
            blocked = await _blocked(told, http, cluster)
            await _until_settled(cluster, report)
            figures, broken = await check_memory(cluster, http)
        report.broken += broken
        report.figures |= {
            **figures,
            "turns": turns,
            "seconds": round(seconds, 1),
            "connections": sum(one.connections for one in told),
            "connections broken": sum(one.broken for one in told),
            "streams resumed by number": sum(one.resumed for one in told),
            **cluster.counts,
        }
        report.figures["conversations blocked"] = len(blocked)
        report.broken += [f"conversation {name} is blocked" for name in blocked]
        report.broken += broken_promises(told, cluster.database_url, echoed)
        _count_stored(told, cluster, report)
        logs = "".join(process.earlier + process.text for process in cluster.processes)
        report.figures["defects in the logs"] = logs.count("Traceback")
        if "Traceback" in logs:
            report.broken.append(f"a defect in the logs: …{logs[logs.index('Traceback') - 500 :][:5000]}")
    return report


async def _send_all(
    told: list[Told],
    http: httpx.AsyncClient,
    cluster: Cluster,
    at_once: int,
    chance: random.Random,
    report: Report,
) -> None:
    waiting = iter(told)

    async def one_after_another() -> None:
        client = Client(http, cluster.addresses, random.Random(chance.random()))
        for one in waiting:
            try:
                await client.send(one)
            except TimeoutError:
                report.broken.append(f"{one.message} was never told its end (turns {one.turn_ids})")

    await asyncio.gather(*(one_after_another() for _ in range(at_once)))


async def _erase_users(http: httpx.AsyncClient, cluster: Cluster, report: Report) -> None:
    """Make users and erase them, until cancelled: each erasure defers a job in its transaction."""
    report.figures["users erased"] = number = 0
    while True:
        user = f"gone-{number}"
        body = {"user_id": user, "session_id": "s", "message": "forget me"}
        for method, path in (("POST", "/api/v1/chat"), ("DELETE", f"/api/v1/users/{user}")):
            answered = False
            while not answered:
                with contextlib.suppress(httpx.HTTPError):
                    url = cluster.addresses[number % 2] + path
                    answer = await http.request(method, url, json=body if method == "POST" else None)
                    answered = answer.status_code < 500
                await asyncio.sleep(0.1)
        number += 1
        report.figures["users erased"] = number


async def _until_settled(cluster: Cluster, report: Report) -> None:
    """Wait until nothing is in progress: turns of processes that died are ended by the others."""
    begun = time.monotonic()
    while time.monotonic() - begun < _SETTLED_WITHIN_S:
        counts = Counter[str](
            dict(query(cluster.database_url, "SELECT status, count(*) FROM turns GROUP BY status"))
        )
        jobs = query(
            cluster.database_url,
            "SELECT 1 FROM procrastinate_jobs WHERE status = 'doing' OR status = 'todo'"
            " AND task_name IN ('erase_traces', 'update_summary', 'forget_episodes')"
            " AND (scheduled_at IS NULL OR scheduled_at < now() + interval '30 s')",
        )
        if not counts["running"] and not counts["waiting"] and not jobs:
            break
        await asyncio.sleep(0.5)
    report.figures["settled after (s)"] = round(time.monotonic() - begun, 1)
    report.figures |= {f"turns {status}": count for status, count in sorted(counts.items())}
    if counts["running"] or counts["waiting"]:
        report.broken.append(f"turns left unfinished: {dict(counts)}")
    if jobs:
        report.broken.append(f"{len(jobs)} jobs left undone")


async def _blocked(told: list[Told], http: httpx.AsyncClient, cluster: Cluster) -> list[str]:
    """Conversations that do not answer a message any more."""
    blocked = []
    for user_id, session_id in sorted({(one.user_id, one.session_id) for one in told})[:40]:
        body = {"user_id": user_id, "session_id": session_id, "message": "still there?"}
        answer = await http.post(f"{cluster.addresses[0]}/api/v1/chat", json=body)
        if answer.status_code != 200 or answer.json()["answer"] != echoed("still there?"):
            blocked.append(f"{user_id}/{session_id}: {answer.text}")
    return blocked


def _count_stored(told: list[Told], cluster: Cluster, report: Report) -> None:
    """Messages stored once; jobs done."""
    stored = Counter(
        row[0] for row in query(cluster.database_url, "SELECT content FROM messages WHERE role = 'user'")
    )
    report.figures["messages stored exactly once"] = sum(stored[one.message] == 1 for one in told)
    # One that would go back to the queue while another for the same waits there is ended as `aborted`.
    jobs = Counter[str](
        dict(
            query(
                cluster.database_url,
                "SELECT CASE WHEN status = 'aborted' AND queueing_lock IS NOT NULL THEN 'replaced'"
                " ELSE status::text END AS outcome, count(*) FROM procrastinate_jobs GROUP BY outcome",
            )
        )
    )
    report.figures["jobs"] = dict(jobs)
    if jobs["failed"] or jobs["aborted"]:
        report.broken.append(f"jobs that were lost: {dict(jobs)}")
    _check_summaries(cluster, report)


def _check_summaries(cluster: Cluster, report: Report) -> None:
    """Every summary covers what it says, and none is overdue."""
    rows = query(
        cluster.database_url,
        """
        SELECT c.id, count(m.id), coalesce(max(s.covered_message_count), 0), count(m.id) FILTER (
            WHERE (m.created_at, m.id) <= (s.covered_through_created_at, s.covered_through_message_id)
        ), bool_or(m.uncovered)
        FROM conversations c JOIN messages m ON m.conversation_id = c.id AND m.completed
        LEFT JOIN conversation_summaries s ON s.conversation_id = c.id GROUP BY c.id
        """,
    )
    report.figures["summaries"] = sum(covered > 0 for _, _, covered, _, _ in rows)
    for conversation, messages, covered, before, uncovered in rows:
        # The last turn defers a job only when it completes: those before it may have been cut off.
        if covered != before or uncovered or messages - covered > _MOST_BEHIND:
            report.broken.append(f"summary of {conversation}: {covered} of {before} of {messages}, {uncovered}")


def main() -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = parser.parse_args()
    sys.stdout.write(f"chaos: {given.turns} turns, {given.at_once} at once, seed {given.seed}\n")
    report = asyncio.run(run(given.turns, at_once=given.at_once, seed=given.seed))
    sys.stdout.write(f"{report}\n")
    sys.exit(1 if report.broken else 0)


if __name__ == "__main__":
    main()
