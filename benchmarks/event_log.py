"""Cost of the event log in Redis for a turn: turns with it and without it alternate in one process.

`python -m benchmarks.event_log [--turns N]`

Counts this process's CPU only: the graph, the services, the in-process Redis, and no HTTP. The stand-in for the
language model runs in its own process; so does PostgreSQL.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from uuid import UUID, uuid4

from benchmarks.processes import child, environment_without_settings
from graph.builder import build_graph
from graph.turns.runner import TurnRunner
from services.bootstrap import open_services
from services.conversations.event_log import EventLog
from services.conversations.turn import TurnRequest
from services.engines import migrate_if_owner, open_engines
from services.identity.tenants import DEFAULT_TENANT
from services.platform.logs import configure_logs
from services.platform.settings import Settings, load_settings
from state.events import TurnEvent
from state.turn import TurnInput

_ROUNDS = 15


class _Nowhere(EventLog):
    """Takes every event and keeps none."""

    async def append(self, batches: Mapping[UUID, Sequence[TurnEvent]]) -> None:
        """Drop them."""


async def _turns(runner: TurnRunner, number: int, at_once: int) -> float:
    """Milliseconds of CPU per turn."""

    async def some(count: int) -> None:
        for _ in range(count):
            asked = TurnInput(user_id="u", session_id=uuid4().hex, message="Tell me.")
            turn_id = await runner.start(TurnRequest(DEFAULT_TENANT, asked))
            async with aclosing(runner.follow(DEFAULT_TENANT, turn_id)) as batches:
                async for batch in batches:
                    if batch[-1].status == "error":
                        raise RuntimeError(batch[-1].content)

    begun = time.process_time()
    await asyncio.gather(*(some(number // at_once) for _ in range(at_once)))
    await asyncio.sleep(0.1)  # what is still written behind the turns
    return (time.process_time() - begun) * 1000 / (number // at_once * at_once)


async def _measure(settings: Settings, turns: int, mode: str, concurrencies: tuple[int, ...]) -> None:
    async with open_engines(settings) as engines:
        await migrate_if_owner(engines)
        async with open_services(settings, engines) as services:
            runner = TurnRunner(build_graph(services).compile(), services)
            runner.open()
            kept = services.events
            dropped = _Nowhere(services.redis, kept._breaker, keep_s=600)
            for at_once in concurrencies:
                cost: dict[bool, list[float]] = {True: [], False: []}
                for _ in range(_ROUNDS):
                    for with_log in (True, False):
                        runner._writer._events = kept if with_log else dropped
                        cost[with_log].append(await _turns(runner, turns, at_once))
                with_it, without = (statistics.median(cost[key]) for key in (True, False))
                # Neighbours in time are compared: a machine's speed changes in between.
                ratio = statistics.median(one / other for one, other in zip(cost[True], cost[False], strict=True))
                print(f"{mode:<14}{at_once:>8}{with_it:>12.2f}{without:>14.2f}{ratio:>8.3f}")
            await runner.close()


def main() -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=60, help="turns a round")
    turns = parser.parse_args().turns
    with child(["-m", "benchmarks.stand_in_llm"], environment=environment_without_settings(), piped=True) as model:
        assert model.stdout
        port = int(model.stdout.readline())
        configure_logs("console", "error")
        print(f"{'tokens come':<14}{'at once':>8}{'with (ms)':>12}{'without (ms)':>14}{'ratio':>8}")
        for mode, concurrencies in (("burst", (1, 20)), ("paced", (20,))):
            with tempfile.TemporaryDirectory(prefix="anamnesis-bench-") as folder:
                settings = load_settings(
                    data_dir=Path(folder) / "data",
                    llm_model="stand-in",
                    llm_api_key="none",
                    llm_base_url=f"http://127.0.0.1:{port}/{mode}/v1",
                )
                asyncio.run(_measure(settings, turns, mode, concurrencies))


if __name__ == "__main__":
    main()
