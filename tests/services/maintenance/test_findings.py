"""Memories that say nearly the same or contradict each other are proposed once, as one change of both."""

import asyncio

import pytest

from services.bootstrap import Services
from services.errors import Conflict
from services.identity.tenants import DEFAULT_TENANT
from services.maintenance.findings import Found
from services.maintenance.policy import MaintenancePolicy
from services.memory.blocks import Owner
from services.memory.episodes.episode import NewEpisode
from services.memory.model import ChangeRequest
from services.memory.operations import Trigger
from tests.support.compressing import everything, living, someone, write
from tests.support.turns import exchange

pytestmark = pytest.mark.anyio

TEA = "The user drinks green tea with honey in the morning"
TEA_AGAIN = "The user drinks green tea with honey in the morning too"
BERLIN, LISBON = "The user lives in Berlin", "The user lives in Lisbon"
HANGZHOU, SHANGHAI = "用户住在杭州", "用户住在上海"


async def _look(services: Services) -> Found:
    return await services.maintenance.findings.look(DEFAULT_TENANT, "u-1")


async def _waiting(services: Services) -> list[tuple[str, str, str | None]]:
    found = await services.memory.proposals.list(DEFAULT_TENANT, "u-1", limit=50)
    return sorted((each.kind, each.text, each.replaces) for each in found)


async def test_duplicates_and_contradictions_wait_with_both_texts(services: Services) -> None:
    owner = await someone(services)
    await write(services, owner, TEA, BERLIN, HANGZHOU, "The user owns a red kettle", TEA_AGAIN, LISBON, SHANGHAI)
    before = await everything(services, owner)
    assert await _look(services) == Found(proposed=3, applied=0)
    assert await _waiting(services) == [
        ("contradiction", LISBON, BERLIN),
        ("contradiction", SHANGHAI, HANGZHOU),
        ("duplicate", TEA_AGAIN, TEA),
    ]
    assert await everything(services, owner) == before
    assert await _look(services) == Found(proposed=0, applied=0)


async def test_a_proposal_names_the_messages_of_both_memories(services: Services) -> None:
    first = await exchange(services.turns, "I live in Berlin.", "Noted.")
    second = await exchange(services.turns, "I live in Lisbon.", "Noted.")
    owner = Owner(first.tenant_id, first.user_id, first.expert_id)
    await write(services, owner, BERLIN, source_message_ids=[first.user_message_id])
    await write(services, owner, LISBON, source_message_ids=[second.user_message_id])
    await _look(services)
    (proposal,) = await services.memory.proposals.list(DEFAULT_TENANT, "u-1", limit=5)
    assert [(each.text, [said.content for said in each.messages]) for each in proposal.memories] == [
        (LISBON, ["I live in Lisbon."]),
        (BERLIN, ["I live in Berlin."]),
    ]


async def test_an_accepted_one_takes_effect_and_can_be_undone_and_none_is_made_twice(services: Services) -> None:
    owner = await someone(services)
    berlin, lisbon = await write(services, owner, BERLIN, LISBON)
    before = await everything(services, owner)
    await _look(services)
    (proposal,) = await services.memory.proposals.list(DEFAULT_TENANT, "u-1", limit=5)
    proposals = services.memory.proposals
    with pytest.raises(Conflict, match="nothing that could be undone"):
        await proposals.undo(DEFAULT_TENANT, "u-1", proposal.id)
    assert await proposals.settle(DEFAULT_TENANT, "u-1", proposal.id, accept=True) is None
    assert await living(services, owner) == [LISBON]
    superseded, *_ = await services.memory.operations.list(DEFAULT_TENANT, "u-1", limit=5)
    assert (superseded.type, superseded.field, superseded.trigger["proposal"]) == (
        "episode_supersede", str(berlin), str(proposal.id),
    )  # fmt: skip
    (accepted,) = await proposals.list(DEFAULT_TENANT, "u-1", state="accepted", limit=5)
    assert [each.id for each in accepted.memories] == [lisbon, berlin]
    await proposals.undo(DEFAULT_TENANT, "u-1", proposal.id)
    assert await everything(services, owner) == before
    assert [each.id for each in await proposals.list(DEFAULT_TENANT, "u-1", state="undone", limit=5)] == [
        proposal.id
    ]
    assert await _look(services) == Found(proposed=0, applied=0)
    assert (await services.lineage_audit.audit(DEFAULT_TENANT)).listed == []


async def test_a_refused_one_is_not_made_again_but_new_pairs_are(services: Services) -> None:
    owner = await someone(services)
    await write(services, owner, BERLIN, LISBON)
    await _look(services)
    (proposal,) = await services.memory.proposals.list(DEFAULT_TENANT, "u-1", limit=5)
    await services.memory.proposals.settle(DEFAULT_TENANT, "u-1", proposal.id, accept=False)
    assert await _look(services) == Found(proposed=0, applied=0)
    await write(services, owner, "The user lives in Ghent")
    assert await _look(services) == Found(proposed=1, applied=0)


