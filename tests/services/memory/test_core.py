"""Core memory in PostgreSQL: every change is kept, none is lost, and what is too large is refused."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from services.bootstrap import Services
from services.errors import Conflict, InvalidInput, NotFound
from services.identity.tenants import DEFAULT_TENANT, Tenants
from services.memory.core.blocks import Owner
from services.memory.core.content import MAX_SECTION_BYTES, check_values
from services.memory.operations import Trigger
from state.memory import ItemChange
from tests.support.single_changes import change_items
from tests.support.turns import exchange, new_turn, owner_of

USER, AGENT = Trigger("user"), Trigger("filing")


async def _owner(services: Services, user: str = "u-1") -> Owner:
    return owner_of(await exchange(services.turns, "Hello", "Hi", user_id=user))


async def _contents(services: Services, owner: Owner) -> dict[str, Any]:
    return {block.section: block.content for block in await services.memory.core.read(owner)}


async def test_every_change_is_kept_with_what_made_it(services: Services) -> None:
    turn = await exchange(services.turns, "I am Wang and like tea.", "Hi")
    owner = owner_of(turn)
    by_model = Trigger("model", turn.user_message_id, turn.conversation_id, turn.turn_id)
    core = services.memory.core
    await core.update(owner, "human", {"name": "Wang", "preferences": ["likes tea"]}, by_model)
    block = await core.update(owner, "human", {"name": None, "preferences": ["hates tea"]}, AGENT)
    assert (block.version, block.content) == (2, {"preferences": ["likes tea", "hates tea"]})

    second, first = await core.history(owner, "human", limit=10)
    assert (first.version, first.old, first.new) == (1, None, {"name": "Wang", "preferences": ["likes tea"]})
    assert (first.actor, first.trigger_message_id) == ("model", turn.user_message_id)
    assert (second.version, second.old, second.new) == (2, first.new, block.content)
    assert (second.actor, second.trigger_message_id) == ("filing", None)

    two, one = await services.memory.operations.list(DEFAULT_TENANT, "u-1", limit=10)
    assert (one.type, one.field, one.old_value, one.new_value) == ("core_memory_update", "human", None, first.new)
    assert (one.conversation_id, one.turn_id, one.expert) == (turn.conversation_id, turn.turn_id, "default")
    assert one.trigger == {"actor": "model", "message_id": str(turn.user_message_id)}
    assert (two.old_value, two.new_value, two.trigger) == (first.new, block.content, {"actor": "filing"})


async def test_twenty_updates_at_once_are_all_there(services: Services) -> None:
    owner = await _owner(services)
    async with asyncio.TaskGroup() as group:
        for number in range(20):
            section = "human" if number % 4 else f"other_{number}"
            group.create_task(
                services.memory.core.update(owner, section, {f"key_{number}": number, "all": [number]}, AGENT)
            )
    contents = await _contents(services, owner)
    assert {key for content in contents.values() for key in content} == {"all", *(f"key_{n}" for n in range(20))}
    assert sorted(contents["human"]["all"]) == [number for number in range(20) if number % 4]
    history = await services.memory.core.history(owner, "human", limit=50)
    assert [change.version for change in history] == list(range(15, 0, -1))
    assert all(newer.old == older.new for newer, older in pairwise(history))


async def test_what_is_forgotten_is_in_no_history_log_or_prompt(services: Services) -> None:
    owner, core = await _owner(services), services.memory.core
    for section in ("human", "notes"):
        await core.update(owner, section, {"secret": f"of {section}"}, AGENT)
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute(
            "INSERT INTO context_epochs (conversation_id, tenant_id, number, strategy, reason, begun_at, summary,"
            " summary_version, topics, prefix, core_memory) SELECT id, tenant_id, 1, 'summary', '', now(), '', 0,"
            " '[]', '[]', %s FROM conversations",
            [Jsonb({"human": {"secret": "of human"}, "notes": {"secret": "of notes"}})],
        )
    await core.forget(owner, "human", USER)

    assert await _contents(services, owner) == {"notes": {"secret": "of notes"}}
    with pytest.raises(NotFound):
        await core.history(owner, "human", limit=1)
    logged = await services.memory.operations.list(DEFAULT_TENANT, "u-1", limit=10)
    assert [(one.type, one.field, one.new_value) for one in logged] == [
        ("core_memory_delete", "human", None),
        ("core_memory_update", "notes", {"secret": "of notes"}),
        ("core_memory_update", "human", None),
    ]
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        row = await (await connection.execute("SELECT core_memory FROM context_epochs")).fetchone()
    assert row == ({"notes": {"secret": "of notes"}},)
    with pytest.raises(NotFound):
        await core.forget(owner, "human", USER)
    assert (await core.update(owner, "human", {"name": "Li"}, AGENT)).version == 1


async def test_a_section_of_more_than_4_kib_is_refused_and_nothing_is_stored(services: Services) -> None:
    owner, core = await _owner(services), services.memory.core
    room = MAX_SECTION_BYTES - len('{"a":""}')
    await core.update(owner, "human", {"a": "字" * (room // 3)}, AGENT)
    with pytest.raises(InvalidInput, match=r"section human would have \d+ bytes; at most 4096"):
        await core.update(owner, "human", {"b": "more"}, AGENT)
    with pytest.raises(InvalidInput, match="section notes would have 4097 bytes"):
        await core.replace(owner, "notes", {"a": "x" * (room + 1)}, USER)
    assert [change.version for change in await core.history(owner, "human", limit=5)] == [1]


async def test_a_seventeenth_section_is_refused(services: Services) -> None:
    owner, core = await _owner(services), services.memory.core
    for number in range(16):
        await core.update(owner, f"s{number}", {"a": 1}, AGENT)
    with pytest.raises(InvalidInput, match="16 sections"):
        await core.update(owner, "one_more", {"a": 1}, AGENT)
    assert (await core.update(owner, "s3", {"a": 2}, AGENT)).version == 2


def _deep(levels: int) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for _ in range(levels):
        content = {"a": [content]}
    return content


@pytest.mark.parametrize(
    "content",
    [
        _deep(5),
        {str(number): 1 for number in range(301)},
        {"k" * 129: 1},
        {"a\x00": 1},
        {"a": "\ud800"},
        {"a": float("nan")},
        {"a": -(2**53) - 1},
    ],
)
def test_what_cannot_be_kept_as_it_is_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_values(content)
    assert refused.value.field == "content"


async def test_each_expert_and_each_user_has_its_own(services: Services) -> None:
    mine, other = await _owner(services), await _owner(services, "u-2")
    await services.memory.core.update(mine, "human", {"name": "Wang"}, AGENT)
    assert await _contents(services, other) == {}
    foreign = Owner((await Tenants(services.database).create("other")).id, mine.user_id, mine.expert_id)
    assert await _contents(services, foreign) == {}
    for nobody in (
        foreign,
        Owner(DEFAULT_TENANT, uuid7(), mine.expert_id),
        Owner(DEFAULT_TENANT, mine.user_id, uuid7()),
    ):
        with pytest.raises(NotFound):
            await services.memory.core.update(nobody, "human", {"name": "x"}, AGENT)
    with pytest.raises(NotFound):
        await services.memory.core.owner(DEFAULT_TENANT, "u-3", "default")
    with pytest.raises(NotFound):
        await services.memory.core.owner(DEFAULT_TENANT, "u-1", "nobody")
    assert await services.memory.core.owner(DEFAULT_TENANT, "u-1", "default") == mine


def _change(action: Any, section: str, field: str, value: Any = None, old: str | None = None) -> ItemChange:
    return ItemChange(action, section, field, value, old)


async def test_items_change_in_one_version_of_each_section_and_a_rollback_undoes_them(services: Services) -> None:
    owner, core = await _owner(services), services.memory.core
    await core.update(owner, "human", {"allergies": ["peanuts", "cats"], "home": "lives in Bergen"}, USER)
    unmatched = await change_items(
        services,
        owner,
        [
            _change("remove", "human", "allergies", old="peanuts"),
            _change("add", "human", "allergies", "dust"),
            _change("add", "notes", "open", "call the bank"),
            _change("remove", "human", "allergies", old="pollen"),
        ],
        AGENT,
    )
    assert [(block.section, block.version) for block in await core.read(owner)] == [("human", 2), ("notes", 1)]
    assert [change.old for change in unmatched] == ["pollen"]
    human = {"allergies": ["cats", "dust"], "home": "lives in Bergen"}
    assert await _contents(services, owner) == {"human": human, "notes": {"open": "call the bank"}}
    assert (await core.for_turn(owner))["human"]["content"] == human

    logged = await services.memory.operations.list(DEFAULT_TENANT, "u-1", limit=10)
    assert [(one.type, one.field) for one in logged[:2]] == [
        ("core_memory_change", "notes"),
        ("core_memory_change", "human"),
    ]
    await core.rollback(owner, "human", 1, USER)
    assert (await _contents(services, owner))["human"]["allergies"] == ["peanuts", "cats"]


async def test_an_expert_that_somebodys_core_memory_belongs_to_stays(services: Services) -> None:
    turn = await services.turns.open(new_turn("Hello"))
    await services.memory.core.update(
        Owner(DEFAULT_TENANT, turn.user_id, turn.expert_id), "human", {"a": 1}, AGENT
    )
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute("UPDATE experts SET name = 'cook'")
        await connection.execute("DELETE FROM conversations")
    with pytest.raises(Conflict, match="core memory"):
        await services.experts.delete(DEFAULT_TENANT, "cook")
