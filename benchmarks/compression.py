"""What compression does to 10,000 episodes with planted duplicates and contradictions, and what it costs.

`python -m benchmarks.compression [--episodes 10000] [--seed 1] [--without-model]`

A tenth of the facts are told again four to seven times in other words; another tenth change their mind in the end.
The model is a stand-in that merges what it is shown and lets the newest hold; `--without-model` goes by rules.
"""

import argparse
import asyncio
import re
import resource
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from benchmarks.compression_rig import compressing
from services.bootstrap import Services
from services.memory.blocks import Owner
from tests.support.compressing import compress, everything, merging, someone

_ADD = """
INSERT INTO episodes (id, tenant_id, user_id, expert_id, episode_type, content, importance, origin, created_at)
SELECT g.id, %(tenant_id)s, %(user_id)s, %(expert_id)s, 'preference', g.content, 0.8, 'user_said', g.at
FROM unnest(%(ids)s::uuid[], %(contents)s::text[], %(ats)s::timestamptz[]) AS g (id, content, at)
"""
_SYLLABLES = (
    "ba",
    "ko",
    "ri",
    "tem",
    "lu",
    "san",
    "wei",
    "dor",
    "pi",
    "gal",
    "nu",
    "fex",
    "hao",
    "mir",
    "zel",
    "ot",
)
_ENDS = ("", ".", "!", " now", " still", " too")
_BEGUN = datetime(2025, 1, 1, tzinfo=UTC)
_KEY = re.compile(r"likes (\w+) (\w+) (\w+)")


@dataclass
class Planted:
    """What was written, and which of it belongs together."""

    contents: list[str] = field(default_factory=list)
    repeated: list[list[int]] = field(default_factory=list)
    """Indices of duplicates."""
    changed: list[list[int]] = field(default_factory=list)
    """Indices of duplicates, the last of which contradicts the others."""


def planted(episodes: int, seed: int) -> Planted:
    """Number of episodes."""
    chance = Random(seed)
    made = Planted()
    while len(made.contents) < episodes:
        name = " ".join(_word(chance) for _ in range(3))
        times = chance.randint(5, 8)
        kind = chance.random()
        start = len(made.contents)
        if kind < 0.1:
            made.contents += [f"The user really likes {name}{_ENDS[place % 6]}" for place in range(times)]
            made.repeated.append(list(range(start, start + times)))
        elif kind < 0.2:
            made.contents += [f"The user likes {name}{_ENDS[place % 6]}" for place in range(times - 1)]
            made.contents.append(f"The user no longer likes {name}")
            made.changed.append(list(range(start, start + times)))
        else:
            made.contents.append(f"The user likes {name}")
    return made


def _word(chance: Random) -> str:
    return "".join(chance.choice(_SYLLABLES) for _ in range(chance.randint(2, 4)))


def _by_the_newest(texts: list[str]) -> dict[str, Any]:
    """The newest in the place of those about the same; what is about something else stays apart."""
    newest = texts[-1]
    about, apart, dropped = [len(texts)], [], []
    for number, text in enumerate(texts[:-1], 1):
        if _name(text) != _name(newest):
            apart.append(number)
        elif ("no longer" in text) != ("no longer" in newest):
            dropped.append({"memory": number, "reason": "contradicted"})
        else:
            about.append(number)
    return {"memory": newest, "represented": about, "dropped": dropped, "apart": apart}


def _name(text: str) -> str:
    found = _KEY.search(text)
    return found.group() if found else text


async def _plant(services: Services, owner: Owner, made: Planted) -> list[UUID]:
    ids = [uuid7() for _ in made.contents]
    ats = [_BEGUN + timedelta(minutes=place) for place in range(len(ids))]
    async with services.database.tenant(owner.tenant_id) as connection:
        await connection.execute(_ADD, {**vars(owner), "ids": ids, "contents": made.contents, "ats": ats})
    return ids


async def run(episodes: int, seed: int, *, model: bool) -> None:
    """Plant, compress, and print."""
    overrides: dict[str, Any] = {} if model else {"llm_model": None}
    async with compressing(**overrides) as (services, server):
        server.default = merging(_by_the_newest)
        made = planted(episodes, seed)
        owner = await someone(services)
        ids = await _plant(services, owner, made)
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        begun = time.monotonic()
        _, report = await compress(services, owner)
        seconds = time.monotonic() - begun
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        stored = await everything(services, owner)
    gone = [stored[each]["superseded_by"] for each in ids]
    extra = sum(len(group) - 1 for group in made.repeated)
    merged = sum(_merged(group, gone) for group in made.repeated)
    settled = 0
    for group in made.changed:
        holds = {stored[gone[place]]["content"] if gone[place] else made.contents[place] for place in group}
        settled += holds == {made.contents[group[-1]]}
    alone = set(range(len(ids))) - {place for group in (*made.repeated, *made.changed) for place in group}
    print(f"{report.episodes_before} episodes before, {report.episodes_after} after, by {report.by}")
    print(f"planted duplicates merged: {merged} of {extra} ({merged / extra:.1%})")
    print(
        f"contradictions settled by the newer: {settled} of {len(made.changed)} "
        f"({settled / len(made.changed):.1%})"
    )
    print(f"single facts that were touched: {sum(gone[place] is not None for place in alone)} of {len(alone)}")
    print(f"{report.clusters} groups, {len(report.failures)} failures, {report.left_for_later} left for later")
    print(f"{seconds:.1f} s, {report.tokens} tokens (estimated), {base:.0f} MB before, {peak:.0f} MB at the peak")


def _merged(group: list[int], gone: list[Any]) -> int:
    """How many of a group are no longer there beside another."""
    left = {gone[place] or place for place in group}
    return len(group) - len(left)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without-model", action="store_true")
    arguments = parser.parse_args()
    asyncio.run(run(arguments.episodes, arguments.seed, model=not arguments.without_model))


if __name__ == "__main__":
    main()
