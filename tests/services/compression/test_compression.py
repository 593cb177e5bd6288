"""A user's memory is compressed: what says the same becomes one, reversibly, and nothing is lost on the way."""

from dataclasses import replace

import pytest

from services.bootstrap import Services
from services.errors import Conflict
from services.identity.tenants import DEFAULT_TENANT
from tests.support.compressing import compress, everything, living, merging, someone, undo, write
from tests.support.model_server import ModelServer

pytestmark = pytest.mark.anyio

TEA = [f"The user drinks green tea every morning {word}" for word in ("alone", "again", "early", "late")]
OTHER = "A letter from Lisbon came today"


@pytest.fixture(autouse=True)
def _merges(model_server: ModelServer) -> None:
    model_server.default = merging()


async def test_memories_that_say_the_same_become_one_that_lists_its_sources(services: Services) -> None:
    owner = await someone(services)
    sources = await write(services, owner, *TEA)
    await write(services, owner, OTHER)
    run, report = await compress(services, owner)
    assert await living(services, owner) == sorted([OTHER, TEA[-1]])
    assert (report.episodes_before, report.episodes_after, report.consolidated, report.superseded) == (5, 2, 1, 4)
    assert run.status == "done"
    assert run.can_be_undone
    stored = await everything(services, owner)
    (made,) = [row for row in stored.values() if row["episode_type"] == "consolidated"]
    assert {stored[each]["superseded_by"] for each in sources} == {made["id"]}
    assert made["origin"] == "derived"
    log = await services.memory.operations.list(DEFAULT_TENANT, "u-1", limit=1)
    assert log[0].type == "episode_consolidate"
    assert log[0].trigger == {"actor": "compression", "run_id": str(run.id)}
    assert sorted(log[0].results["represented"]) == sorted(map(str, sources))


async def test_undoing_brings_back_exactly_what_was(services: Services) -> None:
    owner = await someone(services)
    await write(services, owner, *TEA, OTHER)
    before = await everything(services, owner)
    run, _ = await compress(services, owner)
    assert await everything(services, owner) != before
    assert await undo(services, owner, run) == 4
    assert await everything(services, owner) == before
    with pytest.raises(Conflict, match="undone already"):
        await undo(services, owner, run)


async def test_a_dry_run_changes_nothing_and_says_what_would_be_done(services: Services) -> None:
    owner = await someone(services)
    await write(services, owner, *TEA, OTHER)
    before = await everything(services, owner)
    _, would = await compress(services, owner, dry_run=True)
    assert await everything(services, owner) == before
    _, did = await compress(services, owner)
    assert replace(would, seconds=0) == replace(did, seconds=0)
