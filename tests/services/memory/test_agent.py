"""The memory agent over real stores: what it files of a turn, once, and what it leaves alone."""

import json
from typing import Any

import pytest

from services.bootstrap import Services
from services.conversations.turn import OpenTurn
from services.errors import DatabaseUnavailable
from services.identity.tenants import DEFAULT_TENANT
from services.memory.agent import MemoryAgent
from services.memory.agent_store import AgentStore
from services.memory.blocks import Owner
from services.memory.episode import WrittenEpisode
from services.memory.operations import LoggedOperation, Trigger
from services.memory.schedule import REMEMBER
from services.platform.settings import Settings
from tests.support.archiving import with_small_model
from tests.support.jobs import hurried_queue, statuses, until
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.turns import exchange

pytestmark = pytest.mark.anyio

Operation = dict[str, Any]


@pytest.fixture
def settings(model_server: ModelServer) -> Settings:
    return with_small_model(model_server)


def _reply(*operations: Operation) -> Reply:
    return Reply([json.dumps({"operations": list(operations)}, ensure_ascii=False)])


def _core(**patch: Any) -> Operation:
    return {"operation": "add", "memory": "core", "section": "human", "patch": patch}


def _episode(content: str, kind: str = "decision", **more: Any) -> Operation:
    return {"operation": "add", "memory": "episode", "type": kind, "content": content, **more}


def _owner(turn: OpenTurn) -> Owner:
    return Owner(turn.tenant_id, turn.user_id, turn.expert_id)


async def _remember(services: Services, turn: OpenTurn) -> int:
    return await services.memory_agent.remember(turn.tenant_id, turn.turn_id)


async def _human(services: Services, turn: OpenTurn) -> dict[str, Any]:
    blocks = await services.memory.core.read(_owner(turn))
    return next((block.content for block in blocks if block.section == "human"), {})


async def _written(services: Services, turn: OpenTurn) -> list[WrittenEpisode]:
    return list(await services.memory.episodes.written(_owner(turn), limit=50))


async def _log(services: Services) -> list[LoggedOperation]:
    """Oldest first."""
    return list(await services.memory.operations.list(DEFAULT_TENANT, "u-1", limit=100))[::-1]


async def test_operations_are_done_in_order_and_logged_with_what_triggered_them(
    services: Services, model_server: ModelServer
) -> None:
    turn = await exchange(services.turns, "I moved to Lisbon. I decided to learn Portuguese.", "Great!")
    model_server.script(
        _reply(
            _core(home="lives in Lisbon"), _episode("The user decided to learn Portuguese."), {"operation": "none"}
        )
    )
    assert await _remember(services, turn) == 2
    assert await _human(services, turn) == {"home": "lives in Lisbon"}
    assert [each.content for each in await _written(services, turn)] == ["The user decided to learn Portuguese."]
    plan, update, insert = await _log(services)
    assert [plan.type, update.type, insert.type] == ["memory_agent", "core_memory_update", "episode_insert"]
    assert (plan.new_value, plan.results) == (None, {"by": "model", "operations": 2})
    why = {"actor": "memory_agent", "message_id": str(turn.user_message_id), "signals": ["decision", "fact"]}
    assert (update.trigger, insert.trigger) == ({**why, "call": "1"}, {**why, "call": "2"})
    assert {each.turn_id for each in (plan, update, insert)} == {turn.turn_id}
    sources = [str(turn.user_message_id), str(turn.answer_message_id)]
    assert insert.new_value["source_message_ids"] == sources
    (change,) = await services.memory.core.history(_owner(turn), "human", limit=5)
    assert (change.actor, change.trigger_message_id) == ("memory_agent", turn.user_message_id)


async def test_the_model_sees_the_exchange_core_memory_and_the_nearest_episodes(
    services: Services, model_server: ModelServer
) -> None:
    await exchange(services.turns, "My garden has three lemon trees.", "How nice!", session_key="s-1")
    turn = await exchange(
        services.turns, "I want to sell my lemon trees in the garden.", "A pity.", session_key="s-2"
    )
    await services.memory.core.update(_owner(turn), "human", {"name": "Ann"}, Trigger("user"))
    await exchange(services.turns, "My lemon trees died.", "Sorry.", session_key="s-1", external_user_id="u-2")
    model_server.script(_reply())
    assert await _remember(services, turn) == 0
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
    model_server.default = _reply(
        _episode("The user decided to learn Portuguese."), _core(preferences=["likes tea"])
    )
    assert await _remember(services, turn) == 2
    before, asked = await _log(services), len(model_server.requests)
    for _ in range(3):
        assert await _remember(services, turn) == 0
    assert await _log(services) == before
    assert len(model_server.requests) == asked
    nothing = await exchange(services.turns, "I have a garden with tall trees.", "Nice.")
    model_server.default = _reply()
    assert [await _remember(services, nothing) for _ in range(2)] == [0, 0]
    assert len(model_server.requests) == asked + 1


