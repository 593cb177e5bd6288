"""Each value of core memory has the time it came and the time it went, after any number of versions."""

import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.operations import Trigger
from services.memory.removal.targets import Target, ValueTarget
from tests.support.turns import exchange, owner_of


@pytest.mark.parametrize("settings", [{}, {"encryption": True}], indirect=True, ids=["clear", "encrypted"])
async def test_a_value_has_the_moment_it_last_came_and_the_one_it_went(services: Services) -> None:
    core, owner = services.memory.core, owner_of(await exchange(services.turns, "Hello.", "Hi."))
    contents = [
        ["a canoe"],
        ["a canoe", "bees"],
        ["bees"],
        ["bees", "a van"],
        ["bees", "a van", "a canoe"],
        ["bees"],
    ]
    for things in contents:
        await core.replace(owner, "human", {"facts": things}, Trigger("user"))
    at = [each.at for each in reversed(await core.history(owner, "human", limit=10))]
    read = await services.memory.values.read(DEFAULT_TENANT, owner.user_id)
    assert {each.text: (each.since, each.until, each.holds) for each in read} == {
        "a canoe": (at[4], at[5], False),
        "bees": (at[1], None, True),
        "a van": (at[3], at[5], False),
    }
    target = Target(value=ValueTarget("human", "facts", "bees"))
    await services.forgetting.forget(DEFAULT_TENANT, "u-1", target, by="test")
    read = await services.memory.values.read(DEFAULT_TENANT, owner.user_id)
    assert {each.text: each.since for each in read} == {"a canoe": at[4], "a van": at[3]}
