"""Memories that say the same are merged; where a newer one takes another's place, that is proposed once.

Values of core memory are compared with each other and with memories; what is accepted is undone exactly.
"""

import asyncio

import pytest

from services.bootstrap import Services
from services.errors import Conflict
from services.identity.tenants import DEFAULT_TENANT
from services.memory.core.blocks import Owner
from services.memory.episodes.episode import NewEpisode
from services.memory.model import ChangeRequest
from services.memory.operations import Trigger
from tests.support.core_memory import know
from tests.support.filing import waiting
from tests.support.lineage import orphans
from tests.support.model_server import ModelServer, Reply
from tests.support.turns import exchange, owner_of
from tests.support.upkeep import everything, judging, keep_up, living, someone, undo_accepted, write

TEA = "The user drinks green tea with honey in the morning"
TEA_AGAIN = "The user drinks green tea with honey in the morning too"
BERLIN, LISBON = "The user lives in Berlin", "The user lives in Lisbon"
SWIMS = "goes swimming with her brother on Wednesday evenings"
SWIMS_AGAIN = "goes swimming with her brother on Wednesday evenings too"
HANGZHOU, SHANGHAI = "用户住在杭州", "用户住在上海"


def _judge(older: str, newer: str) -> str:
    """Tell homes of one person from each other, and what is said twice."""
    if older.removesuffix(" too") == newer.removesuffix(" too"):
        return "same"
    homes = ("lives in", "住在")
    return "replaces" if any(home in older and home in newer for home in homes) else "apart"


@pytest.fixture(autouse=True)
def judge(model_server: ModelServer) -> None:
    model_server.default = judging(_judge)


async def _waiting(services: Services) -> list[tuple[str, str, str | None]]:
    return sorted((each.kind, each.text, each.replaces) for each in await waiting(services))


async def _look(services: Services) -> int:
    """Carry a run out; return how many pairs wait that did not before."""
    before = len(await _waiting(services))
    await keep_up(services)
    return len(await _waiting(services)) - before


async def test_contradictions_wait_with_both_texts(services: Services) -> None:
    owner = await someone(services)
    await write(services, owner, BERLIN, HANGZHOU, "The user owns a red kettle", LISBON, SHANGHAI)
    before = await everything(services, owner)
    assert await _look(services) == 2
    assert await _waiting(services) == [("contradiction", LISBON, BERLIN), ("contradiction", SHANGHAI, HANGZHOU)]
    assert await everything(services, owner) == before
    assert await _look(services) == 0


async def test_a_refused_one_is_not_made_again_but_new_pairs_are(services: Services) -> None:
    owner = await someone(services)
    await write(services, owner, BERLIN, LISBON)
    await _look(services)
    (proposal,) = await waiting(services)
    await services.memory.proposals.settle(DEFAULT_TENANT, "u-1", proposal.id, accept=False)
    assert await _look(services) == 0
    await write(services, owner, "The user lives in Ghent")
    assert await _look(services) == 1


async def test_a_run_merges_what_says_the_same_and_is_undone(services: Services) -> None:
    owner = await someone(services)
    tea, again, berlin, lisbon = await write(services, owner, TEA, TEA_AGAIN, BERLIN, LISBON)
    before = await everything(services, owner)
    preview = await services.upkeep.preview(DEFAULT_TENANT, "u-1")
    assert [(each.id, each.kept_id, each.content, each.kept_content) for each in preview.merges] == [
        (tea, again, TEA, TEA_AGAIN)
    ]
    assert await everything(services, owner) == before
    run = await keep_up(services)
    assert (run.merged_ids, run.faded_ids, run.can_be_undone) == ([tea], [], True)
    assert (await everything(services, owner))[tea]["superseded_by"] == again
    assert await _waiting(services) == [("contradiction", LISBON, BERLIN)]
    assert (await keep_up(services)).merged_ids == []
    assert (await services.upkeep.undo(DEFAULT_TENANT, "u-1", run.id)).undone_at
    assert await everything(services, owner) == before
    assert {berlin, lisbon} <= set(before)
    # What was taken apart is not merged once more.
    assert (await keep_up(services)).merged_ids == []
    assert await orphans(services.database) == []


