"""Ids of users as identity providers, mail addresses and people write them."""

import asyncio
from urllib.parse import quote

import httpx
import pytest

from tests.support.transfer import LINES

IDS = (
    *("auth0|5f7c8ec7c33c6c004bbafe82", "zhang+work@example.com", "张三", "team/anna", "/", "a%2Fb"),
    *("a?b#c", "a\\b", "x" * 128, "{user_id}"),
)
NOT_IDS = ("", "..", "a ", "a\nb", "a\x00b", "a\u202eb", "x" * 129)


def _path(user: str, rest: str = "") -> str:
    return f"/api/v1/users/{quote(user, safe='')}{rest}"


async def test_a_user_of_any_printable_name_talks_exports_and_goes(client: httpx.AsyncClient) -> None:
    for user in IDS:
        await _lives_and_goes(client, user)


async def test_two_ways_to_write_an_accent_name_one_user_and_one_conversation(client: httpx.AsyncClient) -> None:
    made = set()
    for name in ("josé", "jose\u0301"):
        body = {"user_id": name, "session_id": name, "message": "Hello"}
        made.add((await client.post("/api/v1/chat", json=body)).raise_for_status().json()["conversation_id"])
        assert (await client.get(_path(name, "/core-memory"))).status_code == 200
    assert len(made) == 1
    assert [each["user_id"] for each in (await client.get("/api/v1/users")).json()["items"]] == ["josé"]


async def _lives_and_goes(client: httpx.AsyncClient, user: str) -> None:
    body = {"user_id": user, "session_id": user, "message": "Hello"}
    answer = (await client.post("/api/v1/chat", json=body)).raise_for_status().json()
    listed = (await client.get("/api/v1/conversations", params={"user_id": user, "session_id": user})).json()
    assert [each["id"] for each in listed["items"]] == [answer["conversation_id"]]
    named = (await client.get("/api/v1/users")).json()["items"]
    assert [each["user_id"] for each in named] == [user]

    exported = (await client.get(_path(user, "/export"))).raise_for_status()
    assert (await client.get(_path(user, "/core-memory"))).status_code == 200
    again = (await client.post("/api/v1/import", content=exported.content, headers=LINES)).json()
    assert (again["refused"], again["imported"]) == (0, 0)
    said = {"model": "default", "user": user, "messages": [{"role": "user", "content": "Hi"}]}
    assert (await client.post("/v1/chat/completions", json=said)).status_code == 200
    for header in (user.encode(), quote(user, safe="%").encode()):
        if header.decode().isascii() and header != user.encode():
            continue  # ASCII is taken as it stands
        heard = await client.post(
            "/v1/chat/completions", json={**said, "user": None}, headers=[(b"X-User-Id", header)]
        )
        assert heard.status_code == 200, heard.text
    assert [each["user_id"] for each in (await client.get("/api/v1/users")).json()["items"]] == [user]
    assert (await client.delete(_path(user))).status_code == 200
    assert (await client.get("/api/v1/users")).json()["items"] == []


@pytest.mark.parametrize("user", NOT_IDS)
async def test_what_is_no_id_is_refused_by_name(shared_client: httpx.AsyncClient, user: str) -> None:
    body = {"user_id": user, "session_id": "s", "message": "Hello"}
    refused = await shared_client.post("/api/v1/chat", json=body)
    assert refused.status_code == 422
    assert refused.json()["detail"].startswith("user_id: ")
    if user:
        # A client of HTTP would resolve . and .. itself.
        reader, writer = await asyncio.open_connection("127.0.0.1", shared_client.base_url.port)
        path = _path(user, "/export").replace("/./", "/%2E/").replace("/../", "/%2E%2E/")
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        assert (await reader.read()).startswith(b"HTTP/1.1 422 ")
        writer.close()
