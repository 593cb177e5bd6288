"""The memory agent over real stores: what it files of a turn, once, and what it leaves alone."""

from typing import Any

import pytest

from services.bootstrap import Services
from services.errors import DatabaseUnavailable
from services.memory.agent import MemoryAgent
from services.memory.agent_deciding import Deciding
from services.memory.agent_store import AgentStore
from services.memory.operations import Trigger
from services.platform.settings import Settings
from tests.support.archiving import with_small_model
from tests.support.filing import core, count, episode, human, logged, owner, remember, reply, written
from tests.support.jobs import hurried_queue
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.turns import exchange

pytestmark = pytest.mark.anyio


@pytest.fixture
def settings(model_server: ModelServer) -> Settings:
    return with_small_model(model_server)


async def test_operations_are_done_in_order_and_logged_with_what_triggered_them(
    services: Services, model_server: ModelServer
) -> None:
    turn = await exchange(services.turns, "I moved to Lisbon. I decided to learn Portuguese.", "Great!")
    model_server.script(
        reply(
            core(home="lives in Lisbon"), episode("The user decided to learn Portuguese."), {"operation": "none"}
        )
    )
    assert await remember(services, turn) == 2
    assert await human(services, turn) == {"home": "lives in Lisbon"}
    assert [each.content for each in await written(services, turn)] == ["The user decided to learn Portuguese."]
    plan, update, insert = await logged(services)
    assert [plan.type, update.type, insert.type] == ["memory_agent", "core_memory_update", "episode_insert"]
    assert (plan.new_value, plan.results) == (None, {"by": "model", "operations": 2})
    why = {"actor": "memory_agent", "message_id": str(turn.user_message_id), "signals": ["decision", "fact"]}
    assert (update.trigger, insert.trigger) == ({**why, "call": "1"}, {**why, "call": "2"})
    assert {each.turn_id for each in (plan, update, insert)} == {turn.turn_id}
    sources = [str(turn.user_message_id), str(turn.answer_message_id)]
    assert insert.new_value["source_message_ids"] == sources
    (change,) = await services.memory.core.history(owner(turn), "human", limit=5)
    assert (change.actor, change.trigger_message_id) == ("memory_agent", turn.user_message_id)


async def test_the_model_sees_the_exchange_core_memory_and_the_nearest_episodes(
    services: Services, model_server: ModelServer
) -> None:
    await exchange(services.turns, "My garden has three lemon trees.", "How nice!", session_key="s-1")
    turn = await exchange(
        services.turns, "I want to sell my lemon trees in the garden.", "A pity.", session_key="s-2"
    )
    await services.memory.core.update(owner(turn), "human", {"name": "Ann"}, Trigger("user"))
    await exchange(services.turns, "My lemon trees died.", "Sorry.", session_key="s-1", external_user_id="u-2")
    model_server.script(reply())
    assert await remember(services, turn) == 0
    (asked,) = [request for request in model_server.requests if request.body["model"] == "small"]
    prompt = asked.prompt[-1][1]
    assert "> I want to sell my lemon trees in the garden." in prompt
    assert "> A pity." in prompt
    assert '{"human": {"name": "Ann"}}' in prompt
    assert "user: My garden has three lemon trees." in prompt
    assert prompt.count("I want to sell my lemon trees") == 1  # its own episode is none of the nearest
    assert "died" not in prompt


async def test_run_again_it_asks_nobody_and_doubles_nothing(services: Services, model_server: ModelServer) -> None:
    turn = await exchange(services.turns, "I decided to learn Portuguese. I like tea.", "Great!")
    model_server.default = reply(episode("The user decided to learn Portuguese."), core(preferences=["likes tea"]))
    assert await remember(services, turn) == 2
    before, asked = await logged(services), len(model_server.requests)
    for _ in range(3):
        assert await remember(services, turn) == 0
    assert await logged(services) == before
    assert len(model_server.requests) == asked
    nothing = await exchange(services.turns, "I have a garden with tall trees.", "Nice.")
    model_server.default = reply()
    assert [await remember(services, nothing) for _ in range(2)] == [0, 0]
    assert len(model_server.requests) == asked + 1


@pytest.mark.parametrize("broken_off_after", [0, 1, 2])
async def test_broken_off_it_goes_on_where_it_was_without_asking_again(
    services: Services, model_server: ModelServer, broken_off_after: int
) -> None:
    turn = await exchange(services.turns, "I decided to learn Portuguese. I like tea.", "Great!")
    model_server.script(reply(episode("The user decided to learn Portuguese."), core(preferences=["likes tea"])))
    done = 0

    async def run_tools(calls: Any, context: Any) -> Any:
        nonlocal done
        if done == broken_off_after:
            raise DatabaseUnavailable
        done += 1
        return await services.tool_executor.run_silently(calls, context)

    memory = services.memory
    async with hurried_queue(services.database) as jobs:
        agent = MemoryAgent(
            AgentStore(services.database, memory.operations),
            Deciding(services.models, memory.episodes, memory.core, memory.archive),
            jobs, run_tools, episodes=memory.episodes, archive=memory.archive,
        )  # fmt: skip
        if broken_off_after < 2:
            with pytest.raises(DatabaseUnavailable):
                await agent.remember(turn.tenant_id, turn.turn_id)
        else:
            await agent.remember(turn.tenant_id, turn.turn_id)
    asked = len(model_server.requests)
    model_server.default = Reply(status=500)
    await remember(services, turn)
    assert len(model_server.requests) == asked
    types = [each.type for each in await logged(services)]
    assert types == ["memory_agent", "episode_insert", "core_memory_update"]
    assert await human(services, turn) == {"preferences": ["likes tea"]}


