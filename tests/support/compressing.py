"""Memory to be compressed: written, read back whole, and a model that merges what it is shown."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from services.bootstrap import Services
from services.compression.models import Report
from services.compression.run import StoredRun
from services.identity.tenants import DEFAULT_TENANT
from services.memory.blocks import Owner
from services.memory.episodes.episode import NewEpisode
from services.memory.operations import Trigger
from tests.support.model_server import Received, Reply
from tests.support.turns import exchange

_SHOWN = re.compile(r"^\[(\d+)\] \(([^)]*)\)\n((?:> .*\n?)+)", re.MULTILINE)

_TEA = "The user drinks a large cup of green tea with honey and ginger every single morning"
TEA = [f"{_TEA} {word}" for word in ("now", "too", "yet", "so")]
"""Memories that say the same."""
MORE = [f"{_TEA} {word}" for word in ("ok", "yes", "oh")]
"""More of them, for later."""
OTHER = "A letter from Lisbon came today"

Merge = Callable[[list[str]], dict[str, Any]]
"""From the texts that are shown, oldest first, to the answer."""


async def someone(services: Services, user: str = "u-1") -> Owner:
    """A user with one turn, and no episode."""
    turn = await exchange(services.turns, "Hello", "Hi", external_user_id=user)
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute("DELETE FROM episodes WHERE user_id = %s", [turn.user_id])
    return Owner(turn.tenant_id, turn.user_id, turn.expert_id)


async def write(
    services: Services, owner: Owner, *contents: str, importance: float = 0.5, **more: Any
) -> list[UUID]:
    """Memories that were written one after another."""
    return [
        await services.memory.archive.insert(
            owner, NewEpisode(content, "context", importance, "user_said", **more), Trigger("user")
        )
        for content in contents
    ]


async def compress(services: Services, owner: Owner, *, dry_run: bool = False) -> tuple[StoredRun, Report]:
    """One run, here and now."""
    compression = services.compression
    run = await compression.request(owner, dry_run=dry_run, job=False)
    report = await compression.carry_out(owner.tenant_id, run.id)
    assert report
    return await compression.run(owner.tenant_id, owner.user_id, run.id), report


async def undo(services: Services, owner: Owner, run: StoredRun) -> int:
    """Take a run back."""
    return await services.compression.undo.undo(owner.tenant_id, owner.user_id, run.id)


async def everything(services: Services, owner: Owner) -> dict[UUID, dict[str, Any]]:
    """Every episode of a user as it stands, but for whether it is indexed and what changed it last."""
    async with (
        services.database.tenant(owner.tenant_id) as connection,
        connection.cursor(row_factory=dict_row) as c,
    ):
        await c.execute("SELECT * FROM episodes WHERE user_id = %s ORDER BY id", [owner.user_id])
        rows = await c.fetchall()
    passing = {"indexed_at", "changed_in"}
    return {row["id"]: {name: value for name, value in row.items() if name not in passing} for row in rows}


async def living(services: Services, owner: Owner) -> list[str]:
    """What holds, sorted; turns as `turn`."""
    rows = (await everything(services, owner)).values()
    gone = ("superseded_by", "superseded_in", "archived_by")
    return sorted(row["content"] or "turn" for row in rows if all(row[each] is None for each in gone))


def shown(received: Received) -> list[str]:
    """The memories that the model is asked to merge."""
    found = _SHOWN.findall("\n".join(text for _, text in received.prompt) + "\n")
    return ["\n".join(line[2:] for line in text.splitlines()) for _, _, text in found]


def merging(merge: Merge | None = None) -> Callable[[Received], Reply]:
    """A model that says the newest in the place of all."""

    def answer(received: Received) -> Reply:
        texts = shown(received)
        told = (merge or into_the_newest)(texts)
        return Reply([json.dumps(told, ensure_ascii=False)])

    return answer


def into_the_newest(texts: Sequence[str]) -> dict[str, Any]:
    """All of them represented by the newest."""
    return {"memory": texts[-1], "represented": list(range(1, len(texts) + 1)), "dropped": [], "apart": []}


async def consolidated(services: Services, owner: Owner) -> list[dict[str, Any]]:
    """The texts that stand for others, or have stood."""
    return [row for row in (await everything(services, owner)).values() if row["episode_type"] == "consolidated"]


async def change(services: Services, statement: str, *values: Any) -> None:
    """Change what is stored, as nobody does who uses the service."""
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute(statement, list(values))
