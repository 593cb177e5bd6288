"""Retries, fallback models and what reaches the caller, against a server that fails on demand."""

import asyncio
from collections import Counter
from collections.abc import Awaitable

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from services.errors import ModelFailed
from services.llm.calls import finish_of
from services.llm.chat_models import ChatModels, ModelUsage
from tests.services.llm.clients import SECRET, Make
from tests.services.llm.streams.families import chunk, frames, response
from tests.support.jobs import until
from tests.support.model_server import Ending, ModelServer, Reply

pytestmark = pytest.mark.untraced

QUESTION = [HumanMessage("When does the train leave?")]
TEXT = ["At ", "nine", "."]


@pytest.fixture
def models(make: Make, model_server: ModelServer, api: str) -> ChatModels:
    return make(model_server.base_url, api)


async def failure_of(answer: Awaitable[AIMessage]) -> ModelFailed:
    with pytest.raises(ModelFailed) as caught:
        await answer
    return caught.value


def asked(server: ModelServer) -> list[str]:
    return [request.body["model"] for request in server.requests]


async def test_answer_is_streamed_and_returned_whole(models: ChatModels, model_server: ModelServer) -> None:
    model_server.script(Reply(TEXT))
    heard: list[str] = []

    answer = await models.answer(QUESTION, on_text=heard.append)

    assert "".join(heard) == answer.text == "At nine."
    assert ModelUsage.of(answer) == ModelUsage(input_tokens=100, output_tokens=3, cached_tokens=64)
    assert model_server.requests[0].prompt == [("user", QUESTION[0].text)]
    assert model_server.requests[0].headers["Authorization"] == f"Bearer {SECRET}"


async def test_nothing_is_kept_by_the_provider(models: ChatModels, model_server: ModelServer, api: str) -> None:
    first = await models.answer(QUESTION, on_text=lambda _: None)
    await models.answer([*QUESTION, first, HumanMessage("And back?")], on_text=lambda _: None)

    for request in model_server.requests:
        assert request.body.get("store", "absent") == (False if api == "responses" else "absent")
        assert "previous_response_id" not in request.body
        assert request.body["stream"] is True


PASSING = {
    "overload": Reply(status=503),
    "reset": Reply(silent=True, ending="reset"),
    "broken off before the text": Reply(ending="abort"),
    "empty answer": Reply(),
    "no answer at all": Reply(raw=b""),
    "error in the stream": Reply(raw=b'data: {"error": {"message": "overloaded"}}\n\n'),
}


async def test_passing_failure_is_tried_again(models: ChatModels, model_server: ModelServer) -> None:
    for name, failing in PASSING.items():
        model_server.script(failing, Reply(TEXT), model=name)

    async def ask(name: str) -> tuple[str, str]:
        heard: list[str] = []
        answer = await models.answer(QUESTION, on_text=heard.append, model=name)
        return answer.text, "".join(heard)

    answers = await asyncio.gather(*map(ask, PASSING))

    assert dict(zip(PASSING, answers, strict=True)) == dict.fromkeys(PASSING, ("At nine.",) * 2)
    assert Counter(asked(model_server)) == dict.fromkeys(PASSING, 2)


@pytest.mark.parametrize("ending", ["cut", "abort", "reset"])
async def test_nothing_is_asked_twice_once_text_has_come(
    ending: Ending, make: Make, model_server: ModelServer, api: str
) -> None:
    models = make(model_server.base_url, api, llm_fallback_models="second")
    model_server.script(Reply(TEXT, ending=ending, gap_s=0.02))
    heard: list[str] = []

    error = await failure_of(models.answer(QUESTION, on_text=heard.append))

    assert (error.failure, error.begun) == ("llm_stream_broken", True)
    assert "".join(heard) == "At nine."
    assert asked(model_server) == ["first"]


async def test_cancelled_answer_ends_at_once_and_is_not_asked_for_again(
    models: ChatModels, model_server: ModelServer
) -> None:
    model_server.script(Reply(TEXT, ending="cut", linger_s=30))
    begun = asyncio.Event()
    answer = asyncio.create_task(models.answer(QUESTION, on_text=lambda _: begun.set()))
    await begun.wait()

    answer.cancel()

    with pytest.raises(asyncio.CancelledError):
        await answer
    assert len(model_server.requests) == 1


async def test_time_out_in_mid_answer_is_told_from_one_before(make: Make, model_server: ModelServer) -> None:
    models = make(model_server.base_url, "responses", llm_timeout_s=3, llm_fallback_models="second")
    model_server.script(Reply(TEXT, ending="cut", linger_s=30))

    error = await failure_of(models.answer(QUESTION, on_text=lambda _: None))

    assert (error.failure, error.begun) == ("llm_timeout", True)
    assert asked(model_server) == ["first"]