async def test_what_is_known_already_is_not_stored_again(services: Services, model_server: ModelServer) -> None:
    first = await exchange(services.turns, "I decided to learn Portuguese. I like tea.", "Great!")
    model_server.script(reply(episode("The user decided to learn Portuguese."), core(preferences=["likes tea"])))
    await remember(services, first)
    again = await exchange(services.turns, "As I said, I like tea and decided to learn Portuguese.", "Right.")
    model_server.script(
        reply(
            episode("The user has decided to learn Portuguese!"),
            core(preferences=["Likes tea."]),
            core(drinks=["likes tea"]),
        )
    )
    assert await remember(services, again) == 0
    assert len(await written(services, first)) == 1
    assert await human(services, first) == {"preferences": ["likes tea"]}


async def test_what_the_answer_repeats_from_memory_is_not_filed(
    services: Services, model_server: ModelServer
) -> None:
    await exchange(services.turns, "I adore comedies from Denmark.", "Noted.", session_key="s-1")
    answer = "Since you adore Danish comedies and live in Lisbon, watch Italian for Beginners."
    turn = await exchange(services.turns, "I have decided: tonight is film night.", answer, session_key="s-2")
    model_server.script(
        reply(
            core(preferences=["adores Danish comedies"], home="lives in Lisbon"),
            episode("The user adores Danish comedies.", "preference"),
            episode("The user lives in Lisbon.", "context"),
            episode("Tonight is the user's film night.", "decision"),
        )
    )
    assert await remember(services, turn) == 1
    assert await human(services, turn) == {}
    assert [each.content for each in await written(services, turn)] == ["Tonight is the user's film night."]


async def test_rules_read_nothing_but_the_users_own_words(services: Services, model_server: ModelServer) -> None:
    model_server.default = Reply(status=500)
    answer = "I like comedies. I live in Lisbon. 我喜欢喜剧。I've booked the tickets for you."
    turn = await exchange(services.turns, "Which film is on tonight? Thanks!", answer)
    await remember(services, turn)
    assert (await human(services, turn), await written(services, turn)) == ({}, [])


async def test_a_contradicted_memory_is_superseded_and_stays(
    services: Services, model_server: ModelServer
) -> None:
    first = await exchange(services.turns, "I like horror films. I prefer tea.", "Fine.")
    model_server.script(
        reply(episode("The user likes horror films.", "preference"), episode("Prefers tea.", "preference"))
    )
    await remember(services, first)
    second = await exchange(services.turns, "I no longer like horror films.", "I see.", session_key="s-2")
    model_server.script(reply(core(preferences=["no longer likes horror films"])))
    await remember(services, second)
    assert [each.content for each in await written(services, first)] == ["Prefers tea."]
    (gone,) = [each for each in await logged(services) if each.type == "episode_supersede"]
    assert gone.old_value == {"content": "The user likes horror films."}
    assert gone.trigger["actor"] == "memory_agent"
    assert await count(services, "content IS NOT NULL") == 2
    assert await count(services, "superseded_by IS NOT NULL") == 1
    assert await count(services, "episode_type = 'turn' AND superseded_by IS NOT NULL") == 0


async def test_an_update_takes_the_place_of_the_episode_that_it_names(
    services: Services, model_server: ModelServer
) -> None:
    first = await exchange(services.turns, "I plan a trip to Norway in May.", "Fine.")
    model_server.script(reply(episode("The user plans a trip to Norway in May.", "context")))
    await remember(services, first)
    second = await exchange(
        services.turns, "I changed my mind: the Norway trip is in June.", "OK.", session_key="s-2"
    )
    model_server.default = _naming("The user plans a trip to Norway in May.")
    await remember(services, second)
    assert [each.content for each in await written(services, first)] == ["The Norway trip is in June."]
    assert await count(services, "superseded_by IS NOT NULL") == 1


def _naming(content: str) -> Any:
    """Answer with an update of the episode that says so, by the number that it has in the prompt."""

    def answer(request: Received) -> Reply:
        line = next(line for line in request.prompt[-1][1].splitlines() if line.endswith(content))
        number = int(line[1 : line.index("]")])
        return reply(episode("The Norway trip is in June.", "context", operation="update", episode=number))

    return answer
