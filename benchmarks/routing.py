"""Which knowledge base messages are routed to.

`python -m benchmarks.routing [--misses]`

Four bases of our own with their documents (`benchmarks/data/knowledge`), and three sets of messages: those on
which the numbers of `services/knowledge/deciding.py` were tuned, others, and the questions that the documents
answer. A message that no base is about belongs to none. The stores are embedded, and the embedder is the lexical
one unless the environment names another.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.knowledge import bases, ingest_all, questions
from services.bootstrap import Services, open_services
from services.engines import migrate_if_owner, open_engines
from services.identity.tenants import DEFAULT_TENANT
from services.platform.logs import configure_logs
from services.platform.settings import load_settings

DATA = Path(__file__).parent / "data" / "routing"
_NONE = "none"


@dataclass(frozen=True)
class Routed:
    """A message, where it belongs, where it went and by what, and how long the rules took."""

    text: str
    base: str
    went: str
    method: str
    rules_ms: float
    similarity_ms: float


def messages(name: str) -> list[tuple[str, str]]:
    """The messages of a set, each with its base, or `none`."""
    lines = (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [(row["text"], row["base"] or _NONE) for row in map(json.loads, lines)]


async def main(options: argparse.Namespace) -> None:
    """Print the figures."""
    configure_logs("console", "error")
    console = Console()
    answered = [(one["question"], new.prefix) for new in bases() for one in questions(new.prefix)]
    sets = {"tuned on": messages("dev"), "others": messages("test"), "answered by the documents": answered}
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings(data_dir=Path(folder))
        async with open_engines(settings) as engines:
            await migrate_if_owner(engines)
            async with open_services(settings, engines) as services:
                await ingest_all(services)
                for name, rows in sets.items():
                    routed = [await route(services, text, base) for text, base in rows]
                    _print(console, name, routed, show_misses=options.misses)


async def route(services: Services, text: str, base: str) -> Routed:
    """Route a message as a turn does: by rules, and by similarity where they are not sure."""
    begun = time.perf_counter()
    found = await services.routing.by_rules(DEFAULT_TENANT, "1", text)
    rules_ms = (time.perf_counter() - begun) * 1000
    similarity_ms = 0.0
    if found.undecided:
        [vector] = await services.embedder.embed([text])
        begun = time.perf_counter()
        found = await services.routing.by_similarity(DEFAULT_TENANT, "1", text, vector)
        similarity_ms = (time.perf_counter() - begun) * 1000
    decision = found.decision
    return Routed(text, base, decision["kb_prefix"] or _NONE, decision["method"], rules_ms, similarity_ms)


def _print(console: Console, name: str, routed: Sequence[Routed], *, show_misses: bool) -> None:
    own = [one for one in routed if one.base != _NONE]
    strangers = [one for one in routed if one.base == _NONE]
    right = sum(one.went == one.base for one in own)
    wrong = sum(one.went not in {one.base, _NONE} for one in own)
    console.print(f"\n{name}: {len(own)} that belong to a base, {len(strangers)} that belong to none")
    count = Counter((one.base, one.went) for one in routed)
    places = [*(new.prefix for new in bases()), _NONE]
    table = Table("belongs to", *(f"→ {place}" for place in places), box=None, pad_edge=False)
    for base in places:
        table.add_row(base, *(str(count[base, went] or "·") for went in places))
    console.print(table)
    console.print(f"to the right base {right / len(own):.2f}, to a wrong one {wrong / len(own):.3f}")
    if strangers:
        console.print(f"none to none {sum(one.went == _NONE for one in strangers) / len(strangers):.3f}")
    by = Counter(one.method for one in routed)
    rules = statistics.median(one.rules_ms for one in routed)
    longest = max(one.rules_ms for one in routed[1:])
    near = [one.similarity_ms for one in routed if one.similarity_ms]
    console.print(
        f"by {dict(by)}; rules {rules:.2f} ms, at most {longest:.2f}; then {statistics.median(near):.1f} ms"
    )
    for one in routed if show_misses else ():
        if one.went != one.base:
            console.print(f"{one.base} → {one.went} ({one.method}): {one.text}", markup=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--misses", action="store_true", help="also print what went elsewhere")
    asyncio.run(main(parser.parse_args()))
