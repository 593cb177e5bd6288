"""No text that anybody sends halts the loop, which serves everybody, for longer than plain text does."""

import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import httpx
import pytest

from tests.support.repetitions import FAMILIES, SIZES, pauses, repeated

pytestmark = pytest.mark.untraced
"""Tracing counts each line of a loop over a text, so it would make the pauses longer."""

Send = Callable[[httpx.AsyncClient, str], Awaitable[httpx.Response]]
_HARMLESS_S = 0.05
"""Time on the processor for which nobody else's request waits noticeably."""
_FEW = ("a passage with an id", "blanks", "operations", "Han sentences", "a plain form", "parts of a mail address")


async def _post(client: httpx.AsyncClient, path: str, body: Any) -> httpx.Response:
    return await client.post(path, json=body)


def _line(text: str) -> dict[str, Any]:
    said = {"user_id": "u-1", "session_id": "s-2", "role": "user", "content": text}
    return {**said, "created_at": "2026-01-01T00:00:00Z"}


async def _conversation_item(client: httpx.AsyncClient, text: str) -> httpx.Response:
    items = [{"type": "message", "role": role, "content": text} for role in ("user", "assistant")]
    return await _post(client, "/v1/conversations", {"items": items, "metadata": {"user": "u-1"}})


async def _archive(client: httpx.AsyncClient, text: str) -> httpx.Response:
    said = [{"messageId": "1", "sender": "User", "isCreatedByUser": True, "text": text}]
    content = json.dumps([{"conversationId": text[-9:], "title": "t", "messages": said}])
    return await client.post(
        "/api/v1/users/u-1/archive-imports", params={"vendor": "librechat"}, content=content.encode()
    )


async def _document(client: httpx.AsyncClient, text: str) -> httpx.Response:
    place = "/api/v1/users/u-1/sessions/s-1/documents"
    headers = {"Content-Type": "text/markdown"}
    return await client.post(place, params={"source": f"{hash(text)}.md"}, content=text.encode(), headers=headers)


async def _stored(client: httpx.AsyncClient, text: str) -> httpx.Response:
    operations = [{"op": "put", "namespace": ["n"], "key": "k", "value": {"text": text}}]
    return await _post(client, "/api/v1/store/batch", {"user_id": "u-1", "operations": operations})


async def _tool(client: httpx.AsyncClient, text: str) -> httpx.Response:
    call = {"name": "remember", "arguments": {"text": text[:8_000]}}
    headers = {"Accept": "application/json, text/event-stream", "X-User-Id": "u-1"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    return await client.post("/mcp", json=body, headers=headers)


SENDS: dict[str, Send] = {
    "chat": lambda client, text: _post(
        client, "/api/v1/chat", {"user_id": "u-1", "session_id": "s-1", "message": text}
    ),
    "chat completions": lambda client, text: _post(
        client,
        "/v1/chat/completions",
        {"model": "default", "user": "u-1", "messages": [{"role": "user", "content": text}]},
    ),
    "an attachment": lambda client, text: _post(
        client,
        "/v1/chat/completions",
        {
            "model": "default",
            "user": "u-1",
            "messages": [{"role": "user", "content": f'<source id="1">{text}</source>\nWhat about peanuts?'}],
        },
    ),
    "responses": lambda client, text: _post(
        client, "/v1/responses", {"model": "default", "user": "u-1", "input": text}
    ),
    "items of a conversation": _conversation_item,
    "an import": lambda client, text: _post(client, "/api/v1/import", _line(text)),
    "another product's archive": _archive,
    "a document": _document,
    "an item of the store": _stored,
    "a tool over MCP": _tool,
}


async def _longest_pause(client: httpx.AsyncClient, send: Send, text: str) -> float:
    async with pauses() as found:
        answer = await send(client, text)
    assert answer.status_code < 500, answer.text
    return found.longest_s


async def _pauses_too_long(client: httpx.AsyncClient, name: str, families: Iterable[str], size: int) -> list[str]:
    """Families whose text halts the loop five times as long as plain text of the same size."""
    number = 1_000
    usual, slow = 0.0, []
    for _ in range(3):  # of which the first makes what others find made
        number += 1
        usual = await _longest_pause(client, SENDS[name], repeated("", size, number))
    for family in families:
        most, took = max(5 * usual, _HARMLESS_S), 0.0
        for _ in range(3):  # a collection of garbage may come in between
            number += 1
            took = await _longest_pause(client, SENDS[name], repeated(family, size, number))
            if took <= most:
                break
        else:
            slow.append(f"{name}: {family}: {took * 1000:.0f} ms, plain text {usual * 1000:.0f} ms")
    return slow


@pytest.mark.parametrize("name", SENDS)
async def test_no_text_halts_the_loop(name: str, client: httpx.AsyncClient) -> None:
    assert await _pauses_too_long(client, name, _FEW, SIZES[-1]) == []


@pytest.mark.soak
@pytest.mark.parametrize("name", SENDS)
async def test_no_text_of_any_size_halts_the_loop(name: str, client: httpx.AsyncClient) -> None:
    for size in SIZES:
        assert await _pauses_too_long(client, name, FAMILIES, size) == []
