"""Lines are imported over HTTP: good ones are stored as if they had been said here, bad ones are named."""

from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from tests.support.transfer import message, ndjson, send

pytestmark = pytest.mark.anyio

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
        message(1, content="我叫王小明 🦊", speaker="小明", external_id="D1:1"),
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
        ("[1]", "is not a JSON object"),
        (message(1, nonsense=1), "nonsense: Extra inputs are not permitted"),
        (message(1, user_id="' OR 1=1 --"), "user_id: "),
        (message(1, session_id="s\n"), "session_id: "),
        (message(1, session_id="a\x00b"), "session_id: "),
        (message(1, role="system"), "role: "),
        (message(1, content="a\x00b"), "content: holds a NUL character"),
        (message(1, content=" "), "content: is empty"),
        (message(1, content="x" * 1_000_001), "content: "),
        (message(1, external_id="\x00"), "external_id: holds a NUL character"),
        (message(1, speaker=""), "speaker: "),
        (message(1, created_at="yesterday"), "created_at: is not an ISO 8601 time"),
        (message(1, created_at=1700000000), "created_at: is not a text"),
        (message(1, created_at="2999-01-01T00:00:00Z"), "created_at: is in the future"),
        (message(1, created_at="9999-12-31T23:59:59"), "created_at: is in the future"),
        (message(1, created_at="0001-01-01T00:00:00+14:00"), "created_at: is before 1970"),
        (message(1, timezone="Mars/Olympus"), "timezone: "),
        (message(1, expert="nobody"), "expert: there is no expert named 'nobody'"),
        ('{"user_id": "u-1"}', "session_id: Field required; role: Field required; content: Field required"),
        ('{"content": "\\ud800"}', "is not JSON"),
        ({"kind": "dream"}, "kind: is none of message, user, session, core_memory, episode"),
        ({"kind": "core_memory", "user_id": "u-1", "section": "human", "content": {"a": ["\x00"]}}, "content: "),
        ({"kind": "core_memory", "user_id": "u-1", "section": "human", "content": {"a": "x" * 5000}}, "content: "),
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
