"""The gauges of what is behind: the index, the nights' upkeep, backups."""

import math
from datetime import UTC, datetime
from pathlib import Path

import pytest

from services.backlog import Backlog, backup_age_s
from services.bootstrap import Services
from services.engines import Engines
from services.identity.tenants import DEFAULT_TENANT
from services.memory.core.blocks import Owner
from services.memory.operations import Trigger
from tests.support.command import run_command
from tests.support.core_memory import know
from tests.support.turns import exchange


def _of(services: Services) -> Backlog:
    return Backlog(services.database, indexes=True, upkeep=True, index_every_s=0)


@pytest.mark.own_milvus
async def test_what_waits_for_the_index_ages_until_it_is_indexed(services: Services) -> None:
    backlog = _of(services)
    assert math.isnan(backlog.index_waits_s)
    await exchange(services.turns, "My dog is called Bruno.", "Noted.")
    await backlog.measure()
    assert backlog.index_waits_s == 0
    await backlog.measure()
    waited = backlog.index_waits_s
    assert waited > 0
    await exchange(services.turns, "And my cat Minka.", "Noted.", session_id="s-2")
    await backlog.measure()
    assert backlog.index_waits_s > waited  # another one begins to wait, the first still does
    await services.memory.indexing.index_waiting()
    await backlog.measure()
    assert backlog.index_waits_s == 0


async def _overdue(services: Services) -> float:
    backlog = _of(services)
    await backlog.measure()
    return backlog.users_overdue


async def test_a_user_is_overdue_until_a_night_has_gone_through_their_memory(services: Services) -> None:
    turn = await exchange(services.turns, "My dog is called Bruno.", "Noted.")
    owner = Owner(DEFAULT_TENANT, turn.user_id, turn.expert_id)
    await know(services, owner, "human", {"dog": "Bruno"}, Trigger("user"))
    for days, overdue in ((1, 0), (3, 1)):
        async with services.database.tenant(DEFAULT_TENANT) as connection:
            moved = "UPDATE core_memory_blocks SET updated_at = now() - make_interval(days => %s)"
            await connection.execute(moved, [days])
        assert await _overdue(services) == overdue
    await services.upkeep_scheduler.keep_up(DEFAULT_TENANT, turn.user_id, datetime.now(UTC))
    assert await _overdue(services) == 0


def test_the_age_of_a_backup_is_known_from_the_first_one_on(engines: Engines, tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert math.isnan(backup_age_s(data))
    variables = {"ANAMNESIS_DATABASE_URL": engines.database_url, "ANAMNESIS_DATA_DIR": str(data)}
    done = run_command("backup", str(tmp_path / "backup.zip"), variables=variables)
    assert done.returncode == 0, done.stderr
    assert backup_age_s(data) < 600