@pytest.mark.parametrize("broken_off_after", [0, 1, 2])
async def test_broken_off_it_goes_on_where_it_was_without_asking_again(
    services: Services, model_server: ModelServer, broken_off_after: int
) -> None:
    turn = await exchange(services.turns, "I decided to learn Portuguese. I like tea.", "Great!")
    model_server.script(
        _reply(_episode("The user decided to learn Portuguese."), _core(preferences=["likes tea"]))
    )
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
            AgentStore(services.database, memory.operations), services.models, jobs, run_tools,
            episodes=memory.episodes, core_memory=memory.core, archive=memory.archive,
        )  # fmt: skip
        if broken_off_after < 2:
            with pytest.raises(DatabaseUnavailable):
                await agent.remember(turn.tenant_id, turn.turn_id)
        else:
            await agent.remember(turn.tenant_id, turn.turn_id)
    asked = len(model_server.requests)
    model_server.default = Reply(status=500)
    await _remember(services, turn)
    assert len(model_server.requests) == asked
    types = [each.type for each in await _log(services)]
    assert types == ["memory_agent", "episode_insert", "core_memory_update"]
    assert await _human(services, turn) == {"preferences": ["likes tea"]}


async def test_what_is_known_already_is_not_stored_again(services: Services, model_server: ModelServer) -> None:
    first = await exchange(services.turns, "I decided to learn Portuguese. I like tea.", "Great!")
    model_server.script(
        _reply(_episode("The user decided to learn Portuguese."), _core(preferences=["likes tea"]))
    )
    await _remember(services, first)
    again = await exchange(services.turns, "As I said, I like tea and decided to learn Portuguese.", "Right.")
    model_server.script(
        _reply(
            _episode("The user has decided to learn Portuguese!"),
            _core(preferences=["Likes tea."]),
            _core(drinks=["likes tea"]),
        )
    )
    assert await _remember(services, again) == 0
    assert len(await _written(services, first)) == 1
    assert await _human(services, first) == {"preferences": ["likes tea"]}


async def test_what_the_answer_repeats_from_memory_is_not_filed(
    services: Services, model_server: ModelServer
) -> None:
    await exchange(services.turns, "I adore comedies from Denmark.", "Noted.", session_key="s-1")
    answer = "Since you adore Danish comedies and live in Lisbon, watch Italian for Beginners."
    turn = await exchange(services.turns, "I have decided: tonight is film night.", answer, session_key="s-2")
    model_server.script(
        _reply(
            _core(preferences=["adores Danish comedies"], home="lives in Lisbon"),
            _episode("The user adores Danish comedies.", "preference"),
            _episode("The user lives in Lisbon.", "context"),
            _episode("Tonight is the user's film night.", "decision"),
        )
    )
    assert await _remember(services, turn) == 1
    assert await _human(services, turn) == {}
    assert [each.content for each in await _written(services, turn)] == ["Tonight is the user's film night."]


async def test_rules_read_nothing_but_the_users_own_words(services: Services, model_server: ModelServer) -> None:
    model_server.default = Reply(status=500)
    answer = "I like comedies. I live in Lisbon. 我喜欢喜剧。I've booked the tickets for you."
    turn = await exchange(services.turns, "Which film is on tonight? Thanks!", answer)
    await _remember(services, turn)
    assert (await _human(services, turn), await _written(services, turn)) == ({}, [])


async def test_a_contradicted_memory_is_superseded_and_stays(
    services: Services, model_server: ModelServer
) -> None:
    first = await exchange(services.turns, "I like horror films. I prefer tea.", "Fine.")
    model_server.script(
        _reply(_episode("The user likes horror films.", "preference"), _episode("Prefers tea.", "preference"))
    )
    await _remember(services, first)
    second = await exchange(services.turns, "I no longer like horror films.", "I see.", session_key="s-2")
    model_server.script(_reply(_core(preferences=["no longer likes horror films"])))
    await _remember(services, second)
    assert [each.content for each in await _written(services, first)] == ["Prefers tea."]
    (gone,) = [each for each in await _log(services) if each.type == "episode_supersede"]
    assert gone.old_value == {"content": "The user likes horror films."}
    assert gone.trigger["actor"] == "memory_agent"
    assert await _count(services, "content IS NOT NULL") == 2
    assert await _count(services, "superseded_by IS NOT NULL") == 1
    assert await _count(services, "episode_type = 'turn' AND superseded_by IS NOT NULL") == 0


async def test_an_update_takes_the_place_of_the_episode_that_it_names(
    services: Services, model_server: ModelServer
) -> None:
    first = await exchange(services.turns, "I plan a trip to Norway in May.", "Fine.")
    model_server.script(_reply(_episode("The user plans a trip to Norway in May.", "context")))
    await _remember(services, first)
    second = await exchange(
        services.turns, "I changed my mind: the Norway trip is in June.", "OK.", session_key="s-2"
    )
    model_server.default = _naming("The user plans a trip to Norway in May.")
    await _remember(services, second)
    assert [each.content for each in await _written(services, first)] == ["The Norway trip is in June."]
    assert await _count(services, "superseded_by IS NOT NULL") == 1


