"""The Python client against the application."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator

import httpx
import pytest

from anamnesis_client import Anamnesis, AsyncAnamnesis, ServiceError, TurnFailed, Unreachable
from services.bootstrap import Services
from tests.support.model_server import ModelServer, Reply
from tests.support.openai_clients import contents
from tests.support.ports import free_port
from tests.support.sync_client import CLIENT, synchronous_client
from tests.support.transfer import message, ndjson


@pytest.fixture
async def client(url: str) -> AsyncIterator[AsyncAnamnesis]:
    async with AsyncAnamnesis(url, user="u-1") as opened:
        yield opened


class CutEverywhere(httpx.AsyncHTTPTransport):
    """Breaks every connection of a stream after its first event, before or after the answer's head."""

    def __init__(self) -> None:
        super().__init__(verify=False)
        self.cuts = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        if request.headers["accept"] == "text/event-stream":
            response.stream = _Cut(response.stream, self)
        return response


class _Cut(httpx.AsyncByteStream):
    def __init__(self, whole: object, transport: CutEverywhere) -> None:
        self._whole = whole
        self._transport = transport

    async def __aiter__(self) -> AsyncIterator[bytes]:
        heard = b""
        async for chunk in self._whole:  # type: ignore[attr-defined]
            heard += chunk
            event, end, _ = heard.partition(b"\n\n")
            if end:
                yield event + end + b"id: 99\nevent: tok"
                self._transport.cuts += 1
                raise httpx.ReadError("cut")

    async def aclose(self) -> None:
        await self._whole.aclose()  # type: ignore[attr-defined]


async def test_a_message_is_answered_and_remembered(client: AsyncAnamnesis, model_server: ModelServer) -> None:
    model_server.script(Reply(["He is ", "called Bruno."]), Reply(["Lovely."]))

    answer = await client.chat("What is my dog called?", session="s-1", timezone="Europe/Berlin")
    found = await client.recall("dog")

    assert answer.text == "He is called Bruno."
    assert answer.raw["turn_id"] == answer.turn_id
    assert "dog" in found[0].text
    assert found[0].kind == "turn"


async def test_a_stream_that_breaks_after_every_event_misses_and_repeats_none(
    url: str, services: Services, model_server: ModelServer
) -> None:
    words = [f"word{number} " for number in range(12)]
    model_server.script(Reply(words))
    cutting = CutEverywhere()
    async with httpx.AsyncClient(base_url=url, transport=cutting, timeout=120) as http:
        client = AsyncAnamnesis(url, user="u-1", http=http)
        events = [event async for event in client.stream("Count", session="s-1")]

    assert [event.id for event in events] == list(range(1, len(events) + 1))
    assert "".join(event.text for event in events) == "".join(words)
    assert events[-1].status == "done"
    assert cutting.cuts == len(events)
    assert len(await contents(services)) == 2


async def test_a_failed_turn_and_a_refused_request_say_why(
    client: AsyncAnamnesis, model_server: ModelServer
) -> None:
    model_server.script(Reply(status=401))
    with pytest.raises(TurnFailed) as failed:
        _ = [event async for event in client.stream("Hello", session="s-1")]
    assert failed.value.code == "llm_unauthorized"
    assert not failed.value.retryable
    with pytest.raises(ServiceError, match="message") as refused:
        await client.chat("", session="s-1")
    assert (refused.value.status, refused.value.code) == (422, "invalid_input")
    with pytest.raises(ServiceError, match="nobody"):
        await client.profile(user="nobody")
    with pytest.raises(ServiceError, match="no turn"):
        _ = [event async for event in client.resume("01a1fd62-e395-7407-b7b8-45bfb81ca93b")]


async def test_memory_is_written_found_forgotten_and_brought_back(client: AsyncAnamnesis) -> None:
    await client.chat("Hello", session="s-1")

    written = await client.remember("My tax number is 4711.", kind="context")
    assert written.kind == "context"
    assert "4711" in str(await client.recall("tax number"))
    change = await client.forget("my tax number 4711")
    assert change.operation_id is not None
    assert "4711" not in str(await client.recall("tax number"))
    await client.undo(change.operation_id)
    assert "4711" in str(await client.recall("tax number"))
    assert isinstance(await client.profile(), list)


