"""`anamnesis top`: what running processes are doing, from their metrics."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import httpx
import typer
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from rich.live import Live
from rich.table import Table

from api.cli.service import WithKey
from api.cli.shell import fail, settings_or_exit
from services.platform.settings import URL_VARIABLE

_PATIENCE_S = 5.0
_BUCKETS = "anamnesis_first_token_seconds_bucket"


@dataclass(frozen=True)
class Reading:
    """The metrics of some processes at one moment, counters summed."""

    at: float
    sums: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Values by metric name and value of the first label, or an empty text."""

    def of(self, name: str, label: str | None = None) -> float:
        """The sum of a metric, over all values of its first label or for one."""
        return sum(value for (each, key), value in self.sums.items() if each == name and label in (None, key))

    def labels(self, name: str) -> list[str]:
        """Values of a metric's first label."""
        return sorted({key for each, key in self.sums if each == name})


def read(texts: Sequence[str], at: float) -> Reading:
    """Sum the metrics of several processes; of the queue's metrics, which are global, take the largest."""
    sums: dict[tuple[str, str], float] = {}
    for text in texts:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                key = (sample.name, next(iter(sample.labels.values()), ""))
                of_the_queue = sample.name.startswith("anamnesis_jobs_")
                sums[key] = (
                    max(sums.get(key, 0), sample.value) if of_the_queue else sums.get(key, 0) + sample.value
                )
    return Reading(at, sums)


def rows(now: Reading, before: Reading) -> Iterator[tuple[str, str]]:
    """Compute the display: rates since the previous reading, gauges as they are."""
    seconds = max(now.at - before.at, 1e-9)

    def rate(name: str, label: str | None = None) -> float:
        return max(0.0, now.of(name, label) - before.of(name, label)) / seconds

    yield ("turns running", f"{now.of('anamnesis_turns_running'):.0f}")
    for status in now.labels("anamnesis_turns_total"):
        yield (f"turns {status}", f"{rate('anamnesis_turns_total', status):.1f}/s")
    yield ("turns refused", f"{rate('anamnesis_turns_refused_total'):.1f}/s")
    yield ("first token, 95th percentile", _percentile(now, before, 0.95))
    for source in now.labels("anamnesis_degraded_total"):
        yield (f"without {source}", f"{rate('anamnesis_degraded_total', source):.1f}/s")
    for kind in now.labels("anamnesis_llm_tokens_total"):
        yield (f"tokens {kind}", f"{rate('anamnesis_llm_tokens_total', kind):.0f}/s")
    yield ("jobs waiting", f"{now.of('anamnesis_jobs_waiting'):.0f}")
    yield ("oldest waiting job", f"{now.of('anamnesis_jobs_oldest_waiting_seconds'):.0f} s")
    yield ("jobs failed", f"{now.of('anamnesis_jobs_failed'):.0f}")
    yield ("CPU", f"{rate('process_cpu_seconds_total') * 100:.0f} %")
    yield ("memory", f"{now.of('process_resident_memory_bytes') / 2**20:.0f} MB")


def top(
    url: Annotated[
        list[str] | None,
        typer.Option(envvar=URL_VARIABLE, help="Address of a process; give one for each of several."),
    ] = None,
    key: WithKey = None,
    every: Annotated[float, typer.Option(min=0.2, max=60, help="Seconds between two readings.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Read twice, print, and end.")] = False,
) -> None:
    """Show what running processes are doing: turns, waiting times, tokens, jobs, CPU and memory.

    Example: `anamnesis top --url http://api-1:8000 --url http://api-2:8000`
    """
    settings = settings_or_exit()
    addresses = url or [f"http://{settings.host}:{settings.port}"]
    try:
        headers = {"Authorization": f"Bearer {key}"} if key else None
        with httpx.Client(timeout=_PATIENCE_S, headers=headers) as client:
            before = _look(client, addresses)
            time.sleep(every)
            now = _look(client, addresses)
            if once:
                Console().print(_table(now, before))
                return
            with Live(_table(now, before), screen=True) as live:
                while True:
                    time.sleep(every)
                    before, now = now, _look(client, addresses)
                    live.update(_table(now, before))
    except KeyboardInterrupt:
        return


def _look(client: httpx.Client, addresses: Sequence[str]) -> Reading:
    texts = []
    for address in addresses:
        try:
            texts.append(client.get(f"{address.rstrip('/')}/metrics").raise_for_status().text)
        except httpx.HTTPError as error:
            fail(f"{address} gives no metrics ({type(error).__name__}); is it an Anamnesis service?")
    return read(texts, time.monotonic())


def _table(now: Reading, before: Reading) -> Table:
    table = Table("what", "now", box=None, pad_edge=False)
    for row in rows(now, before):
        table.add_row(*row)
    return table


def _percentile(now: Reading, before: Reading, share: float) -> str:
    """Return the smallest bucket that holds this share of the turns since the previous reading."""
    counts = {float(each): now.of(_BUCKETS, each) - before.of(_BUCKETS, each) for each in now.labels(_BUCKETS)}
    total = counts.get(float("inf"), 0.0)
    if total <= 0:
        return "–"
    return f"≤ {min(bound for bound, count in counts.items() if count >= share * total):g} s"
