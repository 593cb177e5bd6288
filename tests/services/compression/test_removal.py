"""What becomes of merged memory when something of it is removed, superseded, or too old to be undone."""

from datetime import UTC, datetime, timedelta

import pytest

from services.bootstrap import Services
from services.compression.compression import Compression
from services.errors import Conflict
from services.identity.tenants import DEFAULT_TENANT
from services.memory.blocks import Owner
from services.memory.operations import Trigger
from tests.support.compressing import (
    MORE,
    OTHER,
    TEA,
    change,
    compress,
    consolidated,
    everything,
    living,
    merging,
    someone,
    undo,
    write,
)
from tests.support.model_server import ModelServer

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]

BY_USER = Trigger("user")


@pytest.fixture(autouse=True)
def _merges(model_server: ModelServer) -> None:
    model_server.default = merging()


def _compression(services: Services) -> Compression:
    return services.compression


@pytest.mark.parametrize("place", [0, 3])
async def test_what_is_removed_does_not_survive_in_a_merged_text(services: Services, place: int) -> None:
    owner = await someone(services)
    sources = await write(services, owner, *TEA)
    await compress(services, owner)
    await write(services, owner, *MORE)
    await compress(services, owner)  # once more, on top
    await services.memory.archive.remove(owner, sources[place], BY_USER)
    assert await consolidated(services, owner) == []
    assert await living(services, owner) == sorted([*TEA[:place], *TEA[place + 1 :], *MORE])


async def test_whoever_removes_a_merged_text_removes_what_says_the_same(services: Services) -> None:
    owner = await someone(services)
    await write(services, owner, *TEA, OTHER)
    await compress(services, owner)
    (made,) = await consolidated(services, owner)
    await services.memory.archive.remove(owner, made["id"], BY_USER)
    assert await living(services, owner) == [OTHER]
    assert len(await everything(services, owner)) == 1


async def _staged_by_a_crash(services: Services, owner: Owner) -> None:
    run = await _compression(services).request(owner, job=False)

    def crash(_: int, __: int) -> None:
        raise KeyError

    with pytest.raises(KeyError):
        await _compression(services).carry_out(owner.tenant_id, run.id, on_step=crash)


async def _drafts(services: Services) -> list[str]:
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        rows = await (await connection.execute("SELECT content FROM compression_drafts")).fetchall()
    return [row[0] for row in rows]


@pytest.mark.traced
async def test_a_staged_text_goes_with_a_source_that_is_removed(services: Services) -> None:
    owner = await someone(services)
    sources = await write(services, owner, *TEA)
    await _staged_by_a_crash(services, owner)
    assert await _drafts(services) == [TEA[-1]]
    await services.memory.archive.remove(owner, sources[0], BY_USER)
    assert await _drafts(services) == []
    assert await living(services, owner) == sorted(TEA[1:])


async def test_what_a_lost_run_staged_is_swept_up(services: Services) -> None:
    owner = await someone(services)
    await write(services, owner, *TEA)
    await _staged_by_a_crash(services, owner)
    undoing = _compression(services).undo
    await undoing.forget_older(DEFAULT_TENANT, datetime.now(UTC))
    assert await _drafts(services) == [TEA[-1]]  # its process may be alive
    await change(services, "UPDATE compression_runs SET lease_until = now() - interval '1 minute'")
    await undoing.forget_older(DEFAULT_TENANT, datetime.now(UTC))
    assert await _drafts(services) == []
    assert await living(services, owner) == sorted(TEA)


@pytest.mark.traced
async def test_how_to_undo_is_forgotten_and_texts_between_go(services: Services) -> None:
    owner = await someone(services)
    leaves = await write(services, owner, *TEA)
    first, _ = await compress(services, owner)
    leaves += await write(services, owner, *MORE)
    second, _ = await compress(services, owner)
    later = datetime.now(UTC) + timedelta(seconds=1)
    undoing = _compression(services).undo
    assert await undoing.forget_older(DEFAULT_TENANT, later - timedelta(hours=1)) == 0
    assert await undoing.forget_older(DEFAULT_TENANT, later) == 2
    (made,) = await consolidated(services, owner)
    stored = await everything(services, owner)
    assert {stored[each]["superseded_by"] for each in leaves} == {made["id"]}
    for run in (first, second):
        with pytest.raises(Conflict, match="too old"):
            await undo(services, owner, run)
    await services.memory.archive.remove(owner, leaves[0], BY_USER)  # known without how to undo
    assert await living(services, owner) == sorted([*TEA[1:], *MORE])


async def test_what_the_agent_put_in_the_place_of_a_merged_text_holds_after_undoing(services: Services) -> None:
    owner = await someone(services)
    await write(services, owner, *TEA)
    run, _ = await compress(services, owner)
    (made,) = await consolidated(services, owner)
    (newer,) = await write(services, owner, "The user gave up tea")
    assert await services.memory.archive.supersede(owner, made["id"], newer, BY_USER)
    await undo(services, owner, run)
    assert await living(services, owner) == ["The user gave up tea"]
