"""Routing of messages: the knowledge bases that they are sent to and answered from.

`python -m benchmarks.routing [FOLDER …] [--misses]`

A folder holds `bases.jsonl` (`prefix, name, description, keywords, language` a line), `documents/PREFIX/*.md` and
`questions.jsonl` (`id, message, expect`: a prefix, or null for a message that needs no base), and may hold
`sections.jsonl` (`id, document, headings`: where the answer stands). Without one, the sets of our own are played:
`unseen`, `everyday` and `natural` (`benchmarks/data/routing`).

Four figures: *right*, the share of the questions of a base that are routed to it or shown a passage of it;
*shown*, the share that are shown one; *wrong*, the share that are routed to another base alone; *none to none*.
The stores are embedded, and the encoder is the built-in one unless the environment names another.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from services.bootstrap import Services, open_services
from services.engines import migrate_if_owner, open_engines
from services.errors import Unavailable
from services.identity.tenants import DEFAULT_TENANT
from services.knowledge.bases import NewBase
from services.knowledge.chunking import HEADING_SEPARATOR
from services.platform.logs import configure_logs
from services.platform.settings import load_settings

DATA = Path(__file__).parent / "data" / "routing"

Message = tuple[str, str | None]
"""A message, and the prefix of the base that it belongs to, if it belongs to one."""

Section = tuple[str, str]
"""A document and a heading in it."""


@dataclass(frozen=True)
class Routed:
    """A message, where it belongs, and where it went."""

    text: str
    expected: str | None
    went: str | None
    shown: frozenset[str]
    """The bases of which passages are shown."""
    headings: frozenset[Section]
    """The sections of which passages are shown."""
    milliseconds: float

    @property
    def right(self) -> bool:
        """Whether it went where it belongs."""
        if self.expected is None:
            return self.went is None
        return self.expected == self.went or self.expected in self.shown

    @property
    def wrong(self) -> bool:
        """Whether it went to another base than its own."""
        return self.expected is not None and self.went is not None and not self.right


@dataclass(frozen=True)
class Figures:
    """How a set was routed."""

    right: float
    shown: float
    wrong: float
    none_to_none: float


def messages_of(folder: Path) -> list[Message]:
    """The messages of a folder."""
    return [(row["message"], row["expect"]) for row in rows_of(folder / "questions.jsonl")]


def sections_of(folder: Path) -> dict[str, frozenset[Section]]:
    """By message the sections that answer it; empty where the folder does not tell."""
    file = folder / "sections.jsonl"
    found: defaultdict[str, set[Section]] = defaultdict(set)
    for row in rows_of(file) if file.exists() else ():
        found[row["id"]].update((row["document"], heading) for heading in row["headings"])
    texts = {row["id"]: row["message"] for row in rows_of(folder / "questions.jsonl")}
    return {texts[name]: frozenset(sections) for name, sections in found.items() if sections}


async def ingest(services: Services, folder: Path) -> None:
    """Make a folder's bases, take their documents in, and index them."""
    for row in rows_of(folder / "bases.jsonl"):
        new = NewBase(row["prefix"], row["description"], list(row["keywords"]))
        base = await services.knowledge.bases.create(DEFAULT_TENANT, new)
        for file in sorted((folder / "documents" / row["prefix"]).iterdir()):
            await services.knowledge.documents.ingest(DEFAULT_TENANT, base.id, file.name, file.read_bytes())
    while True:  # Milvus may just be starting
        try:
            await services.knowledge.indexing.index_waiting()
            return
        except Unavailable:
            await asyncio.sleep(0.5)


async def route(services: Services, text: str, expected: str | None) -> Routed:
    """Search all bases for a message, as a turn does."""
    begun = time.perf_counter()
    found = await services.knowledge.search.search(DEFAULT_TENANT, None, text)
    milliseconds = (time.perf_counter() - begun) * 1000
    shown = frozenset(passage["kb_prefix"] for passage in found.passages)
    headings = frozenset(
        (each["document"], each["heading"].rpartition(HEADING_SEPARATOR)[2]) for each in found.passages
    )
    went = found.base.prefix if found.base and found.passages else None
    return Routed(text, expected, went, shown, headings, milliseconds)


def figures(routed: Sequence[Routed]) -> Figures:
    """The three figures of a set."""
    own = [one for one in routed if one.expected is not None]
    strangers = [one for one in routed if one.expected is None]
    return Figures(
        sum(one.right for one in own) / max(len(own), 1),
        sum(one.expected in one.shown for one in own) / max(len(own), 1),
        sum(one.wrong for one in own) / max(len(own), 1),
        sum(one.right for one in strangers) / max(len(strangers), 1),
    )


async def main(options: argparse.Namespace) -> None:
    """Print the figures."""
    configure_logs("console", "error")
    console = Console()
    for folder in options.folders or [DATA / name for name in ("unseen", "everyday", "natural")]:
        await _play(console, folder, show_misses=options.misses)


def rows_of(file: Path) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


async def _play(console: Console, folder: Path, *, show_misses: bool) -> None:
    rows, sections = messages_of(folder), sections_of(folder)
    with tempfile.TemporaryDirectory() as data:
        settings = load_settings(data_dir=Path(data))
        async with open_engines(settings) as engines:
            await migrate_if_owner(engines)
            async with open_services(settings, engines) as services:
                await ingest(services, folder)
                routed = [await route(services, text, base) for text, base in rows]
    own, found = sum(one.expected is not None for one in routed), figures(routed)
    times = [one.milliseconds for one in routed[1:]]
    console.print(
        f"{folder.name}: {own} questions of a base, right {found.right:.3f}, shown {found.shown:.3f}, "
        f"wrong {found.wrong:.3f}; "
        f"{len(routed) - own} of none, none to none {found.none_to_none:.3f}"
    )
    if sections:
        answered = [not one.headings.isdisjoint(sections[one.text]) for one in routed if one.text in sections]
        console.print(f"{sum(answered) / len(answered):.3f} of {len(answered)} are shown the section that answers")
    console.print(f"{statistics.median(times):.1f} ms a search (at most {max(times):.1f})")
    for one in routed if show_misses else ():
        if not one.right:
            went = ", ".join([one.went or "none", *sorted(one.shown)])
            console.print(f"{one.expected or 'none'} → {went}: {one.text}", markup=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--misses", action="store_true", help="also print what went elsewhere")
    asyncio.run(main(parser.parse_args()))
