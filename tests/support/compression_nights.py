"""Many nights of compression with a model that fails one time in ten."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any
from uuid import UUID

from services.bootstrap import Services
from services.memory.blocks import Owner
from tests.support.compressing import change, compress, everything, shown, someone, write
from tests.support.model_server import ModelServer, Received, Reply

_SUBJECTS = (
    "drinks a large cup of green tea with honey and ginger every morning before breakfast",
    "walks the brown dog Bruno through the old park behind the railway station",
    "每天早上都在西湖边慢跑五公里然后去公司上班写代码",
    "is learning to play the violin with a patient teacher named Agnes",
    "wants to move to a small village by the sea within the coming years",
    "keeps a vegetable garden with tomatoes beans pumpkins and many herbs",
)
_WAYS = ("now", "too", "yet", "so", "ok", "oh")
_ALONE = ("knitted", "sold", "repaired", "painted", "found", "borrowed", "lost", "cleaned")
_THINGS = ("lamp", "bicycle", "ladder", "carpet", "kettle", "mirror", "radio", "suitcase", "telescope", "umbrella")


@dataclass(frozen=True)
class Night:
    """How it stands after a night."""

    episodes: int
    """All that are stored."""
    living: int
    consolidated: int
    """Texts that were merged, all that are stored."""
    failures: int
    said: int
    """Memories that were written until then."""


async def nights(
    services: Services, server: ModelServer, number: int, seed: int = 1
) -> tuple[list[Night], list[str]]:
    """Play this many nights of one user; return the state after each, and what is wrong."""
    chance = Random(seed)
    server.default = lambda received: _sometimes(received, chance)
    owner = await someone(services, f"nights-{seed}")
    said: dict[UUID, str] = {}
    course: list[Night] = []
    wrong: list[str] = []
    for night in range(number):
        texts = [
            f"The user {chance.choice(_SUBJECTS)} {chance.choice(_WAYS)}" for _ in range(chance.randint(2, 5))
        ]
        texts.append(f"{chance.choice(_ALONE)} a {chance.choice(_THINGS)} on day {night}")
        said |= dict(zip(await write(services, owner, *texts), texts, strict=True))
        _, report = await compress(services, owner)
        if night % 10 == 5:  # what was said before has not been used for long
            await change(services, "UPDATE episodes SET learned_at = learned_at - interval '100 days'")
        await services.maintenance.scheduler.maintain(owner.tenant_id, owner.user_id, datetime.now(UTC))
        if night % 30 == 29:  # retention
            await services.compression.undo.forget_older(owner.tenant_id, datetime.now(UTC))
        stored = await everything(services, owner)
        wrong += [f"night {night}: {each}" for each in _wrong(stored, said)]
        living = sum(row["superseded_by"] is None for row in stored.values())
        merged = sum(row["episode_type"] == "consolidated" for row in stored.values())
        course.append(Night(len(stored), living, merged, len(report.failures), len(said)))
    wrong += await _not_staged(services, owner)
    return course, wrong


def _wrong(stored: dict[UUID, dict[str, Any]], said: dict[UUID, str]) -> list[str]:
    found = [f"{text!r} is lost" for each, text in said.items() if each not in stored]
    for each, text in said.items():
        held = each
        while held in stored and stored[held]["superseded_by"] is not None:
            held = stored[held]["superseded_by"]
        if held not in stored:
            found.append(f"{text!r} is held by nothing")
        elif _subject(stored[held]["content"]) != _subject(text):
            found.append(f"{text!r} became {stored[held]['content']!r}")
    return found


async def _not_staged(services: Services, owner: Owner) -> list[str]:
    async with services.database.tenant(owner.tenant_id) as connection:
        left = await connection.execute("SELECT id FROM compression_drafts WHERE content IS NOT NULL")
        return [f"{row[0]} is still staged" for row in await left.fetchall()]


def _subject(text: str) -> str:
    return next((subject for subject in _SUBJECTS if subject in text), text)


def _sometimes(received: Received, chance: Random) -> Reply:
    right = json.dumps(_merged(shown(received)), ensure_ascii=False)
    if chance.random() >= 0.1:
        return Reply([right])
    return chance.choice(
        (Reply(["I cannot do that."]), Reply(status=500), Reply([right[:40]], ending="cut"), Reply([right[:40]]))
    )


def _merged(texts: Sequence[str]) -> dict[str, Any]:
    same = [number for number, text in enumerate(texts, 1) if _subject(text) == _subject(texts[-1])]
    apart = [number for number in range(1, len(texts) + 1) if number not in same]
    return {"memory": texts[-1], "represented": same, "dropped": [], "apart": apart}
