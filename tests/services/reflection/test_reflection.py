"""What an expert thinks of a turn is kept with its answer, and told to nobody."""

import asyncio
import json
from typing import Any

import pytest

from services.bootstrap import Services
from services.errors import ModelFailed
from services.identity.tenants import DEFAULT_TENANT
from services.reflection.schedule import REFLECT
from state.turn import OpenTurn
from tests.support.jobs import statuses, until
from tests.support.model_server import ModelServer, Reply
from tests.support.talks import new_expert
from tests.support.turns import exchange

pytestmark = pytest.mark.untraced

NOTE = {"thoughts": "He sounds tired of his work.", "feeling": "warm", "intention": "Ask about his sleep."}


def _reply(**values: Any) -> Reply:
    return Reply([json.dumps({**NOTE, **values})])


async def _thoughtful(services: Services, **values: Any) -> OpenTurn:
    await services.experts.create(DEFAULT_TENANT, new_expert("thoughtful", reflection=True))
    return await exchange(services.turns, "Work was long", "Rest well.", expert="thoughtful", **values)


async def _note(services: Services, turn: OpenTurn) -> Any:
    async with services.database.tenant(turn.tenant_id) as connection:
        statement = "SELECT private_note FROM messages WHERE id = %s"
        row = await (await connection.execute(statement, [turn.answer_message_id])).fetchone()
    return row[0] if row else None


async def test_a_turn_of_an_expert_who_reflects_is_thought_over_by_a_job(
    services: Services, model_server: ModelServer
) -> None:
    model_server.default = _reply()
    turn = await _thoughtful(services)
    other = await exchange(services.turns, "Work was long", "Rest well.", session_id="s-2")
    assert await statuses(services.database, REFLECT) == ["todo"]
    services.jobs.start_worker()

    async def done() -> bool:
        return await statuses(services.database, REFLECT) == ["succeeded"]

    await until(done)
    assert await _note(services, turn) == NOTE
    assert await _note(services, other) is None
    asked = model_server.requests[-1].prompt[-1][1]
    assert json.loads(asked) == {"who you are": "You are kind.", "user": "Work was long", "you": "Rest well."}


async def test_it_is_thought_once(services: Services, model_server: ModelServer) -> None:
    turn = await _thoughtful(services)
    model_server.default = _reply()
    both = (services.reflection.reflect(turn.tenant_id, turn.turn_id) for _ in range(2))
    assert sorted(await asyncio.gather(*both)) == [False, True]
    model_server.requests.clear()
    assert not await services.reflection.reflect(turn.tenant_id, turn.turn_id)
    assert model_server.requests == []


@pytest.mark.parametrize("garbage", [Reply(["Certainly."]), _reply(thoughts="x" * 495)], ids=["prose", "long"])
async def test_garbage_is_asked_for_once_more_and_never_stored(
    services: Services, model_server: ModelServer, garbage: Reply
) -> None:
    turn = await _thoughtful(services)
    model_server.script(garbage, garbage)
    assert not await services.reflection.reflect(turn.tenant_id, turn.turn_id)
    assert (len(model_server.requests), await _note(services, turn)) == (2, None)
    model_server.script(garbage, _reply())
    assert await services.reflection.reflect(turn.tenant_id, turn.turn_id)
    assert await _note(services, turn) == NOTE


async def test_a_model_that_is_down_is_tried_again_by_the_job(
    services: Services, model_server: ModelServer
) -> None:
    turn = await _thoughtful(services)
    model_server.script(Reply(status=500))
    with pytest.raises(ModelFailed):
        await services.reflection.reflect(turn.tenant_id, turn.turn_id)
    assert await _note(services, turn) is None
