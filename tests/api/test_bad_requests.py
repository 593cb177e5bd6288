"""Every input that can be wrong gets a problem document that names it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from services.bootstrap import Services

pytestmark = pytest.mark.untraced

GOOD: dict[str, Any] = {"user_id": "u-1", "session_id": "s-1", "message": "Hello"}


def assert_problem(response: httpx.Response, status: int, code: str) -> str:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    reasons = {"reasons"} if code == "invalid_input" else set()
    assert set(problem) == {"type", "title", "status", "detail", "code"} | reasons
    assert all(set(each) == {"field", "code", "limits"} for each in problem.get("reasons", []))
    assert (problem["status"], problem["code"]) == (status, code)
    return str(problem["detail"])


@pytest.mark.parametrize("path", ["/api/v1/chat", "/v1/chat/completions", "/api/v1/ui/chat"])
async def test_a_key_given_twice_is_named(shared_client: httpx.AsyncClient, path: str) -> None:
    content = b'{"user_id": "u", "messages": [{"role": "user", "x": 1, "role": "y"}]}'
    response = await shared_client.post(path, content=content, headers={"Content-Type": "application/json"})
    assert response.status_code == (400 if path.startswith("/v1") else 422), response.text
    assert "role" in response.text
    assert "more than once" in response.text


async def test_a_body_that_says_that_it_is_over_the_limit_is_not_even_read(shared_url: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(shared_url.rsplit(":", 1)[1]))
    writer.write(b"POST /api/v1/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 83886080\r\n\r\n")
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'"code":"too_large"' in answer
    writer.close()


@pytest.mark.traced
async def test_a_body_over_the_limit_is_refused_though_it_does_not_say_its_length(
    shared_client: httpx.AsyncClient,
) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(72):
            yield b"x" * 1024 * 1024

    assert_problem(await shared_client.post("/api/v1/chat", content=endless()), 413, "too_large")


@pytest.mark.parametrize(
    ("path", "status", "code", "named"),
    [
        ("/api/v1/turns/0190a000-0000-7000-8000-000000000001", 404, "not_found", "turn"),
        ("/api/v1/turns/nonsense", 422, "invalid_input", "turn_id"),
        ("/api/v1/conversations?limit=9999", 422, "invalid_input", "limit"),
        ("/api/v1/conversations?after=garbage", 422, "invalid_input", "after"),
        ("/api/v1/conversations?user_id=a%0Ab", 422, "invalid_input", "user_id"),
        ("/api/v1/nothing", 404, "not_found", "GET /api/v1/nothing is not supported here."),
    ],
)
async def test_a_wrong_address_is_named(
    shared_client: httpx.AsyncClient, path: str, status: int, code: str, named: str
) -> None:
    assert named in assert_problem(await shared_client.get(path), status, code)


async def test_a_wrong_method_is_a_problem_too(shared_client: httpx.AsyncClient) -> None:
    assert_problem(await shared_client.get("/api/v1/chat"), 405, "method_not_allowed")


async def test_without_its_database_the_service_says_when_to_come_again(
    client: httpx.AsyncClient, services: Services
) -> None:
    await services.database.close()
    response = await client.post("/api/v1/chat/stream", json=GOOD)
    assert "database" in assert_problem(response, 503, "database_unavailable")
    assert response.headers["retry-after"] == "1"
    assert (await client.get("/healthz")).text == "ok"
    ready = await client.get("/readyz")
    assert (ready.status_code, ready.json()["state"]) == (503, "down")


@pytest.mark.traced
@pytest.mark.parametrize(
    "headers",
    [b"X-Long: " + b"x" * 100_000, b"".join(b"X-%d: a\r\n" % number for number in range(20_000))],
    ids=["one", "many"],
)
async def test_headers_larger_than_any_client_needs_are_refused(shared_url: str, headers: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(shared_url.rsplit(":", 1)[1]))
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n\r\n")
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert answer.endswith(b"64 KiB.\n")
    writer.close()


_NESTED = b'{"user_id": ' + b"[" * 100_000
_LONG_NUMBER = b'{"user_id": ' + b"9" * 5_000 + b"}"
_IN_MESSAGE = b'{"user_id": "u-1", "session_id": "s-1", "message": "%s"}'


@pytest.mark.parametrize(
    "body",
    [_NESTED, _LONG_NUMBER, _IN_MESSAGE % b"a\xffb", b"\x1f\x8b\x08\x00"],
    ids=["deep", "a long number", "no UTF-8", "gzip"],
)
async def test_a_body_that_cannot_be_read_is_said_to_be_that(
    shared_client: httpx.AsyncClient, body: bytes
) -> None:
    response = await shared_client.post("/api/v1/chat", content=body, headers={"Content-Type": "application/json"})
    assert "body: " in assert_problem(response, 400, "malformed")


@pytest.mark.parametrize("escape", [b"a\\ud800b", b"\\udc00", b"a\\u0000b"])
async def test_text_that_cannot_be_stored_is_named(shared_client: httpx.AsyncClient, escape: bytes) -> None:
    content = _IN_MESSAGE % escape
    response = await shared_client.post(
        "/api/v1/chat", content=content, headers={"Content-Type": "application/json"}
    )
    assert assert_problem(response, 422, "invalid_input").startswith("message: ")
