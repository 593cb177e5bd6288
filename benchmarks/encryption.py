"""What encryption costs: CPU per turn of the service and of PostgreSQL, with it and without, side by side.

`python -m benchmarks.encryption [--rounds N] [--turns N]`

The two services take turns. A user's turns go on in one conversation, so that each reads what those before it
wrote.
"""

import argparse
import statistics
from dataclasses import dataclass, field

from benchmarks.processes import child
from benchmarks.turn_overhead import Client, Server, service, stand_in

_LANES = 4
_WARM_UP = 5
_MESSAGES = (
    "I moved to Porto with my sister last spring, and we share a flat near the river.",
    "What did I tell you about where I live, and with whom?",
    "Remember that I am allergic to peanuts and would rather have short answers.",
    "Tell me, in a few words, what you know about it.",
)


@dataclass
class _Cost:
    service_ms: list[float] = field(default_factory=list)
    postgres_ms: list[float] = field(default_factory=list)
    first_ms: list[float] = field(default_factory=list)


def _lanes(number: int, turns: int) -> list[list[dict[str, str]]]:
    return [
        [
            {
                "user_id": f"user-{number}-{lane}",
                "session_id": f"s-{number}-{lane}",
                "message": _MESSAGES[turn % len(_MESSAGES)],
            }
            for turn in range(turns)
        ]
        for lane in range(_LANES)
    ]


def _measure(server: Server, client: Client, number: int, turns: int) -> tuple[float, float, list[float]]:
    lanes = _lanes(number, turns)
    samples, before, after = client.measure(server, server.load(lanes, _LANES))
    count = turns * _LANES
    return (
        (after.cpu_s - before.cpu_s) * 1000 / count,
        (after.postgres_cpu_s - before.postgres_cpu_s) * 1000 / count,
        samples.first_ms,
    )


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.encryption", description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--turns", type=int, default=12, help="of each of four users in a round")
    options = parser.parse_args()
    costs = {"clear": _Cost(), "encrypted": _Cost()}
    with stand_in() as llm_port, child(["-m", "benchmarks.load_client"], piped=True) as process:
        client, base_url = Client(process), f"http://127.0.0.1:{llm_port}/burst/v1"
        with (
            service(base_url, "responses", name="clear") as clear,
            service(base_url, "responses", name="encrypted", ANAMNESIS_ENCRYPTION="on") as encrypted,
        ):
            for server in (clear, encrypted):
                _measure(server, client, -1, _WARM_UP)
            for number in range(options.rounds):
                for server in (clear, encrypted) if number % 2 == 0 else (encrypted, clear):
                    of_service, of_postgres, first = _measure(server, client, number, options.turns)
                    costs[server.name].service_ms.append(of_service)
                    costs[server.name].postgres_ms.append(of_postgres)
                    costs[server.name].first_ms += first
    for name, cost in costs.items():
        print(
            f"{name:10} service {statistics.median(cost.service_ms):6.1f} ms CPU a turn, "
            f"PostgreSQL {statistics.median(cost.postgres_ms):5.1f}, "
            f"first token {statistics.median(cost.first_ms):6.1f} ms"
        )
    ratios = [e / c for e, c in zip(costs["encrypted"].service_ms, costs["clear"].service_ms, strict=True)]
    both = [
        (e + f) / (c + d)
        for e, f, c, d in zip(
            costs["encrypted"].service_ms,
            costs["encrypted"].postgres_ms,
            costs["clear"].service_ms,
            costs["clear"].postgres_ms,
            strict=True,
        )
    ]
    print(
        f"service {statistics.median(ratios):.2f}, with PostgreSQL {statistics.median(both):.2f} times as much CPU"
    )


if __name__ == "__main__":
    main()
