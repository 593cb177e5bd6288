"""What is known of the user himself, shared between experts where a setting says so."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from services.bootstrap import Services
from services.conversations.experts import NewExpert
from services.errors import NotFound
from services.identity.tenants import DEFAULT_TENANT
from services.memory.blocks import Owner
from services.memory.cache import CoreMemoryCache
from services.memory.core import CoreMemory
from services.memory.operations import Trigger
from services.platform.breaker import CircuitBreaker
from services.platform.postgres import Database
from tests.support.turns import exchange

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]

AGENT, USER = Trigger("filing"), Trigger("user")
CRITIC = NewExpert("critic", "You judge films.", "", None, "summary", 32_000, None, None, reflection=False)


@pytest.fixture
async def core(services: Services) -> CoreMemory:
    """Core memory that shares, as the service has it after a restart with the setting changed."""
    cache = CoreMemoryCache(
        services.redis, CircuitBreaker("Redis"), shares_human=True, vault=services.database.vault
    )
    return CoreMemory(services.database, cache, services.memory.operations, shares_human=True)


@pytest.fixture
async def both(services: Services) -> tuple[Owner, Owner]:
    """One user with the default expert, and with another."""
    await services.experts.create(DEFAULT_TENANT, CRITIC)
    one = await exchange(services.turns, "Hello", "Hi")
    other = await exchange(services.turns, "Hello", "Hi", session_key="s-2", expert="critic")
    owner = Owner(one.tenant_id, one.user_id, one.expert_id)
    return owner, replace(owner, expert_id=other.expert_id)


async def contents(core: CoreMemory, owner: Owner) -> dict[str, Any]:
    return {block.section: block.content for block in await core.read(owner)}


async def test_every_expert_knows_the_user_and_only_itself(core: CoreMemory, both: tuple[Owner, Owner]) -> None:
    default, critic = both
    await core.update(critic, "human", {"name": "Ada"}, AGENT)
    await core.update(default, "human", {"likes": ["tea"]}, AGENT)
    await core.update(critic, "persona", {"tone": "dry"}, AGENT)
    human = {"name": "Ada", "likes": ["tea"]}
    assert await contents(core, default) == {"human": human}
    assert await contents(core, critic) == {"human": human, "persona": {"tone": "dry"}}
    assert [change.version for change in await core.history(critic, "human", limit=5)] == [2, 1]
    await core.rollback(critic, "human", 1, USER)
    assert await contents(core, default) == {"human": {"name": "Ada"}}


async def test_more_rollbacks_at_once_than_there_are_connections_all_end(
    core: CoreMemory, both: tuple[Owner, Owner]
) -> None:
    await core.update(both[1], "human", {"name": "Ada"}, AGENT)
    done = await asyncio.gather(*(core.rollback(both[1], "human", 1, USER) for _ in range(40)))
    assert [block.content for block in done] == [{"name": "Ada"}] * 40


async def test_what_an_expert_knew_before_is_shown_and_taken_along(
    services: Services, core: CoreMemory, both: tuple[Owner, Owner]
) -> None:
    default, critic = both
    await services.memory.core.update(critic, "human", {"name": "Ada"}, AGENT)
    assert await contents(core, critic) == {"human": {"name": "Ada"}}
    assert await contents(core, default) == {}
    await core.update(critic, "human", {"likes": ["tea"]}, AGENT)
    assert await contents(core, default) == {"human": {"name": "Ada", "likes": ["tea"]}}


async def test_what_is_forgotten_is_forgotten_by_all(
    services: Services, core: CoreMemory, both: tuple[Owner, Owner], database: Database
) -> None:
    default, critic = both
    await services.memory.core.update(critic, "human", {"name": "Ada"}, AGENT)
    await core.update(default, "human", {"name": "Ada L."}, AGENT)
    await core.forget(critic, "human", USER)
    assert await contents(core, default) == await contents(core, critic) == {}
    assert await contents(services.memory.core, critic) == {}
    with pytest.raises(NotFound):
        await core.forget(default, "human", USER)
    logged = await services.memory.operations.list(DEFAULT_TENANT, "u-1", limit=10)
    assert [(each.old_value, each.new_value) for each in logged] == [(None, None)] * 3