async def test_without_a_model_only_equal_texts_are_merged(services: Services, model_server: ModelServer) -> None:
    model_server.default = Reply(["no idea"])
    owner = await someone(services)
    old, _, new = await write(services, owner, "Owns a red kettle.", "Owns a blue kettle", "owns a  red kettle")
    run = await keep_up(services)
    assert run.merged_ids == [old]
    assert (await everything(services, owner))[old]["superseded_by"] == new
    assert await _waiting(services) == []


async def test_what_is_removed_takes_along_what_was_merged_into_it(services: Services) -> None:
    owner = await someone(services)
    old, new = await write(services, owner, TEA, TEA_AGAIN)
    await keep_up(services)
    await services.memory.archive.remove(owner, new, Trigger("user"))
    assert await everything(services, owner) == {}
    assert old != new


async def test_words_of_others_wait_before_they_take_the_place_of_the_users_own(services: Services) -> None:
    owner = await someone(services)
    await write(services, owner, TEA)
    new = NewEpisode(TEA_AGAIN, "context", 0.5, "document")
    read = await services.memory.archive.insert(owner, new, Trigger("model"))
    await services.memory.pins.set_on_episode(DEFAULT_TENANT, "u-1", read, pinned=True)
    assert await _look(services) == 1
    assert await living(services, owner) == [TEA, TEA_AGAIN]


async def test_pinned_memories_are_never_dropped(services: Services) -> None:
    owner = await someone(services)
    berlin, _, tea, _ = await write(services, owner, BERLIN, LISBON, TEA, TEA_AGAIN)
    pins = services.memory.pins
    await pins.set_on_episode(DEFAULT_TENANT, "u-1", tea, pinned=True)
    assert await _look(services) == 1
    assert await living(services, owner) == [TEA, BERLIN, LISBON]
    await pins.set_on_episode(DEFAULT_TENANT, "u-1", berlin, pinned=True)
    assert await _waiting(services) == []
    await pins.set_on_episode(DEFAULT_TENANT, "u-1", berlin, pinned=False)
    (proposal,) = await waiting(services)
    await pins.set_on_episode(DEFAULT_TENANT, "u-1", berlin, pinned=True)
    with pytest.raises(Conflict, match="pinned"):
        await services.memory.proposals.settle(DEFAULT_TENANT, "u-1", proposal.id, accept=True)


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
    await undo_accepted(services)
    assert "oboe" not in str(await services.memory.core.read(owner))


async def _content(services: Services, owner: Owner) -> dict[str, object]:
    return {block.section: block.content for block in await services.memory.core.read(owner)}


async def test_two_values_that_say_the_same_are_one_proposal(services: Services) -> None:
    owner = await someone(services)
    for section, content in (("human", {"facts": [SWIMS]}), ("sport", {"facts": [SWIMS_AGAIN, "owns goggles"]})):
        await know(services, owner, section, content, Trigger("user"))
    before = await _content(services, owner)
    assert await _look(services) == 1
    (proposal,) = await waiting(services)
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
    assert await orphans(services.database) == []


async def test_a_newer_memory_takes_the_place_of_a_value(services: Services) -> None:
    owner = await someone(services)
    home = "The user lives in Berlin"
    await know(services, owner, "human", {"home": home, "name": "Ada"}, Trigger("user"))
    await write(services, owner, LISBON)
    assert await _look(services) == 1
    (proposal,) = await waiting(services)
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
    (proposal,) = await waiting(services)
    pins = services.memory.pins
    await pins.set_on_value(owner, "human", "home", "The user lives in Berlin", pinned=True)
    assert await waiting(services) == []
    with pytest.raises(Conflict, match="pinned"):
        await services.memory.proposals.settle(DEFAULT_TENANT, "u-1", proposal.id, accept=True)
    await pins.set_on_value(owner, "human", "home", "The user lives in Berlin", pinned=False)
    assert [each.id for each in await waiting(services)] == [proposal.id]
    await core.replace(owner, "human", {"home": "The user lives in Porto"}, Trigger("user"))
    assert await waiting(services) == []
    with pytest.raises(Conflict, match="changed"):
        await services.memory.proposals.settle(DEFAULT_TENANT, "u-1", proposal.id, accept=True)


async def test_undoing_is_refused_where_it_would_lose_a_later_change(services: Services) -> None:
    owner = await someone(services)
    await know(services, owner, "human", {"home": "The user lives in Berlin"}, Trigger("user"))
    await write(services, owner, LISBON)
    await _look(services)
    (proposal,) = await waiting(services)
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
