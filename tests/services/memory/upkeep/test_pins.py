"""Pinned memories neither fade nor are merged; pinned values of core memory are taken away by the user alone."""

import pytest

from services.bootstrap import Services
from services.errors import NotFound
from services.identity.tenants import DEFAULT_TENANT
from services.memory.core.pins import PinnedValue
from services.memory.operations import Trigger
from state.memory import ItemChange
from tests.support.single_changes import change_items, supersede
from tests.support.upkeep import ARCHIVE, living, someone, write, written_before

pytestmark = pytest.mark.untraced


async def test_a_pinned_memory_stays_through_fading_merging_and_the_memory_agent(services: Services) -> None:
    owner = await someone(services)
    (old,) = await written_before(services, owner, "Owns a red kettle")
    first, second = await write(services, owner, "Drinks green tea", "drinks green tea.")
    for each in (old, first, second):
        await services.memory.pins.set_on_episode(DEFAULT_TENANT, "u-1", each, pinned=True)
    run = await services.upkeep.run(DEFAULT_TENANT, "u-1", ARCHIVE)
    assert (run.merged_ids, run.faded_ids) == ([], [])
    (newer,) = await write(services, owner, "Owns a blue kettle")
    assert await supersede(services, owner, old, newer, Trigger("filing")) is None
    assert len(await living(services, owner)) == 4
    for each in (old, second):
        await services.memory.pins.set_on_episode(DEFAULT_TENANT, "u-1", each, pinned=False)
    run = await services.upkeep.run(DEFAULT_TENANT, "u-1", ARCHIVE)
    assert (run.merged_ids, run.faded_ids) == ([second], [old])


async def test_a_pinned_value_is_taken_away_by_the_user_alone(services: Services) -> None:
    owner = await someone(services)
    core, pins = services.memory.core, services.memory.pins
    content = {"allergies": ["peanuts", "cats"], "home": "Berlin", "work": {"place": "Acme"}}
    await core.replace(owner, "human", content, Trigger("user"))
    for field, text in (("allergies", "peanuts"), ("home", "Berlin"), ("work.place", "Acme")):
        await pins.set_on_value(owner, "human", field, text, pinned=True)
    (block,) = await core.read(owner)
    assert set((await pins.values(DEFAULT_TENANT, [block]))["human"]) == {
        PinnedValue("allergies", "peanuts"), PinnedValue("home", "Berlin"), PinnedValue("work.place", "Acme"),
    }  # fmt: skip
    changes = [
        ItemChange("remove", "human", "allergies", old="peanuts"),
        ItemChange("replace", "human", "home", value="Lisbon"),
        ItemChange("remove", "human", "allergies", old="cats"),
        ItemChange("add", "human", "pets", value="a dog"),
    ]
    assert await change_items(services, owner, changes, Trigger("filing")) == changes[:2]
    (block,) = await core.read(owner)
    assert block.content == {
        "allergies": ["peanuts"], "home": "Berlin", "work": {"place": "Acme"}, "pets": ["a dog"],
    }  # fmt: skip
    assert await change_items(services, owner, changes[:2], Trigger("user")) == []
    (block,) = await core.read(owner)
    assert (await pins.values(DEFAULT_TENANT, [block]))["human"] == [PinnedValue("work.place", "Acme")]
    await pins.set_on_value(owner, "human", "work.place", "Acme", pinned=False)
    assert (await pins.values(DEFAULT_TENANT, [block]))["human"] == []


async def test_what_is_not_there_cannot_be_pinned(services: Services) -> None:
    owner = await someone(services)
    pins = services.memory.pins
    with pytest.raises(NotFound, match="no value 'Berlin'"):
        await pins.set_on_value(owner, "human", "home", "Berlin", pinned=True)
    await services.memory.core.replace(owner, "human", {"home": "Berlin"}, Trigger("user"))
    with pytest.raises(NotFound, match="no value 'Lisbon' in the field 'home'"):
        await pins.set_on_value(owner, "human", "home", "Lisbon", pinned=True)
    with pytest.raises(NotFound, match="no episode"):
        await pins.set_on_episode(DEFAULT_TENANT, "u-1", owner.user_id, pinned=True)
