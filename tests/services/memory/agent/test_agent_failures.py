"""The memory agent where things go wrong, come late, or are nobody's business."""

import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.agent.triggers import REMEMBER
from services.memory.operations import Trigger
from services.platform.settings import Settings
from tests.support.archiving import with_small_model
from tests.support.filing import core, episode, human, logged, owner, remember, reply, written
from tests.support.jobs import statuses, until
from tests.support.model_server import ModelServer, Reply
from tests.support.turns import exchange

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]


@pytest.fixture
def settings(model_server: ModelServer) -> Settings:
    return with_small_model(model_server)


@pytest.mark.parametrize(
    "answers",
    [
        [Reply(["I would not."]), Reply(["{]"])],
        [Reply(['{"operations": [{"operation": "delete", "memory": "episode", "episode": 99}]}'])] * 2,
        [reply({"op": "paint"}, {"op": "replace", "id": "c9", "text": "lives in Oslo"})] * 2,
        [Reply(status=401)],
        [Reply(status=500)],
        [Reply(ending="reset", silent=True)] * 2,
    ],
    ids=["garbage", "a number that it was not shown", "nothing of use", "refused", "failing", "reset"],
)
async def test_when_no_answer_will_do_rules_decide(
    services: Services, model_server: ModelServer, answers: list[Reply]
) -> None:
    turn = await exchange(services.turns, "I moved from Berlin to Lisbon.", "Nice.")
    model_server.script(*answers)
    assert await remember(services, turn) == 1
    assert await human(services, turn) == {"home": "lives in Lisbon"}
    assert (await logged(services))[0].results == {"by": "rules", "operations": 1}


async def test_a_bad_answer_is_asked_for_once_more(services: Services, model_server: ModelServer) -> None:
    turn = await exchange(services.turns, "I moved from Berlin to Lisbon.", "Nice.")
    model_server.script(Reply(["Hm."]), reply(core(home="lives in Lisbon", moved="from Berlin")))
    assert await remember(services, turn) == 2
    assert await human(services, turn) == {"home": "lives in Lisbon", "moved": "from Berlin"}


@pytest.mark.traced
async def test_what_core_memory_refuses_costs_the_others_nothing(
    services: Services, model_server: ModelServer
) -> None:
    turn = await exchange(services.turns, "I like tea. I decided to learn Portuguese.", "Great!")
    await services.memory.core.replace(owner(turn), "notes", {"all": "x" * 4000}, Trigger("user"))
    operation = {**core(fact="x" * 250), "section": "notes"}
    model_server.script(reply(operation, episode("The user decided to learn Portuguese.")))
    assert await remember(services, turn) == 2
    assert len(await written(services, turn)) == 1
    assert (await logged(services))[-1].type == "episode_insert"


@pytest.mark.parametrize("status", ["partial", "running"])
async def test_a_turn_that_is_not_completed_is_left_alone(
    services: Services, model_server: ModelServer, status: str
) -> None:
    turn = await exchange(services.turns, "I like tea.", "Fine.")
    async with services.database.tenant(turn.tenant_id) as connection:
        await connection.execute("UPDATE turns SET status = %s WHERE id = %s", [status, turn.turn_id])
    assert await remember(services, turn) == 0
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

    await until(ended)
    changes = await services.memory.core.history(owner(turn), "human", limit=10)
    assert [change.new["home"] for change in changes][::-1] == [f"lives in {town}" for town in towns]


async def test_a_late_job_adds_and_does_not_overwrite_what_is_newer(
    services: Services, model_server: ModelServer
) -> None:
    model_server.default = Reply(status=500)  # rules decide
    turn = await exchange(services.turns, "I live in Berlin. I like tea. I'm allergic to nuts.", "Fine.")
    now = {"home": "lives in Lisbon", "preferences": ["hates tea", "likes milk"]}
    await services.memory.core.replace(owner(turn), "human", now, Trigger("user"))
    assert await remember(services, turn) == 1
    assert await human(services, turn) == {**now, "allergies": ["nuts"]}
    later = await exchange(services.turns, "I moved to Porto.", "Fine.")
    assert await remember(services, later) == 1
    assert (await human(services, turn))["home"] == "lives in Porto"


@pytest.mark.parametrize("late", [False, True], ids=["looked at in order", "the newer one looked at first"])
async def test_only_what_was_said_before_is_superseded(
    services: Services, model_server: ModelServer, late: bool
) -> None:
    likes = await exchange(services.turns, "I like horror films.", "Fine.")
    hates = await exchange(services.turns, "I no longer like horror films.", "Fine.", session_key="s-2")
    answers = {
        likes.turn_id: reply(episode("Likes horror films.", "preference")),
        hates.turn_id: reply(episode("No longer likes horror films.", "preference")),
    }
    for turn in (hates, likes) if late else (likes, hates):
        model_server.script(answers[turn.turn_id])
        await remember(services, turn)
    held = {each.content for each in await written(services, likes)}
    assert "No longer likes horror films." in held
    assert ("Likes horror films." in held) == late
