"""Background work: which model is asked, how often, and what its failures cost."""

import asyncio

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from services.errors import ModelFailed, Unavailable
from services.llm.chat_models import ChatModels
from tests.services.llm.clients import Make
from tests.support.model_server import ModelServer, Reply

pytestmark = pytest.mark.untraced

ASK = [SystemMessage("Be brief."), HumanMessage("Summarise.")]


@pytest.fixture
def models(make: Make, model_server: ModelServer, api: str) -> ChatModels:
    return make(model_server.base_url, api, small_llm_model="small")


async def test_the_small_model_is_asked(models: ChatModels, model_server: ModelServer) -> None:
    model_server.script(Reply(["Short ", "text."]))
    assert await models.complete(ASK) == "Short text."
    [request] = model_server.requests
    assert (request.body["model"], request.body["temperature"]) == ("small", 0.3)
    assert [text for _, text in request.prompt] == ["Be brief.", "Summarise."]
    assert not request.body.get("tools")


async def test_its_failures_cost_turns_nothing(make: Make, model_server: ModelServer, api: str) -> None:
    models = make(model_server.base_url, api, small_llm_model="first")
    model_server.script(*[Reply(status=500)] * 5)
    for _ in range(5):
        with pytest.raises(ModelFailed):
            await models.complete(ASK)
    with pytest.raises(Unavailable):
        await models.complete(ASK)
    assert len(model_server.requests) == 5
    assert (await models.answer(ASK, on_text=lambda _: None)).text
    assert model_server.requests[-1].body["model"] == "first"


async def test_turns_failures_cost_it_nothing(make: Make, model_server: ModelServer, api: str) -> None:
    models = make(model_server.base_url, api, small_llm_model="first")
    model_server.script(*[Reply(silent=True, ending="abort")] * 15)
    for _ in range(5):
        with pytest.raises(ModelFailed):
            await models.answer(ASK, on_text=lambda _: None)
    asked = len(model_server.requests)
    with pytest.raises(ModelFailed):
        await models.answer(ASK, on_text=lambda _: None)
    assert len(model_server.requests) == asked
    assert await models.complete(ASK)


async def test_a_connection_that_the_endpoint_closes_after_each_stream_costs_no_answer(make: Make) -> None:
    event = b'data: {"choices":[{"index":0,"delta":{"content":"Hi."},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    reply = head + b"Keep-Alive: timeout=5\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(event), event)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent = await reader.readuntil(b"\r\n\r\n")
        size = next(line for line in sent.lower().splitlines() if line.startswith(b"content-length:"))
        await reader.readexactly(int(size.split(b":")[1]))
        writer.write(reply)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        models = make(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", "chat")
        assert [await models.complete(ASK) for _ in range(4)] == ["Hi."] * 4
