"""Lines are imported over HTTP: good ones are stored as if they had been said here, bad ones are named."""

import asyncio
from typing import Any
from uuid import UUID

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from tests.support.model_server import ModelServer, Reply
from tests.support.transfer import message, ndjson, send

_EPISODES = """
SELECT e.origin, e.created_at, e.importance, e.indexed_at IS NULL, array(
    SELECT m.content FROM unnest(e.source_message_ids) WITH ORDINALITY AS s (id, place)
    JOIN messages m ON m.id = s.id ORDER BY place
)
FROM episodes e WHERE e.episode_type = 'turn' ORDER BY e.created_at, e.id
"""


async def stored(client: httpx.AsyncClient, session: str = "s-1", user: str = "u-1") -> list[dict[str, Any]]:
    """The messages of a conversation."""
    asked = {"user_id": user, "session_id": session}
    (conversation,) = (await client.get("/api/v1/conversations", params=asked)).json()["items"]
    page = (await client.get(f"/api/v1/conversations/{conversation['id']}/messages?limit=200")).json()
    items: list[dict[str, Any]] = page["items"]
    return items


async def episodes(services: Services) -> list[list[str]]:
    """What each turn's episode was made of."""
    return [row[4] for row in await rows(services, _EPISODES)]


async def rows(services: Services, statement: Any) -> list[Any]:
    """What a query finds in the default tenant."""
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        return await (await connection.execute(statement)).fetchall()


async def test_messages_keep_their_times_ids_and_speakers(client: httpx.AsyncClient, services: Services) -> None:
    body = ndjson(
        message(1, content="我叫王小明 🦊", speaker="小\u200b明", external_id="D1:1"),
        message(2, content="你好"),
        message(3, timezone="Europe/Berlin", created_at="2025-03-01T12:00:00"),
    )
    assert await send(client, body) == {"imported": 3, "skipped": 0, "refused": 0, "errors": []}
    first, second, third = await stored(client)
    assert (first["content"], first["speaker"], first["external_id"]) == ("我叫王小明 🦊", "小明", "D1:1")
    assert (second["speaker"], second["external_id"], second["role"]) == (None, None, "assistant")
    times = [each["created_at"] for each in (first, second, third)]
    assert times == ["2025-03-01T00:01:00Z", "2025-03-01T00:02:00Z", "2025-03-01T11:00:00Z"]
    assert all(each["completed"] for each in (first, second, third))
    assert first["turn_id"] == second["turn_id"] != third["turn_id"]
    found = await rows(services, _EPISODES)
    assert [row[0] for row in found] == ["user_said", "user_said"]
    assert [row[4] for row in found] == [["我叫王小明 🦊", "你好"], ["Message 3"]]
    assert found[0][1].isoformat().startswith("2025-03-01T00:01:00")
    assert (round(found[0][2], 3), found[0][3]) == (0.4, True)


async def test_bad_lines_are_named_and_good_ones_are_kept(client: httpx.AsyncClient) -> None:
    bad: list[tuple[Any, str]] = [
        ("not json", "is not JSON"),
        (b'{"user_id": "\xff"}', "is not UTF-8 (at byte 14)"),
        ('{"user_id": "u", "role": "user", "role": "assistant"}', "role: is given more than once in one object"),
        (message(1, nonsense=1), "nonsense: is not known here; accepted: user_id, kind, session_id, role"),
        (message(1, user_id=".."), "user_id: "),
        (message(1, role="system"), "role: "),
        (message(1, content=" "), "content: is empty"),
        (message(1, created_at="yesterday"), "created_at: is not an ISO 8601 time"),
        (message(1, created_at=1700000000), "created_at: is not a text"),
        (message(1, created_at="2999-01-01T00:00:00Z"), "created_at: is in the future"),
        (message(1, created_at="0001-01-01T00:00:00+14:00"), "created_at: is before 1970"),
        (message(1, timezone="Mars/Olympus"), "timezone: "),
        (message(1, expert="nobody"), "expert: there is no expert named 'nobody'"),
        ('{"user_id": "u-1"}', "session_id: is required; role: is required; content: is required"),
        ({"kind": "dream"}, "kind: is none of message, user, session, core_memory, episode"),
        ('{"kind": "core_memory", "user_id": "u-1", "section": "human", "content": {"a": 1e999}}', "content: "),
    ]
    lines: list[Any] = []
    for number, (line, _) in enumerate(bad):
        lines += [message(number, content=f"good {number}"), line, ""]
    answer = await send(client, b"\xef\xbb\xbf" + ndjson(*lines))
    assert (answer["imported"], answer["skipped"], answer["refused"]) == (len(bad), 0, len(bad))
    assert [error["line"] for error in answer["errors"]] == [2 + 3 * number for number in range(len(bad))]
    for (_, reason), error in zip(bad, answer["errors"], strict=True):
        assert error["reason"].startswith(reason)
    assert [each["content"] for each in await stored(client)] == [f"good {number}" for number in range(len(bad))]