async def test_what_is_exported_is_imported_elsewhere_and_known_the_second_time(client: AsyncAnamnesis) -> None:
    await client.chat("I moved to Hamburg.", session="s-1")
    lines = [json.loads(line) async for line in client.export()]

    async def of_another_user() -> AsyncIterator[str]:
        for line in lines:
            yield json.dumps({**line, "user_id": "u-2"})
        yield "{}"

    first = await client.import_lines(of_another_user())
    second = await client.import_lines(of_another_user())

    assert (first.imported, second.imported) == (len(lines), 0)
    assert (second.skipped, second.refused) == (len(lines), 1)
    assert second.errors[0].line == len(lines) + 1
    cut = await client.import_lines(of_another_user(), part_bytes=100)
    assert (cut.imported, cut.skipped, cut.refused, cut.errors) == (0, len(lines), 1, second.errors)
    assert "Hamburg" in str(await client.recall("Hamburg", user="u-2"))


async def test_what_ends_a_line_elsewhere_ends_none_of_a_stream_or_an_export(
    client: AsyncAnamnesis, model_server: ModelServer
) -> None:
    said = "one\u2028two\x85three"
    model_server.script(Reply([said]))

    events = [event async for event in client.stream(said, session="s-1")]
    lines = [json.loads(line) async for line in client.export()]

    assert "".join(event.text for event in events) == said
    assert [line["content"] for line in lines if line["kind"] == "message"] == [said, said]


async def test_any_endpoint_is_asked_and_lists_are_read_over_all_their_pages(client: AsyncAnamnesis) -> None:
    async def lines() -> AsyncIterator[bytes]:
        yield ndjson(*(message(number) for number in range(1, 411)))

    assert (await client.import_lines(lines())).imported == 410
    (conversation,) = [
        each async for each in client.items("conversations", params={"user_id": "u-1", "space": None})
    ]
    path = ("conversations", conversation["id"], "messages")

    assert len([each async for each in client.items(*path)]) == 410
    assert len([each async for each in client.items(*path, limit=201)]) == 201
    await client.request("PUT", "users", "u-1", "core-memory", "human", json={"content": {"home": "Lyon"}})
    assert await client.request("DELETE", "users", "u-1", "core-memory", "human") is None
    with pytest.raises(ServiceError, match="prefix: must match"):
        await client.request("GET", "knowledge-bases", "a/b")


async def test_a_service_that_is_not_there_is_named_after_the_last_try() -> None:
    async with AsyncAnamnesis(f"http://127.0.0.1:{free_port()}", user="u-1", retries=1) as client:
        for call in (client.profile(), client.remember("x")):
            with pytest.raises(Unreachable):
                await call
        with pytest.raises(Unreachable):
            _ = [event async for event in client.stream("Hello")]


async def test_a_busy_service_is_asked_again_when_it_says() -> None:
    answers = [
        httpx.Response(503, json={"code": "busy", "detail": "full"}, headers={"Retry-After": "0"}),
        httpx.Response(200, json={"items": [], "next": None}),
        httpx.Response(502, text="<html>no gateway</html>"),
        httpx.Response(301, headers={"Location": "https://elsewhere"}),
    ]

    def answer(_: httpx.Request) -> httpx.Response:
        return answers.pop(0)

    async with httpx.AsyncClient(base_url="http://x", transport=httpx.MockTransport(answer)) as http:
        client = AsyncAnamnesis("http://x", user="u-1", http=http)
        assert await client.profile() == []
        with pytest.raises(ServiceError, match="no gateway"):
            await client.profile()
        with pytest.raises(ServiceError, match="301 not_ours: Moved Permanently"):
            await client.profile()


async def test_the_client_without_a_loop_does_the_same(url: str, model_server: ModelServer) -> None:
    model_server.script(Reply(["Hello ", "there."]), Reply(["Again."]))

    def talk() -> None:
        with Anamnesis(url, user="u-1") as client:
            events = list(client.stream("Hello", session="s-1"))
            assert "".join(event.text for event in events) == "Hello there."
            assert list(client.resume(events[0].content["turn_id"], after=1)) == events[1:]
            assert client.chat("Again", session="s-1").text == "Again."
            lines = list(client.export())
            assert client.import_lines(lines).imported == 0
            with pytest.raises(ServiceError):
                client.profile(user="nobody")

    await asyncio.to_thread(talk)


@pytest.mark.process
def test_the_client_loads_nothing_of_the_service() -> None:
    code = (
        "import sys, anamnesis_client\n"
        "assert not {'api', 'services', 'state', 'fastapi', 'pydantic', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_synchronous_client_is_made_from_the_asynchronous_one() -> None:
    assert (CLIENT / "synchronous.py").read_text(encoding="utf-8") == synchronous_client(), "run: make client"
