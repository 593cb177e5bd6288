"""Models that refuse tools, a temperature or a schema: asked without, remembered for a while."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from structlog.testing import capture_logs

from services.errors import ModelFailed
from services.llm.chat_models import ModelUsage
from services.llm.token_estimates import count_tokens
from tests.services.llm.clients import Make
from tests.services.llm.streams.families import CHAT as FAMILIES
from tests.services.llm.streams.families import chunk, frames, said
from tests.support.model_server import ModelServer, Received, Reply

pytestmark = pytest.mark.untraced

QUESTION = [SystemMessage("You are kind."), HumanMessage("When does the train leave?")]
NO_TOOLS = "registry.ollama.ai/library/gemma2:2b does not support tools"
REFUSALS = {
    "Ollama": Reply(status=400, error_message=NO_TOOLS),
    "llama.cpp": Reply(status=500, error_message="tools param requires --jinja flag"),
    "a router": Reply(status=404, error_message="No endpoints found that support tool use."),
    "a validator": Reply(
        status=422, raw=b'{"detail": [{"loc": ["body", "tools"], "msg": "Extra inputs are not permitted"}]}'
    ),
    "in the stream": Reply(raw=b'data: {"error": {"message": "this model does not support tools"}}\n\n'),
}


@tool
def timetable(station: str) -> str:
    """The trains of a station."""
    return station


PLAN = {"type": "json_schema", "json_schema": {"name": "plan", "schema": {"type": "object"}}}
TOOLS: list[BaseTool] = [timetable]


def _without_tools(request: Received) -> bool:
    return not request.body.get("tools") and "tool_choice" not in request.body


def refuses_tools(request: Received) -> Reply:
    """A model that never takes tools."""
    return Reply(["At ", "nine."]) if _without_tools(request) else REFUSALS["Ollama"]


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
async def test_a_turn_is_asked_again_without_tools_at_once(
    make: Make, model_server: ModelServer, api: str, refusal: Reply
) -> None:
    models = make(model_server.base_url, api)
    model_server.script(refusal, Reply(["At ", "nine."]))
    heard: list[str] = []

    answer = await models.answer(QUESTION, on_text=heard.append, tools=TOOLS)

    assert answer.text == "".join(heard) == "At nine."
    assert [_without_tools(request) for request in model_server.requests] == [False, True]
    assert not models.takes_tools()


async def test_a_refusal_is_remembered_for_its_model_alone(
    make: Make, model_server: ModelServer, api: str
) -> None:
    models = make(model_server.base_url, api)
    model_server.default = refuses_tools
    with capture_logs() as logs:
        for _ in range(3):
            await models.answer(QUESTION, on_text=lambda _: None, tools=TOOLS)
    assert [_without_tools(request) for request in model_server.requests] == [False, True, True, True]
    assert models.takes_tools("another")
    [line] = [line for line in logs if line["log_level"] == "warning"]
    assert line["setting"] == "ANAMNESIS_LLM_TOOLS=off"
    assert line["reason"] == NO_TOOLS
    assert line["model"] == "first"


async def test_switched_on_a_refusal_is_an_error_that_names_the_setting(
    make: Make, model_server: ModelServer, api: str
) -> None:
    models = make(model_server.base_url, api, llm_tools="on")
    model_server.default = refuses_tools
    with pytest.raises(ModelFailed) as caught:
        await models.answer(QUESTION, on_text=lambda _: None, tools=TOOLS)
    assert caught.value.failure == "llm_tools_refused"
    assert "ANAMNESIS_LLM_TOOLS" in caught.value.message
    assert len(model_server.requests) == 1


@pytest.mark.traced
async def test_results_of_tools_reach_a_model_that_takes_none_as_text(
    make: Make, model_server: ModelServer, api: str
) -> None:
    models = make(model_server.base_url, api, llm_tools="off")
    call = AIMessage("", tool_calls=[{"name": "timetable", "args": {"station": "West"}, "id": "c"}])
    result = ToolMessage("09:00", name="timetable", tool_call_id="c")
    await models.answer([*QUESTION, call, result], on_text=lambda _: None, tools=TOOLS)
    [request] = model_server.requests
    assert _without_tools(request)
    assert request.roles == ["system", "user"]
    assert request.prompt[-1][1].startswith("When does the train leave?")
    assert "09:00" in request.prompt[-1][1]


async def test_several_refused_options_are_left_out_one_after_another(
    make: Make, model_server: ModelServer, api: str
) -> None:
    models = make(model_server.base_url, api)
    model_server.script(
        Reply(status=400, error_message="Unsupported parameter: 'temperature' is not supported with this model."),
        Reply(status=400, error_message="response_format is not supported"),
        Reply(["{}"]),
    )
    assert await models.complete(QUESTION, response_format=PLAN) == "{}"
    assert len(model_server.requests) == 3


def knows_no_system_role(request: Received) -> Reply:
    """A model whose chat template knows users and assistants alone."""
    if "system" in request.roles:
        return Reply(status=400, error_message="System role not supported")
    return Reply(["At nine."])


async def test_a_template_without_a_system_role_gets_the_text_in_the_users_message(
    make: Make, model_server: ModelServer, api: str
) -> None:
    models = make(model_server.base_url, api)
    model_server.default = knows_no_system_role
    for _ in range(2):
        assert (await models.answer(QUESTION, on_text=lambda _: None, tools=TOOLS)).text == "At nine."
    assert [len(request.prompt) for request in model_server.requests] == [2, 1, 1]
    assert model_server.requests[-1].prompt == [("user", "You are kind.\n\nWhen does the train leave?")]
    assert models.takes_tools()


async def test_in_the_native_form_a_template_that_refuses_it_is_an_error_that_names_the_setting(
    make: Make, model_server: ModelServer, api: str
) -> None:
    models = make(model_server.base_url, api, llm_messages="native")
    model_server.script(Reply(status=400, error_message="System message must be at the beginning."))
    with pytest.raises(ModelFailed) as caught:
        await models.answer(QUESTION, on_text=lambda _: None)
    assert caught.value.failure == "llm_messages_refused"
    assert "ANAMNESIS_LLM_MESSAGES=compatible" in caught.value.message
    assert len(model_server.requests) == 1


async def test_stream_options_are_left_out_once_they_are_refused(make: Make, model_server: ModelServer) -> None:
    models = make(model_server.base_url, "chat")
    refusal = Reply(status=422, error_message="Extra inputs are not permitted")
    model_server.default = lambda request: refusal if "stream_options" in request.body else Reply(["Nine."])

    answers = [await models.answer(QUESTION, on_text=lambda _: None) for _ in range(2)]

    assert [answer.text for answer in answers] == ["Nine.", "Nine."]
    assert ["stream_options" in request.body for request in model_server.requests] == [True, False, False]


async def test_usage_that_an_endpoint_does_not_report_is_estimated_and_marked(
    make: Make, model_server: ModelServer
) -> None:
    model_server.default = Reply(raw=frames(*said("你好", "世界"), chunk({}, "stop")))

    answer = await make(model_server.base_url, "chat").answer(QUESTION, on_text=lambda _: None)

    usage = ModelUsage.of(answer)
    assert usage.estimated
    assert usage.input_tokens > 10
    assert usage.output_tokens == count_tokens("你好世界")


@pytest.mark.parametrize("refuses", [False, True])
async def test_reasoning_goes_back_with_its_calls_unless_it_is_refused(
    make: Make, model_server: ModelServer, refuses: bool
) -> None:
    models = make(model_server.base_url, "chat")
    model_server.script(Reply(raw=FAMILIES["DeepSeek, thinking before a call"].raw))
    asked = await models.answer(QUESTION, on_text=lambda _: None, tools=TOOLS)

    def strict(request: Received) -> Reply:
        has_reasoning = "reasoning_content" in str(request.body["messages"])
        if has_reasoning == refuses:
            return Reply(status=400, error_message="reasoning_content is unsupported" if refuses else "Missing.")
        return Reply(["Nine."])

    model_server.default = strict
    prompt = [*QUESTION, asked, ToolMessage("found", tool_call_id=asked.tool_calls[0]["id"])]

    answers = [await models.answer(prompt, on_text=lambda _: None, tools=TOOLS) for _ in range(2)]

    assert [answer.text for answer in answers] == ["Nine.", "Nine."]
    assert len(model_server.requests) == (4 if refuses else 3)


async def test_calls_without_reasoning_get_an_empty_one_where_the_model_wants_it(
    make: Make, model_server: ModelServer
) -> None:
    """As DeepSeek's thinking models do, also of the calls that the service itself has made."""

    def strict(request: Received) -> Reply:
        calls = [each for each in request.body["messages"] if each.get("tool_calls")]
        if all("reasoning_content" in each for each in calls):
            return Reply(["Nine."])
        said = "The `reasoning_content` in the thinking mode must be passed back to the API."
        return Reply(status=400, error_message=said)

    models = make(model_server.base_url, "chat")
    model_server.default = strict
    called = AIMessage("", tool_calls=[{"name": "timetable", "args": {}, "id": "c1"}])
    prompt = [*QUESTION, called, ToolMessage("found", tool_call_id="c1")]

    answers = [await models.answer(prompt, on_text=lambda _: None, tools=TOOLS) for _ in range(2)]

    assert [answer.text for answer in answers] == ["Nine.", "Nine."]
    assert len(model_server.requests) == 3