def _naming(content: str) -> Any:
    """Answer with an update of the episode that says so, by the number that it has in the prompt."""

    def reply(request: Received) -> Reply:
        line = next(line for line in request.prompt[-1][1].splitlines() if line.endswith(content))
        number = int(line[1 : line.index("]")])
        return _reply(_episode("The Norway trip is in June.", "context", operation="update", episode=number))

    return reply


@pytest.mark.parametrize(
    "answers",
    [
        [Reply(["I would not."]), Reply(["{]"])],
        [Reply(['{"operations": [{"operation": "delete", "memory": "episode", "episode": 99}]}'])] * 2,
        [_reply(*[_core(home="lives in Oslo")] * 9)] * 2,
        [Reply(status=401)],
        [Reply(status=500)],
        [Reply(ending="reset", silent=True)] * 2,
    ],
    ids=["garbage", "a number that it was not shown", "too many", "refused", "failing", "reset"],
)
async def test_when_no_answer_will_do_rules_decide(
    services: Services, model_server: ModelServer, answers: list[Reply]
) -> None:
    turn = await exchange(services.turns, "I moved from Berlin to Lisbon.", "Nice.")
    model_server.script(*answers)
    assert await _remember(services, turn) == 1
    assert await _human(services, turn) == {"home": "lives in Lisbon"}
    assert (await _log(services))[0].results == {"by": "rules", "operations": 1}


async def test_a_bad_answer_is_asked_for_once_more(services: Services, model_server: ModelServer) -> None:
    turn = await exchange(services.turns, "I moved from Berlin to Lisbon.", "Nice.")
    model_server.script(Reply(["Hm."]), _reply(_core(home="lives in Lisbon", moved="from Berlin")))
    assert await _remember(services, turn) == 1
    assert await _human(services, turn) == {"home": "lives in Lisbon", "moved": "from Berlin"}


async def test_what_a_tool_refuses_costs_the_others_nothing(services: Services, model_server: ModelServer) -> None:
    turn = await exchange(services.turns, "I like tea. I decided to learn Portuguese.", "Great!")
    full = {f"fact_{number}": "x" * 450 for number in range(9)}
    await services.memory.core.replace(_owner(turn), "notes", {"all": "x" * 4000}, Trigger("user"))
    operation = {**_core(**dict(list(full.items())[:2])), "section": "notes"}
    model_server.script(_reply(operation, _episode("The user decided to learn Portuguese.")))
    assert await _remember(services, turn) == 2
    assert len(await _written(services, turn)) == 1
    assert (await _log(services))[-1].type == "episode_insert"


@pytest.mark.parametrize("status", ["partial", "running"])
async def test_a_turn_that_is_not_completed_is_left_alone(
    services: Services, model_server: ModelServer, status: str
) -> None:
    turn = await exchange(services.turns, "I like tea.", "Fine.")
    async with services.database.tenant(turn.tenant_id) as connection:
        await connection.execute("UPDATE turns SET status = %s WHERE id = %s", [status, turn.turn_id])
    assert await _remember(services, turn) == 0
    assert model_server.requests == []


async def test_another_tenant_does_not_see_the_turn(services: Services, model_server: ModelServer) -> None:
    turn = await exchange(services.turns, "I like tea.", "Fine.")
    assert await services.memory_agent.remember(turn.user_id, turn.turn_id) == 0
    assert model_server.requests == []


async def test_the_jobs_of_a_user_run_in_order_and_none_is_left_out(
    services: Services, model_server: ModelServer
) -> None:
    model_server.default = Reply(status=500)  # rules decide
    towns = ["Berlin", "Oslo", "Rome", "Porto", "Lisbon"]
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        for town in towns:
            turn = await exchange(services.turns, f"I moved to {town}.", "Nice.", session_key=f"s-{town}")
            lock = f"{REMEMBER}:{turn.user_id}"
            await services.jobs.defer(
                connection, REMEMBER, tenant_id=DEFAULT_TENANT, lock=lock, turn_id=turn.turn_id
            )
    services.jobs.start_worker()

    async def ended() -> bool:
        return await statuses(services.database, REMEMBER) == ["succeeded"] * len(towns)

    await until(ended, seconds=30)
    changes = await services.memory.core.history(_owner(turn), "human", limit=10)
    assert [change.new["home"] for change in changes][::-1] == [f"lives in {town}" for town in towns]


async def _count(services: Services, condition: str) -> int:
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        row = await (await connection.execute(f"SELECT count(*) FROM episodes WHERE {condition}")).fetchone()
    assert row
    return int(row[0])
