"""When a model is asked again, and under which names and without which parameters."""

from time import perf_counter
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from services.errors import ModelFailed
from services.llm.giving_way import LEFT_OUT
from state.turn import Sampling
from tests.services.llm.clients import Make
from tests.support.model_server import ModelServer, Received, Reply

pytestmark = pytest.mark.untraced

QUESTION = [HumanMessage("When does the train leave?")]
LENGTHS = ("max_tokens", "max_completion_tokens")
VALIDATOR = b'{"detail":[{"type":"extra_forbidden","loc":["body","%s"],"msg":"Extra inputs are not permitted"}]}'


def _ignore(_: str) -> None: ...


@pytest.mark.parametrize(
    "refusal",
    [
        Reply(status=429, headers={"Retry-After": "1"}),
        Reply(status=503, headers={"Retry-After-Ms": "900"}),
        Reply(status=429, error_message="Rate limit reached for requests. Please try again in 0.9s."),
    ],
)
async def test_a_short_wait_is_waited_for(make: Make, model_server: ModelServer, refusal: Reply) -> None:
    model_server.script(refusal)
    begun = perf_counter()
    answer = await make(model_server.base_url, "chat").answer(QUESTION, on_text=_ignore)
    assert answer.text == "Certainly, here is the answer."
    assert perf_counter() - begun >= 0.9
    assert len(model_server.requests) == 2


@pytest.mark.parametrize(
    "refusal",
    [
        Reply(status=429, headers={"Retry-After": "20"}),
        Reply(status=429, error_message='Quota exceeded. "retryDelay": "20s"'),
    ],
)
async def test_a_long_wait_is_the_callers(make: Make, model_server: ModelServer, refusal: Reply) -> None:
    model_server.script(refusal)
    with pytest.raises(ModelFailed) as failed:
        await make(model_server.base_url, "chat").answer(QUESTION, on_text=_ignore)
    assert (failed.value.failure, failed.value.retry_after_s) == ("llm_rate_limited", 20)
    assert len(model_server.requests) == 1


async def test_another_model_is_asked_in_place_of_a_long_wait(make: Make, model_server: ModelServer) -> None:
    model_server.script(Reply(status=429, headers={"Retry-After": "20"}), model="first")
    models = make(model_server.base_url, "chat", llm_fallback_models=["second"])
    await models.answer(QUESTION, on_text=_ignore)
    assert [each.body["model"] for each in model_server.requests] == ["first", "second"]


REFUSING: dict[str, Any] = {
    "Mistral's validator": lambda name: Reply(status=422, raw=VALIDATOR % name.encode()),
    "a validator that names nothing": lambda name: Reply(
        status=400, error_message="Extra inputs are not permitted"
    ),
    "OpenAI": lambda name: Reply(
        status=400,
        error_message=f"Unsupported parameter: '{name}' is not supported with this model. Use another instead.",
    ),
}


@pytest.mark.parametrize("known", LENGTHS)
@pytest.mark.parametrize("who", REFUSING)
async def test_the_answers_limit_is_sent_under_the_name_that_the_model_knows(
    make: Make, model_server: ModelServer, who: str, known: str
) -> None:
    (unknown,) = set(LENGTHS) - {known}
    refusal = REFUSING[who](unknown)
    model_server.default = lambda asked: refusal if unknown in asked.body else Reply(["Nine."])
    models = make(model_server.base_url, "chat", llm_answer_tokens=500)

    for asked in (None, Sampling(max_tokens=20), Sampling(max_completion_tokens=20)):
        answer = await models.answer(QUESTION, on_text=_ignore, sampling=asked)
        sent = model_server.requests[-1].body
        assert (answer.text, sent[known]) == ("Nine.", 20 if asked else 500)
        assert LEFT_OUT not in answer.response_metadata
    begun = len(model_server.requests)
    await models.answer(QUESTION, on_text=_ignore)
    assert len(model_server.requests) <= begun + 2
    assert known in model_server.requests[-1].body


async def test_a_limit_that_is_ignored_is_sent_under_its_other_name_from_then_on(
    make: Make, model_server: ModelServer
) -> None:
    model_server.default = Reply(["word "] * 100)
    models = make(model_server.base_url, "chat", llm_answer_tokens=10)
    for name in ("max_completion_tokens", "max_tokens"):
        await models.answer(QUESTION, on_text=_ignore)
        assert model_server.requests[-1].body.keys() & set(LENGTHS) == {name}


async def test_a_parameter_that_a_model_does_not_know_is_left_out_and_named(
    make: Make, model_server: ModelServer
) -> None:
    def strict(asked: Received) -> Reply:
        names = [name for name in ("temperature", "top_p") if name in asked.body]
        message = f"Unsupported value: '{names[0]}' does not support 0.5 with this model." if names else None
        return Reply(status=400, error_message=message) if message else Reply(["Nine."])

    model_server.default = strict
    models = make(model_server.base_url, "chat")
    asked = Sampling(temperature=0.5, top_p=0.5, max_tokens=9)
    for requests in (3, 4):
        answer = await models.answer(QUESTION, on_text=_ignore, sampling=asked)
        assert set(answer.response_metadata[LEFT_OUT]) == {"temperature", "top_p"}
        assert len(model_server.requests) == requests
    assert model_server.requests[-1].body["max_tokens"] == 9


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Sampling(temperature=2), "temperature must be at most 1"),
        (Sampling(max_tokens=9000), "max_tokens is too large: 9000. This model supports at most 8192."),
        (Sampling(stop=["x"]), "Unsupported parameter: 'stop' is not supported with this model."),
    ],
)
async def test_a_wrong_value_and_what_shapes_the_answer_is_the_callers_error(
    make: Make, model_server: ModelServer, asked: Sampling, message: str
) -> None:
    model_server.default = Reply(status=400, error_message=message)
    with pytest.raises(ModelFailed) as failed:
        await make(model_server.base_url, "chat").answer(QUESTION, on_text=_ignore, sampling=asked)
    assert (failed.value.failure, failed.value.parameter) == ("llm_parameter_refused", next(iter(asked)))
    assert len(model_server.requests) == 1
