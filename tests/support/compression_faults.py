"""Runs of compression that are broken at any step, by a model that answers anything; what must hold after."""

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import UUID

from services.bootstrap import Services
from services.errors import Conflict, NotFound
from services.memory.blocks import Owner
from services.memory.operations import Trigger
from tests.support.compressing import everything, into_the_newest, shown, someone, write
from tests.support.model_server import ModelServer, Received, Reply

_SUBJECTS = (
    "drinks green tea at dawn",
    "walks the dog Bruno in the park",
    "在杭州西湖边上班",
    "plays chess with Ann",
)
_WAYS = ("again", "as ever", "of late", "也许", "once more", "today")

_EXPIRE = "UPDATE compression_runs SET lease_until = now() - interval '1 second' WHERE user_id = %s"
_RUNS = "SELECT id, status FROM compression_runs WHERE user_id = %s ORDER BY created_at DESC, id DESC"
_MADE_OF = """
SELECT s.draft_id, s.episode_id FROM compression_sources s JOIN episodes e ON e.id = s.draft_id
WHERE s.user_id = %s
"""

Stored = Mapping[UUID, Mapping[str, Any]]


@dataclass
class Tally:
    """What became of the runs."""

    runs: int = 0
    crashes: int = 0
    """Broken off before their end."""
    swapped: int = 0
    unchanged: int = 0
    interfered: int = 0
    """With an episode removed or written meanwhile."""
    wrong: list[str] = field(default_factory=list)


def any_answer(received: Received, chance: Random, share_of_garbage: float) -> Reply:
    """A right answer, or one that is wrong in one of many ways."""
    texts = shown(received)
    if not texts or chance.random() >= share_of_garbage:
        return Reply([json.dumps(_right(texts, chance), ensure_ascii=False)])
    right = json.dumps(into_the_newest(texts or ["x"]), ensure_ascii=False)
    return chance.choice(
        [
            Reply(["Certainly, here is the answer."]),
            Reply([right[: chance.randrange(len(right))]]),
            Reply([right], ending="cut"),
            Reply([right[:10]], ending="abort"),
            Reply(status=500),
            Reply(status=429),
            Reply(raw=b"data: \xff\xfe not JSON\n\n"),
            *(Reply([json.dumps(wrong, ensure_ascii=False)]) for wrong in _wrong(texts, chance)),
        ]
    )


def _right(texts: Sequence[str], chance: Random) -> dict[str, Any]:
    numbers = list(range(1, len(texts) + 1))
    newest = numbers.pop()
    chance.shuffle(numbers)
    cut = chance.randrange(len(numbers) + 1)
    apart = numbers[cut:][:1]
    dropped = [{"memory": number, "reason": "contradicted"} for number in numbers[cut:][1:2]]
    represented = [newest, *numbers[:cut], *numbers[cut:][2:]]
    # Each has a word in common with it, whatever they are about.
    return {"memory": "\n".join(texts), "represented": represented, "dropped": dropped, "apart": apart}


def _wrong(texts: Sequence[str], chance: Random) -> list[Any]:
    right = into_the_newest(texts)
    every = right["represented"]
    return [
        {},
        [],
        {**right, "memory": ""},
        {**right, "memory": "x" * 5000},
        {**right, "memory": "Nothing that anybody said 98765"},
        {**right, "memory": None},
        {**right, "represented": every[:-1]},
        {**right, "represented": [*every, len(every) + 1]},
        {**right, "represented": [*every, 1]},
        {**right, "represented": [str(number) for number in every]},
        {**right, "represented": [], "dropped": [{"memory": number, "reason": "trivial"} for number in every]},
        {**right, "represented": every[1:], "dropped": [{"memory": 1, "reason": "because"}]},
        {"memory": right["memory"], "represented": [], "apart": every},
        {**right, "represented": [0, -1, 10**30]},
        chance.random(),
    ]