async def test_by_policy_they_are_applied_at_once(services: Services) -> None:
    owner = await someone(services)
    await write(services, owner, BERLIN, LISBON)
    before = await everything(services, owner)
    await services.maintenance.policies.set(DEFAULT_TENANT, MaintenancePolicy(proposals="apply"))
    assert await _look(services) == Found(proposed=0, applied=1)
    assert await living(services, owner) == [LISBON]
    assert await _waiting(services) == []
    (applied,) = await services.memory.proposals.list(DEFAULT_TENANT, "u-1", state="accepted", limit=5)
    operation, *_ = await services.memory.operations.list(DEFAULT_TENANT, "u-1", limit=5)
    assert operation.trigger["actor"] == "maintenance"
    await services.memory.proposals.undo(DEFAULT_TENANT, "u-1", applied.id)
    assert await everything(services, owner) == before


async def test_a_paraphrase_waits_for_the_user_whatever_the_policy(services: Services) -> None:
    owner = await someone(services)
    await services.maintenance.policies.set(DEFAULT_TENANT, MaintenancePolicy(proposals="apply"))
    await write(services, owner, "Mother is from Chile", "Prefers tea over coffee", "Mum is from Chile")
    await write(services, owner, "Prefers coffee over tea")
    assert await _look(services) == Found(proposed=1, applied=0)
    assert await _waiting(services) == [("duplicate", "Mum is from Chile", "Mother is from Chile")]


async def test_words_of_others_take_no_place_of_the_users_own_by_policy(services: Services) -> None:
    owner = await someone(services)
    await write(services, owner, BERLIN)
    new = NewEpisode(LISBON, "context", 0.5, "document")
    await services.memory.archive.insert(owner, new, Trigger("model"))
    await services.maintenance.policies.set(DEFAULT_TENANT, MaintenancePolicy(proposals="apply"))
    assert await _look(services) == Found(proposed=1, applied=0)
    assert await living(services, owner) == [BERLIN, LISBON]


async def test_pinned_memories_are_never_dropped(services: Services) -> None:
    owner = await someone(services)
    berlin, _, tea, _ = await write(services, owner, BERLIN, LISBON, TEA, TEA_AGAIN)
    pins = services.memory.pins
    await pins.set_on_episode(DEFAULT_TENANT, "u-1", tea, pinned=True)
    assert await _look(services) == Found(proposed=2, applied=0)
    assert ("duplicate", TEA, TEA_AGAIN) in await _waiting(services)
    await pins.set_on_episode(DEFAULT_TENANT, "u-1", berlin, pinned=True)
    assert await _waiting(services) == [("duplicate", TEA, TEA_AGAIN)]
    await pins.set_on_episode(DEFAULT_TENANT, "u-1", berlin, pinned=False)
    (proposal,) = [
        each
        for each in await services.memory.proposals.list(DEFAULT_TENANT, "u-1", limit=5)
        if each.text == LISBON
    ]
    await pins.set_on_episode(DEFAULT_TENANT, "u-1", berlin, pinned=True)
    with pytest.raises(Conflict, match="pinned"):
        await services.memory.proposals.settle(DEFAULT_TENANT, "u-1", proposal.id, accept=True)


async def test_what_has_gone_or_is_over_is_not_proposed(services: Services) -> None:
    owner = await someone(services)
    berlin, _ = await write(services, owner, BERLIN, LISBON)
    await _look(services)
    await services.memory.archive.remove(owner, berlin, Trigger("user"))
    assert await _waiting(services) == []
    await write(services, owner, "The user lives in Ghent (until 2020-03)")
    await write(services, owner, "The user does not live in Porto")
    assert await _look(services) == Found(proposed=0, applied=0)


async def test_spaces_and_experts_are_looked_through_one_by_one(services: Services) -> None:
    owner = await someone(services)
    there = await services.memory.core.owner(DEFAULT_TENANT, "u-1", "default", "work", make_space=True)
    await write(services, owner, BERLIN)
    await write(services, there, LISBON)
    assert await _look(services) == Found(proposed=0, applied=0)
    await write(services, there, BERLIN)
    assert await _look(services) == Found(proposed=1, applied=0)


async def test_a_proposal_is_accepted_with_its_change_and_only_once(services: Services) -> None:
    owner = await someone(services)
    proposals = services.memory.proposals
    request = ChangeRequest.outside_of_turns(owner, Trigger("filing"))
    proposal_id = await proposals.add(request, "remember", "Plays the oboe in an orchestra")
    accepting = (proposals.settle(DEFAULT_TENANT, "u-1", proposal_id, accept=True) for _ in range(3))
    outcomes = await asyncio.gather(*accepting, return_exceptions=True)
    assert sum(isinstance(each, Conflict) for each in outcomes) == 2
    made = await services.memory.operations.list(DEFAULT_TENANT, "u-1", limit=20)
    by_it = [each for each in made if each.trigger.get("proposal") == str(proposal_id)]
    assert len([each for each in by_it if "part_of" not in each.trigger]) == 1
    (block,) = await services.memory.core.read(owner)
    assert str(block.content).count("oboe") == 1
    (accepted,) = await proposals.list(DEFAULT_TENANT, "u-1", state="accepted", limit=5)
    assert accepted.id == proposal_id
    await proposals.undo(DEFAULT_TENANT, "u-1", proposal_id)
    assert "oboe" not in str(await services.memory.core.read(owner))