async def test_fallback_models_are_asked_in_order(make: Make, model_server: ModelServer, api: str) -> None:
    models = make(model_server.base_url, api, llm_fallback_models="second, third")
    model_server.script(Reply(status=400), Reply(status=500), Reply(status=401), Reply(TEXT))

    answer = await models.answer(QUESTION, on_text=lambda _: None)

    assert answer.text == "At nine."
    assert asked(model_server) == ["first", "second", "second", "third"]


async def test_fallback_after_a_time_out(make: Make, model_server: ModelServer) -> None:
    models = make(model_server.base_url, "chat", llm_fallback_models="second", llm_timeout_s=1)
    model_server.script(Reply(TEXT, delay_s=30), Reply(TEXT))

    answer = await models.answer(QUESTION, on_text=lambda _: None)

    assert answer.text == "At nine."
    assert asked(model_server) == ["first", "second"]


async def test_a_model_that_says_nothing_in_time_is_asked_once_more_and_a_slow_one_is_not_hurried(
    make: Make, model_server: ModelServer, api: str
) -> None:
    models = make(model_server.base_url, api, llm_first_token_s=0.4)
    model_server.script(Reply(TEXT, delay_s=60), Reply(TEXT, delay_s=0.8), Reply(TEXT, delay_s=0.8), Reply(TEXT))
    for times in (2, 3, 4):
        assert (await models.answer(QUESTION, on_text=lambda _: None)).text == "At nine."
        assert len(model_server.requests) == times

    model_server.script(Reply(TEXT, delay_s=60), Reply(TEXT, ending="cut"))
    heard: list[str] = []
    error = await failure_of(models.answer(QUESTION, on_text=heard.append))
    assert (error.failure, error.begun, "".join(heard)) == ("llm_stream_broken", True, "At nine.")
    assert len(model_server.requests) == 6


async def test_a_refusal_is_the_answer_that_a_person_reads(
    make: Make, model_server: ModelServer, api: str
) -> None:
    refusals = {
        "chat": frames(chunk({"refusal": "I cannot."}), chunk({}, "stop")),
        "responses": frames(
            {"type": "response.refusal.delta", "delta": "I cannot.", "output_index": 0},
            {"type": "response.completed", "response": response()},
        ),
    }
    model_server.script(Reply(raw=refusals[api]))
    heard: list[str] = []
    answer = await make(model_server.base_url, api).answer(QUESTION, on_text=heard.append)
    assert answer.text == "".join(heard) == "I cannot."
    assert len(model_server.requests) == 1


async def test_a_model_that_was_away_for_five_turns_is_left_alone(make: Make, model_server: ModelServer) -> None:
    models = make(model_server.base_url, "responses", rest_s=3.0)
    model_server.default = Reply(status=500)
    failures = [await failure_of(models.answer(QUESTION, on_text=lambda _: None)) for _ in range(5)]
    assert {failure.failure for failure in failures} == {"llm_server_error"}
    assert models.failing == ["first"]
    before = len(model_server.requests)
    assert (await failure_of(models.answer(QUESTION, on_text=lambda _: None))).failure == "llm_unreachable"
    assert len(model_server.requests) == before

    model_server.default = Reply(TEXT)

    async def answers() -> bool:
        try:
            return (await models.answer(QUESTION, on_text=lambda _: None)).text == "At nine."
        except ModelFailed:
            return False

    await until(answers)
    assert models.failing == []


async def test_an_answer_without_end_is_cut_off_and_its_connection_closed(
    make: Make, model_server: ModelServer, api: str
) -> None:
    models = make(model_server.base_url, api, llm_answer_characters=1000)
    model_server.script(Reply(["x" * 700] * 50, gap_s=0.01))
    heard: list[str] = []

    answer = await models.answer(QUESTION, on_text=heard.append)

    assert "".join(heard) == answer.text == "x" * 1000
    assert finish_of(answer) == "length"
    assert ModelUsage.of(answer).estimated, "the endpoint says it at the end"


async def test_a_line_an_event_or_thoughts_without_end_are_refused(make: Make, model_server: ModelServer) -> None:
    models = make(model_server.base_url, "chat")
    text = b"x" * (1 << 20)
    thought = b'data: {"choices": [], "thought": "' + text + b'"}\n\n'
    for raw in ([b"data: ", *[text] * 9], [b"data: {\n"] * 1_100_000, [thought] * 17):
        model_server.default = Reply(raw=b"".join(raw))
        failure = await failure_of(models.answer(QUESTION, on_text=lambda _: None))
        assert failure.failure == "llm_bad_response"
