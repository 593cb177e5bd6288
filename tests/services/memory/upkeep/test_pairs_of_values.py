"""Values of core memory are compared with each other and with memories; what is accepted is undone exactly."""

import pytest

from services.bootstrap import Services
from services.errors import Conflict
from services.identity.tenants import DEFAULT_TENANT
from services.memory.blocks import Owner
from services.memory.operations import Trigger
from services.memory.proposal_list import Proposal
from tests.support.core_memory import know
from tests.support.model_server import ModelServer
from tests.support.turns import exchange, owner_of
from tests.support.upkeep import judging, keep_up, someone, undo_accepted, write

SWIMS = "goes swimming with her brother on Wednesday evenings"
SWIMS_AGAIN = "goes swimming with her brother on Wednesday evenings too"
LISBON = "The user lives in Lisbon"


@pytest.fixture(autouse=True)
def judge(model_server: ModelServer) -> None:
    """A model that compares."""

    def judged(older: str, newer: str) -> str:
        if "swimming" in older and "swimming" in newer:
            return "same"
        return "replaces" if "lives in" in older and "lives in" in newer else "apart"

    model_server.default = judging(judged)


async def _waiting(services: Services) -> list[Proposal]:
    return list(await services.memory.proposals.list(DEFAULT_TENANT, "u-1", limit=50))


async def _look(services: Services) -> int:
    """Carry a run out; return how many pairs wait that did not before."""
    before = len(await _waiting(services))
    await keep_up(services)
    return len(await _waiting(services)) - before


async def _content(services: Services, owner: Owner) -> dict[str, object]:
    return {block.section: block.content for block in await services.memory.core.read(owner)}


async def test_two_values_that_say_the_same_are_one_proposal(services: Services) -> None:
    owner = await someone(services)
    for section, content in (("human", {"facts": [SWIMS]}), ("sport", {"facts": [SWIMS_AGAIN, "owns goggles"]})):
        await know(services, owner, section, content, Trigger("user"))
    before = await _content(services, owner)
    assert await _look(services) == 1
    (proposal,) = await _waiting(services)
    assert [(each.section, each.field, each.text) for each in proposal.memories] == [
        ("sport", "facts", SWIMS_AGAIN),
        ("human", "facts", SWIMS),
    ]
    proposals = services.memory.proposals
    await proposals.settle(DEFAULT_TENANT, "u-1", proposal.id, accept=True)
    assert await _content(services, owner) == {"human": {}, "sport": before["sport"]}
    (accepted,) = await proposals.list(DEFAULT_TENANT, "u-1", state="accepted", limit=5)
    assert [each.text for each in accepted.memories] == [SWIMS_AGAIN, SWIMS]
    await undo_accepted(services)
    assert await _content(services, owner) == before
    assert await _look(services) == 0
    assert (await services.lineage_audit.audit(DEFAULT_TENANT)).listed == []


async def test_a_newer_memory_takes_the_place_of_a_value(services: Services) -> None:
    owner = await someone(services)
    home = "The user lives in Berlin"
    await know(services, owner, "human", {"home": home, "name": "Ada"}, Trigger("user"))
    await write(services, owner, LISBON)
    assert await _look(services) == 1
    (proposal,) = await _waiting(services)
    assert (proposal.kind, proposal.text, proposal.replaces) == ("contradiction", LISBON, home)
    await services.memory.proposals.settle(DEFAULT_TENANT, "u-1", proposal.id, accept=True)
    assert await _content(services, owner) == {"human": {"name": "Ada"}}
    # Undone by the log, the proposal says so as well.
    operation, *_ = await services.memory.operations.list(DEFAULT_TENANT, "u-1", limit=1)
    await services.memory.undo.undo(DEFAULT_TENANT, "u-1", operation.id)
    assert await _content(services, owner) == {"human": {"home": home, "name": "Ada"}}
    (undone,) = await services.memory.proposals.list(DEFAULT_TENANT, "u-1", state="undone", limit=5)
    assert undone.id == proposal.id


async def test_values_that_change_or_are_pinned_wait_no_more(services: Services) -> None:
    owner = await someone(services)
    core = services.memory.core
    await know(services, owner, "human", {"home": "The user lives in Berlin"}, Trigger("user"))
    await write(services, owner, LISBON)
    await _look(services)
    (proposal,) = await _waiting(services)
    pins = services.memory.pins
    await pins.set_on_value(owner, "human", "home", "The user lives in Berlin", pinned=True)
    assert await _waiting(services) == []
    with pytest.raises(Conflict, match="pinned"):
        await services.memory.proposals.settle(DEFAULT_TENANT, "u-1", proposal.id, accept=True)
    await pins.set_on_value(owner, "human", "home", "The user lives in Berlin", pinned=False)
    assert [each.id for each in await _waiting(services)] == [proposal.id]
    await core.replace(owner, "human", {"home": "The user lives in Porto"}, Trigger("user"))
    assert await _waiting(services) == []
    with pytest.raises(Conflict, match="changed"):
        await services.memory.proposals.settle(DEFAULT_TENANT, "u-1", proposal.id, accept=True)


async def test_undoing_is_refused_where_it_would_lose_a_later_change(services: Services) -> None:
    owner = await someone(services)
    await know(services, owner, "human", {"home": "The user lives in Berlin"}, Trigger("user"))
    await write(services, owner, LISBON)
    await _look(services)
    (proposal,) = await _waiting(services)
    await services.memory.proposals.settle(DEFAULT_TENANT, "u-1", proposal.id, accept=True)
    await know(services, owner, "human", {"home": "The user lives in Porto"}, Trigger("user"))
    with pytest.raises(Conflict, match="changed since"):
        await undo_accepted(services)
    assert await _content(services, owner) == {"human": {"home": "The user lives in Porto"}}
    assert len(await services.memory.proposals.list(DEFAULT_TENANT, "u-1", state="accepted", limit=5)) == 1


async def test_one_message_filed_in_both_ways_is_no_duplicate(services: Services) -> None:
    turn = await exchange(services.turns, f"She {SWIMS}.", "Noted.")
    owner = owner_of(turn)
    trigger = Trigger("filing", message_id=turn.user_message_id)
    await know(services, owner, "human", {"facts": [SWIMS]}, trigger)
    await write(services, owner, SWIMS, source_message_ids=[turn.user_message_id])
    assert await _look(services) == 0
