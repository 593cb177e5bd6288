"""A small model's opinion, in the background."""

import pytest

from services.bootstrap import Services
from services.conversations.turn import OpenTurn, TurnOutcome
from services.errors import ModelFailed
from services.platform.settings import Settings, load_settings
from services.tone.turn_tone import tone_of
from tests.support.model_server import ModelServer, Reply
from tests.support.turns import new_turn

pytestmark = pytest.mark.anyio

OPINION = '{"anxiety": 0.9, "excitement": 0, "confusion": 0.1, "trust": 0, "frustration": 0}'


@pytest.fixture
def settings(request: pytest.FixtureRequest, model_server: ModelServer) -> Settings:
    """Settings with opinions, and with the scripted model or without any."""
    if getattr(request, "param", "") == "offline":
        return load_settings(tone_llm=True)
    return load_settings(
        llm_model="scripted", llm_base_url=model_server.base_url, llm_api_key="k", llm_timeout_s=5, tone_llm=True
    )


async def _said(services: Services, message: str) -> OpenTurn:
    turn = await services.turns.open(new_turn(message))
    outcome = TurnOutcome(status="completed", answer="Yes.", tone=tone_of(message, []))
    await services.turns.end(turn.tenant_id, turn.turn_id, turn.answer_message_id, outcome)
    return turn


async def _stored(services: Services, turn: OpenTurn) -> object:
    (state,) = await services.tones.of_user(turn.tenant_id, "u-1", session_id=None, after=None, limit=9)
    return state.opinion


async def test_an_opinion_is_kept_once(services: Services, model_server: ModelServer) -> None:
    turn = await _said(services, "The lab has not called.")
    model_server.script(Reply([OPINION]))
    given = await services.tone_opinions.give(turn.tenant_id, turn.turn_id)
    assert given is not None
    assert await _stored(services, turn) == given
    assert "The lab has not called." in model_server.requests[-1].prompt[-1][1]
    assert await services.tone_opinions.give(turn.tenant_id, turn.turn_id) is None
    assert len(model_server.requests) == 1


@pytest.mark.parametrize(
    "garbage",
    ["I think they are sad.", '{"anxiety": 0.9}', OPINION.replace("0.9", "7"), OPINION.replace("0.9", "NaN")],
)
async def test_garbage_is_asked_for_once_more_and_given_up(
    services: Services, model_server: ModelServer, garbage: str
) -> None:
    turn = await _said(services, "The lab has not called.")
    model_server.default = Reply([garbage])
    assert await services.tone_opinions.give(turn.tenant_id, turn.turn_id) is None
    assert len(model_server.requests) == 2
    assert await _stored(services, turn) is None


async def test_a_model_that_fails_leaves_the_job_to_be_tried_again(
    services: Services, model_server: ModelServer
) -> None:
    turn = await _said(services, "The lab has not called.")
    model_server.default = Reply(status=401)
    with pytest.raises(ModelFailed):
        await services.tone_opinions.give(turn.tenant_id, turn.turn_id)
    assert await _stored(services, turn) is None


@pytest.mark.parametrize("settings", ["offline"], indirect=True)
async def test_without_a_model_there_are_no_opinions(services: Services) -> None:
    turn = await _said(services, "The lab has not called.")
    assert not services.tone_opinions.on
    assert await services.tone_opinions.give(turn.tenant_id, turn.turn_id) is None