async def test_what_was_imported_is_skipped(client: httpx.AsyncClient, services: Services) -> None:
    lines = [message(n, external_id=f"m{n}" if n % 3 == 0 else None) for n in range(1, 21)]
    assert (await send(client, ndjson(*lines[:7])))["imported"] == 7
    again = await send(client, ndjson(*lines, *lines[:5]))
    assert (again["imported"], again["skipped"]) == (13, 12)
    assert [each["content"] for each in await stored(client)] == [f"Message {n}" for n in range(1, 21)]
    # The same id is the same message, whatever else it says; the same words at another time are another one.
    more = [message(3, external_id="m3", content="changed"), message(1, created_at="2025-03-02T00:00:00Z")]
    assert (await send(client, ndjson(*more)))["imported"] == 1
    # An exchange that was cut in two by the first import is one: its answer has found it.
    assert (await episodes(services))[:4] == [[f"Message {n}", f"Message {n + 1}"] for n in (1, 3, 5, 7)]
    assert len(await episodes(services)) == 11
    turns = [each["turn_id"] for each in await stored(client)]
    assert turns[6] == turns[7]


@pytest.mark.in_clear
async def test_the_same_lines_at_the_same_time_are_stored_once(
    client: httpx.AsyncClient, services: Services
) -> None:
    memory = {"user_id": "u-1", "kind": "episode", "episode_type": "decision", "content": "Go", "importance": 0.9}
    memory |= {"origin": "user_said", "created_at": "2025-03-01T00:00:00Z"}
    lines = [message(n, user_id=f"u-{n // 10 % 3}", session_id=f"s-{n // 10 % 2}") for n in range(1, 700)]
    forth, back = ndjson(*lines, memory), ndjson(*reversed(lines), memory)
    reports = await asyncio.gather(*(send(client, body) for body in (forth, back, forth, back)))
    assert sum(report["imported"] for report in reports) == 700
    assert all(report["imported"] + report["skipped"] == 700 for report in reports)
    assert (await rows(services, "SELECT count(*) FROM messages"))[0][0] == 699
    sources = "SELECT s FROM episodes, unnest(source_message_ids) AS s"
    assert len({row[0] for row in await rows(services, sources)}) == len(await rows(services, sources)) == 699
    assert (await rows(services, "SELECT count(*) FROM episodes WHERE content = 'Go'"))[0][0] == 1


async def test_other_types_and_bodies_that_are_too_large_are_refused(client: httpx.AsyncClient) -> None:
    wrong = await client.post("/api/v1/import", content=b"a=b", headers={"Content-Type": "text/csv"})
    assert (wrong.status_code, wrong.json()["detail"]) == (415, "Send JSON Lines as application/x-ndjson.")
    reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
    writer.write(
        f"POST /api/v1/import HTTP/1.1\r\nHost: localhost\r\nContent-Length: {1024**3 + 1}\r\n\r\n".encode()
    )
    assert (await asyncio.wait_for(reader.read(100), 60)).startswith(b"HTTP/1.1 413 ")
    writer.close()
    as_json = await client.post("/api/v1/import", json=message(1))
    assert as_json.json()["imported"] == 1
    typeless = await client.post("/api/v1/import", content=ndjson(message(2)))
    assert (typeless.status_code, typeless.json()["detail"]) == (415, "Send JSON Lines as application/x-ndjson.")


async def test_a_conversation_that_was_imported_is_summarised_and_goes_on(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    model_server.default = Reply(["They talked."])
    body = ndjson(*(message(n) for n in range(1, 301)), *(message(n, session_id="short") for n in range(1, 9)))
    assert (await send(client, body))["imported"] == 308
    waiting = await rows(services, "SELECT task_name, count(*) FROM procrastinate_jobs GROUP BY 1")
    assert waiting == [("update_summary", 1)]
    (conversation,) = (await client.get("/api/v1/conversations?session_id=s-1")).json()["items"]
    await services.summaries.update(DEFAULT_TENANT, UUID(conversation["id"]))
    summary = (await client.get(f"/api/v1/conversations/{conversation['id']}/summary")).json()
    assert summary["covered_message_count"] == 294
    model_server.requests.clear()
    body_of_turn = {"user_id": "u-1", "session_id": "s-1", "message": "Where were we?"}
    assert (await client.post("/api/v1/chat", json=body_of_turn)).status_code == 200
    assert "They talked." in " ".join(text for _, text in model_server.requests[-1].prompt[:2])
    assert model_server.requests[-1].said[-7:] == [*(f"Message {n}" for n in range(295, 301)), "Where were we?"]
    # What is older than the summary's point is shown until a summary has it.
    late = message(2, content="I forgot: a fox.", created_at="2025-03-01T00:02:30Z")
    assert (await send(client, ndjson(late)))["imported"] == 1
    await client.post("/api/v1/chat", json=body_of_turn)
    assert "I forgot: a fox." in [text for _, text in model_server.requests[-1].prompt]
