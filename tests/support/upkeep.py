"""Memory under upkeep: written, read back whole, and a model that compares what it is shown."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.core.blocks import Owner
from services.memory.episodes.episode import NewEpisode
from services.memory.operations import Trigger
from services.memory.upkeep.policy import UpkeepPolicy, UpkeepRun
from tests.support.model_server import Received, Reply
from tests.support.turns import exchange

ARCHIVE = UpkeepPolicy(fading="archive")
_PAIR = re.compile(r"^\[(\d+)\]\n\([^)]*\)\n((?:> .*\n?)+)\([^)]*\)\n((?:> .*\n?)+)", re.MULTILINE)

Judge = Callable[[str, str], str]
"""Function that says of an older and a newer text `same`, `replaces` or `apart`."""


async def someone(services: Services, user: str = "u-1") -> Owner:
    """Make a user with one turn and no episode."""
    turn = await exchange(services.turns, "Hello", "Hi", user_id=user)
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute("DELETE FROM episodes WHERE user_id = %s", [turn.user_id])
    return Owner(turn.tenant_id, turn.user_id, turn.expert_id)


async def write(
    services: Services, owner: Owner, *contents: str, importance: float = 0.5, **more: Any
) -> list[UUID]:
    """Write memories one after another."""
    return [
        await services.memory.archive.insert(
            owner, NewEpisode(content, "context", importance, "user_said", **more), Trigger("user")
        )
        for content in contents
    ]


async def written_before(
    services: Services, owner: Owner, *contents: str, days: int = 91, importance: float = 0.2
) -> list[UUID]:
    """Write memories as if some days ago, and never recalled."""
    ids = await write(services, owner, *contents, importance=importance)
    at = datetime.now(UTC) - timedelta(days=days)
    await change(services, "UPDATE episodes SET created_at = %s, learned_at = %s WHERE id = ANY(%s)", at, at, ids)
    return ids


async def keep_up(services: Services, user: str = "u-1") -> UpkeepRun:
    """Run upkeep now, by the tenant's policy."""
    return await services.upkeep.run(DEFAULT_TENANT, user)


async def everything(services: Services, owner: Owner) -> dict[UUID, dict[str, Any]]:
    """Return every episode of a user as stored, except whether it is indexed and what changed it last."""
    async with (
        services.database.tenant(owner.tenant_id) as connection,
        connection.cursor(row_factory=dict_row) as c,
    ):
        await c.execute("SELECT * FROM episodes WHERE user_id = %s ORDER BY id", [owner.user_id])
        rows = await c.fetchall()
    passing = {"indexed_at", "changed_in"}
    return {row["id"]: {name: value for name, value in row.items() if name not in passing} for row in rows}


async def living(services: Services, owner: Owner) -> list[str]:
    """Return what holds, sorted; turns as `turn`."""
    rows = (await everything(services, owner)).values()
    gone = ("superseded_by", "superseded_in", "archived_by", "retracted_at")
    return sorted(row["content"] or "turn" for row in rows if all(row[each] is None for each in gone))


def compared(received: Received) -> list[tuple[str, str]]:
    """Return the pairs that the model is asked about, the older text of each first."""
    found = _PAIR.findall("\n".join(text for _, text in received.prompt) + "\n")
    return [(_unquoted(older), _unquoted(newer)) for _, older, newer in found]


def judging(judge: Judge) -> Callable[[Received], Reply]:
    """Return a model that judges every pair."""

    def answer(received: Received) -> Reply:
        pairs = compared(received)
        verdicts = [{"pair": at, "verdict": judge(*pair)} for at, pair in enumerate(pairs, 1)]
        return Reply([json.dumps({"pairs": verdicts}, ensure_ascii=False)])

    return answer


async def change(services: Services, statement: str, *values: Any) -> None:
    """Change what is stored, in a way that no user of the service can."""
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute(statement, list(values))


def _unquoted(text: str) -> str:
    return "\n".join(line[2:] for line in text.splitlines())


async def undo_accepted(services: Services) -> None:
    """Undo what the only accepted proposal changed."""
    (accepted,) = await services.memory.proposals.list(DEFAULT_TENANT, "u-1", state="accepted", limit=5)
    assert accepted.operation_id is not None
    await services.memory.undo.undo(DEFAULT_TENANT, "u-1", accepted.operation_id)
