"""A user's memory is compressed: duplicates are merged, reversibly, and nothing is lost."""

import asyncio
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from services.bootstrap import Services
from services.compression.compression import Compression
from services.errors import Conflict, NotFound
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
from tests.support.model_server import ModelServer, Reply
from tests.support.turns import exchange

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]

BY_USER = Trigger("user")


@pytest.fixture(autouse=True)
def _merges(model_server: ModelServer) -> None:
    model_server.default = merging()


def _compression(services: Services) -> Compression:
    return services.compression


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
    (made,) = await consolidated(services, owner)
    assert {stored[each]["superseded_by"] for each in sources} == {made["id"]}
    assert (made["origin"], made["created_at"]) == ("derived", stored[sources[-1]]["created_at"])
    log = await services.memory.operations.list(DEFAULT_TENANT, "u-1", limit=1)
    assert log[0].type == "episode_consolidate"
    assert log[0].trigger == {"actor": "compression", "run_id": str(run.id)}
    assert sorted(log[0].results["represented"]) == sorted(map(str, sources))


async def test_turns_that_say_the_same_become_one_with_all_their_messages(services: Services) -> None:
    turns = [await exchange(services.turns, f"I love green tea{end}", "Good to know.") for end in ".!… "]
    owner = Owner(turns[0].tenant_id, turns[0].user_id, turns[0].expert_id)
    await compress(services, owner)
    (made,) = await consolidated(services, owner)
    said = {each for turn in turns for each in (turn.user_message_id, turn.answer_message_id)}
    assert set(made["source_message_ids"]) == said
    assert made["conversation_id"] == turns[0].conversation_id


async def test_three_are_too_few(services: Services, model_server: ModelServer) -> None:
    owner = await someone(services)
    await write(services, owner, *TEA[:3])
    model_server.requests.clear()
    _, report = await compress(services, owner)
    assert (report.clusters, model_server.requests) == (0, [])
    assert await living(services, owner) == sorted(TEA[:3])


async def test_another_user_s_memories_are_another_s(services: Services) -> None:
    owner, other = await someone(services), await someone(services, "u-2")
    await write(services, owner, *TEA[:2])
    await write(services, other, *TEA[2:])
    _, report = await compress(services, owner)
    assert report.consolidated == 0
    await write(services, owner, *TEA[2:])
    await compress(services, owner)
    assert await living(services, other) == sorted(TEA[2:])
    run, _ = await compress(services, other)
    with pytest.raises(NotFound):
        await undo(services, owner, run)


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
    dry, would = await compress(services, owner, dry_run=True)
    assert await everything(services, owner) == before
    _, did = await compress(services, owner)
    assert replace(would, seconds=0) == replace(did, seconds=0)
    with pytest.raises(Conflict, match="changed nothing"):
        await undo(services, owner, dry)


async def test_what_was_merged_is_merged_again_and_the_first_sources_are_kept(services: Services) -> None:
    owner = await someone(services)
    leaves = [*await write(services, owner, *TEA)]
    first, _ = await compress(services, owner)
    between = await everything(services, owner)
    leaves += await write(services, owner, *MORE)
    full = await everything(services, owner)
    second, _ = await compress(services, owner)
    assert await living(services, owner) == [MORE[-1]]
    assert set(leaves) < set(await everything(services, owner))
    with pytest.raises(Conflict, match=f"later run {second.id} builds on"):
        await undo(services, owner, first)
    await undo(services, owner, second)
    assert await everything(services, owner) == full
    assert {**full, **between} == full
    await undo(services, owner, first)
    assert await living(services, owner) == sorted([*TEA, *MORE])


async def test_what_changed_while_the_model_thought_is_left_alone(
    services: Services, model_server: ModelServer
) -> None:
    owner = await someone(services)
    sources = await write(services, owner, *TEA)
    model_server.default = lambda received: replace(merging()(received), delay_s=0.5)
    model_server.requests.clear()
    running = asyncio.create_task(compress(services, owner))
    while not model_server.requests:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await services.memory.archive.change(owner, sources[0], "The user drinks coffee", BY_USER)
    new = await write(services, owner, OTHER)
    _, report = await running
    assert (report.changed_meanwhile, report.consolidated) == (1, 0)
    assert await living(services, owner) == sorted([*TEA[1:], "The user drinks coffee", OTHER])
    assert new[0] in await everything(services, owner)


@pytest.mark.parametrize(
    "garbage",
    [Reply(["Certainly."]), Reply(status=500), Reply(["{"], ending="cut"), Reply(['{"memory": "x"}'])],
    ids=["prose", "error", "cut", "incomplete"],
)
async def test_a_group_for_which_the_model_fails_stays_as_it_is(
    services: Services, model_server: ModelServer, garbage: Reply
) -> None:
    owner = await someone(services)
    baked = "Fresh bread with walnuts gets baked by grandmother Ann for lunch on Sundays"
    bread = [f"{baked} {word}" for word in ("now", "too", "yet", "so")]
    await write(services, owner, *TEA, *bread)

    def answer(received: Any) -> Reply:
        return garbage if "green tea" in str(received.prompt) else merging()(received)

    model_server.default = answer
    _, report = await compress(services, owner)
    assert await living(services, owner) == sorted([*TEA, bread[-1]])
    assert [failure["episodes"] for failure in report.failures] == [4]


async def test_garbage_once_is_asked_again(services: Services, model_server: ModelServer) -> None:
    owner = await someone(services)
    await write(services, owner, *TEA)
    model_server.script(Reply(["Certainly."]))
    _, report = await compress(services, owner)
    assert (report.consolidated, report.failures) == (1, [])


async def test_a_run_under_way_keeps_others_out_and_a_lost_one_makes_place(services: Services) -> None:
    owner = await someone(services)
    await write(services, owner, *TEA)
    lost = await _compression(services).request(owner, job=False)
    with pytest.raises(Conflict, match="compressed already"):
        await _compression(services).request(owner, job=False)
    await change(services, "UPDATE compression_runs SET lease_until = now() - interval '1 minute'")
    _, report = await compress(services, owner)
    assert report.consolidated == 1
    ended = await _compression(services).run(owner.tenant_id, owner.user_id, lost.id)
    assert (ended.status, ended.report["problem"]) == ("failed", "its process ended before it did")
    assert await _compression(services).carry_out(owner.tenant_id, lost.id) is None


async def test_who_was_taken_over_swaps_nothing(services: Services, model_server: ModelServer) -> None:
    owner = await someone(services)
    await write(services, owner, *TEA)
    run = await _compression(services).request(owner, job=False)
    model_server.script(replace(merging()(_asked_of(TEA)), delay_s=1.0))
    first = asyncio.create_task(_compression(services).carry_out(owner.tenant_id, run.id))
    model_server.requests.clear()
    while not model_server.requests:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    second = await _compression(services).carry_out(owner.tenant_id, run.id)
    assert second
    assert second.consolidated == 1
    assert await first is None
    assert len(await consolidated(services, owner)) == 1


def _asked_of(texts: list[str]) -> Any:
    from tests.support.model_server import Received

    shown = "\n\n".join(f"[{number}] (2026-01-01, context)\n> {text}" for number, text in enumerate(texts, 1))
    return Received("", {"messages": [{"role": "user", "content": shown}]}, {})


async def test_a_run_of_nobody_is_not_found(services: Services) -> None:
    owner = await someone(services)
    with pytest.raises(NotFound):
        await _compression(services).undo.undo(DEFAULT_TENANT, owner.user_id, uuid4())
    assert await _compression(services).carry_out(DEFAULT_TENANT, UUID(int=1)) is None
