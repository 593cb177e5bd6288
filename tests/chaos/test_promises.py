"""A thousand promises while workers are killed, clocks jump, zones change, and daylight saving begins."""

import asyncio
import json
import random
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
import structlog
from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.engines import Engines
from services.identity.tenants import DEFAULT_TENANT
from services.memory.core.blocks import Owner
from services.memory.operations import Trigger
from services.promises.promises import NewPromise
from tests.support.jobs import running_worker
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.upkeep import someone

pytestmark = [
    pytest.mark.settings(llm_model="large", small_llm_model="small"),
    pytest.mark.soak,
    pytest.mark.process,
    pytest.mark.in_clear,
]

_PROMISES, _KILLS, _MOVED, _USERS, _SECONDS = 1_000, 25, 25, 20, 120
_BEGIN = datetime(2026, 3, 28, tzinfo=UTC)
"""A day before clocks go forward in Europe."""
_DAYS = 3
_ZONES = ("Europe/Berlin", "Asia/Shanghai", "America/New_York", "Europe/London", "Asia/Kolkata")
_SAID = """
SELECT m.metadata->>'promise_id', m.content FROM messages m
WHERE m.tenant_id = %(tenant_id)s AND m.metadata ? 'promise_id'
"""
_WORKER = """
import asyncio, random, sys, time
from datetime import datetime, timedelta
from psycopg.rows import tuple_row
from services.jobs.queue import JobQueue
from services.llm.chat_models import ChatModels
from services.platform.postgres import Database
from services.platform.settings import load_settings
from services.promises import sql
from services.promises.keeping import Keeping

async def main(url, model, begin, begun, speed, seed):
    chance, database = random.Random(int(seed)), Database(url)
    await database.open()
    settings = load_settings(llm_model="large", small_llm_model="small", llm_base_url=model, llm_api_key="k")
    keeping = Keeping(database, ChatModels(settings), JobQueue(database))
    print("ready", flush=True)
    while True:
        jump = timedelta(minutes=chance.choice((0, 0, 0, -180, -61, -1, 1, 59, 240)))
        now = datetime.fromisoformat(begin) + timedelta(seconds=(time.time() - float(begun)) * float(speed)) + jump
        due = await database.fetch_without_tenant(sql.USERS_WITH_DUE, {"now": now}, tuple_row)
        await asyncio.gather(*(keeping.keep(*each, now) for each in due), asyncio.sleep(0.05))

asyncio.run(main(*sys.argv[1:]))
"""
log = structlog.get_logger(__name__)


def _answer(request: Received) -> Reply:
    """A message that says what it is about, when it was due and when it is said, by the clock of its zone."""
    facts = dict(line.partition(": ")[::2] for line in request.prompt[-1][1].splitlines() if ": " in line)
    due = facts["promised for"].removesuffix(" (it comes late)")
    return Reply([json.dumps({"done": False, "message": f"{facts['about']}|{due}|{facts['now']}"})])


async def _made(
    services: Services, owners: list[Owner], chance: random.Random
) -> tuple[dict[UUID, set[str]], list[tuple[UUID, Owner]]]:
    """Promises, each with the times of its zone's clock at which it is to be said; and some of the last day."""
    expected, late = dict[UUID, set[str]](), list[tuple[UUID, Owner]]()
    for number in range(_PROMISES):
        zone, owner = chance.choice(_ZONES), chance.choice(owners)
        clock = f"{chance.randrange(4, 23):02}:{chance.randrange(60):02}"
        day = _BEGIN.astimezone(ZoneInfo(zone)).date() + timedelta(days=chance.randrange(1, _DAYS))
        days = [day]
        when = chance.choice((f"{day:%B} {day.day} at {clock}", f"{day}T{clock}"))
        if number % 10 == 0:
            when, days = f"every day at {clock}", [_BEGIN.date() + timedelta(days=n) for n in range(-1, 5)]
        new = NewPromise(text=f"task {number}", when=when, timezone=zone)
        made, _ = await services.promises.make(owner, new, Trigger("user"), _BEGIN)
        expected[made.id] = {f"{each} {clock}" for each in days}
        if days == [(_BEGIN + timedelta(days=_DAYS - 1)).date()] and len(late) < _MOVED:
            late.append((made.id, owner))
    return expected, late


async def _change_zones(services: Services, moved: list[tuple[UUID, Owner]], chance: random.Random) -> None:
    """Move users between zones, and promises of the last day to another clock."""
    for promise_id, owner in moved:
        zone, user = chance.choice(_ZONES), f"u-{chance.randrange(_USERS)}"
        await services.users.change(DEFAULT_TENANT, user, {"timezone": zone})
        other = chance.choice(_ZONES)
        await services.promises.change(owner, promise_id, Trigger("user"), timezone=other, now=_BEGIN)


async def test_of_a_thousand_none_is_doubled_lost_early_or_in_the_wrong_hour(
    services: Services, engines: Engines, model_server: ModelServer
) -> None:
    chance = random.Random(20261130)
    owners = [await someone(services, f"u-{number}") for number in range(_USERS)]
    model_server.default = _answer
    expected, late = await _made(services, owners, chance)
    begun, end = time.time(), _BEGIN + timedelta(days=_DAYS)
    speed = _DAYS * 86_400 / _SECONDS
    clock = (engines.database_url, model_server.base_url, _BEGIN.isoformat(), str(begun), str(speed))
    moving = asyncio.create_task(_change_zones(services, late, chance))
    with running_worker(_WORKER, *clock, "0"):  # one lives on
        for kill in range(_KILLS):
            with running_worker(_WORKER, *clock, str(kill + 1)) as process:
                await asyncio.sleep(chance.uniform(0.3, 1.2) * _SECONDS / _KILLS / 2)
                process.kill()
        await moving
        while time.time() < begun + _SECONDS:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    for owner in owners:
        while await services.keeping.keep(DEFAULT_TENANT, owner.user_id, end):
            pass
    values = {"tenant_id": DEFAULT_TENANT}
    rows: list[Any] = list(await services.database.fetch(DEFAULT_TENANT, _SAID, values, tuple_row))
    said = Counter((UUID(promise_id), content.split("|")[1]) for promise_id, content in rows)
    times = Counter(promise_id for promise_id, _ in said)
    doubled = [each for each, count in said.items() if count > 1]
    lost = [each for each, days in expected.items() if times[each] < (_DAYS - 1 if len(days) > 1 else 1)]
    early = [content for _, content in rows if content.split("|")[2] < content.split("|")[1]]
    wrong_hour = [each for each in said if each[1] not in expected[each[0]]]
    figures = {"doubled": len(doubled), "lost": len(lost), "early": len(early), "wrong_hour": len(wrong_hour)}
    counts = {"promises": len(expected), "said": len(rows), "kills": _KILLS, "moved": len(late)}
    log.info("promises in chaos", **counts, **figures)
    assert (doubled, lost, early, wrong_hour) == ([], [], [], [])