async def one_case(services: Services, server: ModelServer, seed: int, tally: Tally) -> None:
    """One user: a few runs, any of which is broken off, and memory looked at after each."""
    chance = Random(seed)
    share = chance.choice((0.0, 0.3, 0.7, 1.0))
    server.default = lambda received: any_answer(received, chance, share)
    owner = await someone(services, f"user-{seed}")
    said = [f"The user {chance.choice(_SUBJECTS)} {chance.choice(_WAYS)}" for _ in range(chance.randint(4, 14))]
    await write(services, owner, *said)
    before = await everything(services, owner)
    for _ in range(chance.choice((1, 1, 2, 3))):
        removed = await _broken_run(services, owner, chance, tally)
        tally.wrong += [f"{seed}: {each}" for each in await _violations(services, owner, before, removed)]
        before = {each: row for each, row in before.items() if each not in removed}
    await _undo_all(services, owner)
    after = await everything(services, owner)
    known = {each: dict(row) for each, row in after.items() if each in before}
    if known != before:
        tally.wrong.append(f"{seed}: undone, it is not as it was")
    if any(row["superseded_by"] or row["episode_type"] == "consolidated" for row in after.values()):
        tally.wrong.append(f"{seed}: something is left of runs that were undone")


async def _broken_run(services: Services, owner: Owner, chance: Random, tally: Tally) -> set[UUID]:
    compression = services.compression
    async with services.database.tenant(owner.tenant_id) as connection:
        await connection.execute(_EXPIRE, [owner.user_id])  # the crashed process is long gone
    state = await everything(services, owner)
    run = await compression.request(owner, job=False)
    running = asyncio.create_task(compression.carry_out(owner.tenant_id, run.id))
    removed: set[UUID] = set()
    tally.runs += 1
    if chance.random() < 0.3:
        await _ticks(chance.randrange(200))
        removed = await _interfere(services, owner, state, chance)
        tally.interfered += 1
    if chance.random() < 0.6:
        await _ticks(chance.randrange(400))
        await asyncio.sleep(chance.choice((0, 0, 0.005, 0.02, 0.05)))
        running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    status = (await compression.run(owner.tenant_id, owner.user_id, run.id)).status
    tally.crashes += status != "done"
    now = await everything(services, owner)
    if status == "done" and now != state:
        tally.swapped += 1
    else:
        tally.unchanged += 1
    if status != "done" and not removed and {each: now.get(each) for each in state} != state:
        tally.wrong.append(f"{owner.user_id}: a run that did not end has changed something")
    if chance.random() < 0.5 and status != "done":  # its job is given to another worker
        await compression.carry_out(owner.tenant_id, run.id)
    return removed


async def _ticks(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def _interfere(services: Services, owner: Owner, state: Stored, chance: Random) -> set[UUID]:
    if chance.random() < 0.3:
        await write(services, owner, "The user has just learned to swim")
        return set()
    leaves = [each for each, row in state.items() if row["episode_type"] != "consolidated"]
    episode_id = chance.choice(leaves)
    with contextlib.suppress(NotFound):
        await services.memory.archive.remove(owner, episode_id, Trigger("user"))
    return {episode_id}


async def _violations(services: Services, owner: Owner, before: Stored, removed: set[UUID]) -> list[str]:
    stored = await everything(services, owner)
    async with services.database.tenant(owner.tenant_id) as connection:
        made_of = await (await connection.execute(_MADE_OF, [owner.user_id])).fetchall()
        runs = dict(await (await connection.execute(_RUNS, [owner.user_id])).fetchall())
    wrong = [f"{each} is lost" for each in before if each not in stored and each not in removed]
    wrong += [f"{each} came back" for each in removed if each in stored]
    for each, row in before.items():
        now = stored.get(each)
        if now and {**now, "superseded_by": None} != {**row, "superseded_by": None}:
            wrong.append(f"{each} was changed")
    for each, row in stored.items():
        by = row["superseded_by"]
        if by is not None and by not in stored and runs.get(by) != "done":
            wrong.append(f"{each} is superseded by nothing that is there")
        sources = [source for source, other in stored.items() if other["superseded_by"] == each]
        if row["episode_type"] == "consolidated" and len(sources) < 2:
            wrong.append(f"{each} has {len(sources)} sources")
    wrong += [f"{made} holds what was removed" for made, source in made_of if source in removed]
    return wrong


async def _undo_all(services: Services, owner: Owner) -> None:
    """From the newest run to the oldest; after it nothing is staged either."""
    compression = services.compression
    async with services.database.tenant(owner.tenant_id) as connection:
        runs = await (await connection.execute(_RUNS, [owner.user_id])).fetchall()
    for run_id, _ in runs:
        with contextlib.suppress(Conflict):
            await compression.undo.undo(owner.tenant_id, owner.user_id, run_id)
