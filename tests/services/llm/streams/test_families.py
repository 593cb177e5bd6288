"""What is read of the streams of many servers."""

import json

import httpx2
import pytest
from langchain_core.messages import HumanMessage, ToolMessage

from services.errors import ModelFailed
from services.llm.calls import finish_of
from services.llm.chat_models import ModelUsage
from services.llm.lean_openai import LeanChatOpenAI
from services.llm.streams.answer import REASONING
from services.llm.streams.text import CallPiece, Reasoning, Said
from tests.services.llm.clients import Make, lean
from tests.services.llm.streams.families import CHAT, FAULTS, RESPONSES, Family
from tests.support.model_server import ModelServer, Reply

pytestmark = pytest.mark.untraced

FAMILIES = {**{f"chat, {name}": each for name, each in CHAT.items()}} | {
    f"responses, {name}": Family(**{**vars(each), "api": "responses"}) for name, each in RESPONSES.items()
}


class Pieces:
    """What was heard of an answer."""

    def __init__(self) -> None:
        self.said = Said()
        self.thoughts = ""
        self.calls: dict[int, tuple[str, str]] = {}
        """Name and arguments of each call, by its place."""

    def __call__(self, piece: str) -> None:
        self.said(piece)
        if isinstance(piece, Reasoning):
            self.thoughts += piece
        if isinstance(piece, CallPiece):
            place = len(piece.call.before)
            self.calls[place] = (piece.call.name, self.calls.get(place, ("", ""))[1] + piece)


def _client(name: str, server: ModelServer, http: httpx2.AsyncClient) -> LeanChatOpenAI:
    family = FAMILIES[name]
    return lean(server, http, family.api, model=family.model)


@pytest.mark.parametrize("name", FAMILIES)
async def test_answer_is_read_whole(name: str, model_server: ModelServer, http: httpx2.AsyncClient) -> None:
    family = FAMILIES[name]
    model_server.script(Reply(raw=family.raw))
    heard = Pieces()
    model = _client(name, model_server, http)

    message = await model.ainvoke("Hello", on_text=heard)

    assert message.text == heard.said.text == family.text
    assert heard.thoughts == family.reasoning
    assert [(each["name"], each["args"]) for each in message.tool_calls] == list(family.calls)
    for place, (called, arguments) in heard.calls.items():
        assert (called, json.loads(arguments)) == family.calls[place]
    assert not message.invalid_tool_calls
    assert finish_of(message) == family.finish
    reported = ModelUsage.of(message)
    assert (reported.input_tokens, reported.output_tokens, reported.cached_tokens) == (family.usage or (0, 0, 0))
    if family.calls:
        results = [ToolMessage("found", tool_call_id=each["id"]) for each in message.tool_calls]
        await model.ainvoke([HumanMessage("Hello"), message, *results], on_text=lambda _: None)
        _calls_can_be_answered(family, [str(each["id"]) for each in message.tool_calls], model_server)


def _calls_can_be_answered(family: Family, ids: list[str], server: ModelServer) -> None:
    """Ids are there and of their own, and reasoning goes back as it came."""
    assert all(ids)
    assert len(set(ids)) == len(ids) == len(family.calls)
    if family.api == "chat":
        _, answered, *told = server.requests[-1].body["messages"]
        assert [each["id"] for each in answered["tool_calls"]] == [each["tool_call_id"] for each in told] == ids
        assert {name: answered.get(name) for name in family.back} == family.back
    else:
        items = server.requests[-1].body["input"]
        assert [each["call_id"] for each in items if each.get("type") == "function_call"] == ids


async def test_reasoning_in_tags_goes_back_in_its_tags(
    model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    name = "chat, MiniMax, thoughts in the content before a call"
    model_server.script(Reply(raw=FAMILIES[name].raw))
    model = _client(name, model_server, http)
    message = await model.ainvoke("Hello", on_text=lambda _: None)

    await model.ainvoke(
        [HumanMessage("Hello"), message, ToolMessage("found", tool_call_id=message.tool_calls[0]["id"])],
        on_text=lambda _: None,
    )

    assert model_server.requests[-1].body["messages"][1]["content"] == "<think>\n要查\n</think>\n\n稍等"


async def test_reasoning_without_calls_is_never_sent_back(
    model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    model_server.script(Reply(raw=CHAT["DashScope, Qwen3 with usage in every chunk"].raw))
    model = lean(model_server, http, "chat")
    message = await model.ainvoke("Hello", on_text=lambda _: None)
    assert message.additional_kwargs[REASONING]

    await model.ainvoke([HumanMessage("Hello"), message, HumanMessage("And?")], on_text=lambda _: None)

    assert "想" not in str(model_server.requests[-1].body)


async def test_signature_of_a_call_goes_back_with_it(model_server: ModelServer, http: httpx2.AsyncClient) -> None:
    signed = {"google": {"thought_signature": "AY89"}}
    raw = CHAT["Zhipu GLM, a whole call in one delta"].raw.replace(
        b'"type":"function"', b'"type":"function","extra_content":{"google":{"thought_signature":"AY89"}}'
    )
    model_server.script(Reply(raw=raw))
    model = lean(model_server, http, "chat")
    message = await model.ainvoke("Hello", on_text=lambda _: None)

    result = ToolMessage("found", tool_call_id=message.tool_calls[0]["id"])
    await model.ainvoke([HumanMessage("Hello"), message, result], on_text=lambda _: None)

    (call,) = model_server.requests[-1].body["messages"][1]["tool_calls"]
    assert call["extra_content"] == signed


async def test_a_model_is_expected_to_think_first_after_several_answers_and_no_more_after_others(
    model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    thinking = Reply(raw=CHAT["DeepSeek, R1 through a server without a parser"].raw)
    plain = Reply(["你好", "！"])
    whole = "嗯，用户问好。\n</think>\n\n你好！"
    model = lean(model_server, http, "chat", model="my-model")

    async def answered(reply: Reply) -> tuple[str, bool]:
        """The answer, and whether it was held back."""
        model_server.script(reply)
        heard = Pieces()
        message = await model.ainvoke("Hello", on_text=heard)
        assert heard.said.text == message.text
        return message.text, bool(heard.thoughts)

    assert await answered(thinking) == (whole, False)
    assert await answered(plain) == ("你好！", False)  # one answer changes nothing
    assert [await answered(thinking) for _ in range(4)] == [*[(whole, False)] * 3, ("你好！", True)]
    assert [(await answered(plain))[1] for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize("name", FAULTS)
async def test_error_inside_an_answer_is_told_apart_and_logged(
    name: str, make: Make, model_server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    raw, failure, words = FAULTS[name]
    model_server.default = Reply(raw=raw)

    with pytest.raises(ModelFailed) as failed:
        await make(model_server.base_url, "chat").answer([HumanMessage("Hello")], on_text=lambda _: None)

    assert failed.value.failure == failure
    assert words in failed.value.detail
