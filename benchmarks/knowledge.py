"""How well knowledge bases are searched, and how long taking documents in takes.

`python -m benchmarks.knowledge [--pages 1000] [--misses]`

The bases, their documents and the questions are our own (`benchmarks/data/knowledge`), and a question is answered
by the passages of one document under one heading. The pages are generated. The stores are embedded, and the
embedder is the lexical one unless the environment names another.
"""

import argparse
import asyncio
import json
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, get_args

from rich.console import Console
from rich.table import Table

from services.bootstrap import Services, open_services
from services.engines import migrate_if_owner, open_engines
from services.errors import Unavailable
from services.identity.tenants import DEFAULT_TENANT
from services.knowledge.base import NewBase
from services.knowledge.chunking import HEADING_SEPARATOR
from services.platform.logs import configure_logs
from services.platform.settings import load_settings
from state.conversation import AgentType
from state.prompt import Passage

DATA = Path(__file__).parent / "data" / "knowledge"
_DEPTH = 5
_WORDS = 400


@dataclass(frozen=True)
class Asked:
    """A question, where its answer stands, and at which place it was found (from 1); None = not among five."""

    base: str
    question: str
    document: str
    heading: str
    place: int | None


def bases() -> list[NewBase]:
    """The bases as they describe themselves."""
    return [_base(tomllib.loads(file.read_text(encoding="utf-8"))) for file in sorted(DATA.glob("*/base.toml"))]


def questions(prefix: str) -> list[dict[str, str]]:
    """The questions to a base: `question`, `document`, `heading`."""
    lines = (DATA / prefix / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def pages(count: int, seed: int = 7) -> Iterator[tuple[str, bytes]]:
    """Generated Markdown pages of some 400 words, half of them Chinese."""
    chance = Random(seed)
    chinese = [chr(0x4E00 + chance.randrange(2500)) + chr(0x4E00 + chance.randrange(2500)) for _ in range(3000)]
    english = [
        "".join(chance.choice("bcdfglmnprst") + chance.choice("aeiou") for _ in range(3)) for _ in range(3000)
    ]
    for number in range(count):
        words, joint, stop = (chinese, "", "。") if number % 2 else (english, " ", ". ")
        text = [f"# Page {number}"]
        for section in range(4):
            sentences = (joint.join(chance.choices(words, k=10)) for _ in range(_WORDS // 40))
            text.append(f"## Section {section}\n\n{stop.join(sentences)}{stop}")
        yield f"page-{number:04d}.md", "\n\n".join(text).encode()


async def main(options: argparse.Namespace) -> None:
    """Print the figures."""
    configure_logs("console", "error")
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings(data_dir=Path(folder))
        async with open_engines(settings) as engines:
            await migrate_if_owner(engines)
            async with open_services(settings, engines) as services:
                await _search(services, console, show_misses=options.misses)
                if options.pages:
                    await _ingest(services, console, options.pages)


async def ingest_all(services: Services) -> None:
    """Make the bases, take their documents in, and index them."""
    for new in bases():
        base = await services.knowledge.bases.create(DEFAULT_TENANT, new)
        for file in sorted((DATA / new.prefix / "documents").iterdir()):
            await services.knowledge.documents.ingest(DEFAULT_TENANT, base.id, file.name, file.read_bytes())
    await index(services)


async def _search(services: Services, console: Console, *, show_misses: bool) -> None:
    await ingest_all(services)
    table = Table("agent", "base", "questions", "hit@1", f"hit@{_DEPTH}", "MRR", box=None, pad_edge=False)
    misses: list[tuple[str, Asked]] = []
    for agent in get_args(AgentType):
        every: list[Asked] = []
        for new in bases():
            asked = [await _ask(services, new.prefix, one, agent) for one in questions(new.prefix)]
            table.add_row(agent, new.prefix, *_figures(asked))
            every += asked
        table.add_row(agent, "all", *_figures(every))
        misses += [(agent, one) for one in every if one.place != 1]
    console.print(table)
    await _strangers(services, console)
    for agent, one in misses if show_misses else ():
        console.print(f"{agent} {one.base} {one.place}: {one.question} ({one.document}, {one.heading})")


async def _ask(services: Services, prefix: str, one: dict[str, str], agent: AgentType) -> Asked:
    found = await services.knowledge.search.search(
        DEFAULT_TENANT, prefix, one["question"], agent_type=agent, limit=_DEPTH
    )
    places = (place for place, passage in enumerate(found.passages, 1) if _answers(passage, one))
    return Asked(prefix, one["question"], one["document"], one["heading"], next(places, None))


async def _strangers(services: Services, console: Console) -> None:
    """Ask every base what the others answer: it should show nothing."""
    shown = count = 0
    for new in bases():
        for other in bases():
            for one in questions(other.prefix) if other.prefix != new.prefix else ():
                found = await services.knowledge.search.search(DEFAULT_TENANT, new.prefix, one["question"])
                count += 1
                shown += bool(found.passages)
    console.print(f"Of {count} questions to a base that does not answer them {shown} show a passage.")


async def _ingest(services: Services, console: Console, count: int) -> None:
    base = await services.knowledge.bases.create(DEFAULT_TENANT, NewBase("pages", "Generated pages."))
    begun = time.perf_counter()
    for source, data in pages(count):
        await services.knowledge.documents.ingest(DEFAULT_TENANT, base.id, source, data)
    taken_in = time.perf_counter() - begun
    await index(services)
    indexed = time.perf_counter() - begun
    known = await services.knowledge.bases.get(DEFAULT_TENANT, "pages")
    console.print(
        f"{known.documents} pages, {known.chunks} chunks: taken in after {taken_in:.1f} s, all indexed after "
        f"{indexed:.1f} s; {known.waiting} wait."
    )
    times = []
    for number in range(0, count, max(1, count // 50)):
        begun = time.perf_counter()
        await services.knowledge.search.search(DEFAULT_TENANT, "pages", f"Page {number} Section 2")
        times.append(time.perf_counter() - begun)
    times.sort()
    middle, slowest = times[len(times) // 2] * 1000, times[-1] * 1000
    console.print(f"A search among them: {middle:.0f} ms in the middle, {slowest:.0f} ms the slowest.")


async def index(services: Services) -> None:
    """Index all chunks that wait."""
    while True:  # Milvus may just be starting
        try:
            await services.knowledge.indexing.index_waiting()
            return
        except Unavailable:
            await asyncio.sleep(0.5)


def _answers(passage: Passage, one: dict[str, str]) -> bool:
    last = passage["heading"].rpartition(HEADING_SEPARATOR)[2]
    return (passage["document"], last) == (one["document"], one["heading"])


def _figures(asked: Sequence[Asked]) -> tuple[str, ...]:
    places = [one.place for one in asked]
    figures = (
        sum(place == 1 for place in places),
        sum(place is not None for place in places),
        sum(1 / place for place in places if place),
    )
    return (str(len(asked)), *(f"{figure / len(asked):.3f}" for figure in figures))


def _base(said: dict[str, Any]) -> NewBase:
    return NewBase(
        prefix=said["prefix"],
        description=said["description"],
        keywords=tuple(said["keywords"]),
        questions=tuple(said["questions"]),
        system_prompt=said["system_prompt"],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--misses", action="store_true")
    asyncio.run(main(parser.parse_args()))
