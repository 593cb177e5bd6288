"""An export holds everything of a user; imported elsewhere, it gives an equal export."""

import asyncio
import json
from random import Random
from typing import Any
from uuid import UUID

import httpx
import pytest
from psycopg.types.json import Jsonb

from services.bootstrap import Services
from services.conversations.turn import OpenTurn, TurnOutcome
from services.identity.api_keys import ApiKeys
from services.identity.tenants import DEFAULT_TENANT, Tenants
from tests.support.issuer import bearer
from tests.support.talks import new_expert
from tests.support.transfer import export, message, ndjson, send
from tests.support.turns import exchange, new_turn

pytestmark = [pytest.mark.anyio, pytest.mark.untraced, pytest.mark.settings(auth="api_key")]

PICTURE = "data:image/png;base64,iVBORw0KGgo="
WORDS = (
    "Hello",
    "你好，世界",
    "🦊🦊",
    "日本語 한국어",
    'quotes " and \\ and \n lines',
    "\u2028",
    "é",
    "\x7f",
    "x" * 3000,
)

_SETTLE = "UPDATE users SET timezone = 'Europe/Berlin', locale = 'zh-CN', display_name = '小明 🦊'"

_REMEMBER = """
WITH block AS (
    INSERT INTO core_memory_blocks (id, tenant_id, user_id, expert_id, section, content, version)
    VALUES (gen_random_uuid(), %(tenant_id)s, %(user_id)s, %(expert_id)s, %(section)s, %(content)s, 7)
)
INSERT INTO episodes (id, tenant_id, user_id, expert_id, conversation_id, episode_type, content, importance,
    origin, source_message_ids)
VALUES (gen_random_uuid(), %(tenant_id)s, %(user_id)s, %(expert_id)s, %(conversation_id)s, %(type)s, %(text)s, 0.8,
    'user_said', %(sources)s)
"""

_TURN_EPISODES = """
SELECT array(SELECT m.content FROM unnest(e.source_message_ids) WITH ORDINALITY AS s (id, place)
             JOIN messages m ON m.id = s.id ORDER BY place)
FROM episodes e WHERE e.episode_type = 'turn' ORDER BY 1
"""


async def _key(services: Services, tenant_id: UUID) -> dict[str, str]:
    _, key = await ApiKeys(services.database).create(tenant_id, "test", ["admin"])
    return bearer(key)


@pytest.fixture
async def here(services: Services) -> dict[str, str]:
    """The key of one tenant."""
    return await _key(services, DEFAULT_TENANT)


@pytest.fixture
async def elsewhere(services: Services) -> dict[str, str]:
    """The key of another."""
    tenant = await Tenants(services.database).create("elsewhere")
    await services.experts.create(tenant.id, new_expert("film-critic"))
    return await _key(services, tenant.id)


async def _broken_off(services: Services, session: str) -> None:
    turn = await services.turns.open(new_turn("Go on …", session_key=session))
    outcome = TurnOutcome(status="partial", answer="I was about to")
    await services.turns.end(turn.tenant_id, turn.turn_id, turn.answer_message_id, outcome)


async def _remember(services: Services, turn: OpenTurn, number: int) -> None:
    values = {
        "tenant_id": turn.tenant_id,
        "user_id": turn.user_id,
        "expert_id": turn.expert_id,
        "conversation_id": turn.conversation_id if number % 3 else None,
        "section": f"section 节 {number}",
        "content": Jsonb({"名字": WORDS[number % 5], "n": [1, 2.5, 10**30, None, True], "deep": {"a": {}}}),
        "type": ("preference", "decision", "outcome")[number % 3],
        "text": f"喜欢 {number}",
        "sources": [turn.user_message_id, turn.answer_message_id][: number % 3],
    }
    async with services.database.tenant(turn.tenant_id) as connection:
        await connection.execute(_REMEMBER, values)


def _imported(chance: Random) -> bytes:
    lines = []
    for number in range(150):
        same_time = f"2025-03-{1 + number // 20:02}T00:00:00.123456+08:00"
        lines.append(
            message(
                number,
                session_id=f"s-{chance.randrange(4)}",
                role=chance.choice(("user", "assistant")),
                content=f"{number} {chance.choice(WORDS)}",
                created_at=same_time if chance.random() < 0.7 else "2025-02-01T10:00:00",
                speaker=chance.choice((None, "小明", "Ann")),
                external_id=chance.choice((None, f"D{number}: 号", f"'; -- {number}")),
                completed=chance.random() < 0.9,
                parts=[{"type": "image_url", "image_url": {"url": PICTURE}}] * chance.choice((0, 0, 2)),
            )
        )
    return ndjson(*lines)


async def _live(client: httpx.AsyncClient, services: Services, here: dict[str, str], seed: int) -> None:
    chance = Random(seed)
    await services.experts.create(DEFAULT_TENANT, new_expert("film-critic"))
    for number in range(12):
        turn = await exchange(
            services.turns,
            f"{number} {chance.choice(WORDS)}",
            chance.choice(WORDS),
            session_key=f"s-{chance.randrange(3)}",
            images=[PICTURE, "https://example.org/a.png"] if number % 4 == 0 else [],
        )
        await _remember(services, turn, number)
    await exchange(services.turns, "Hello", "  ", session_key="films", expert="film-critic")
    await _broken_off(services, "s-1")
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute(_SETTLE)
    answer = await send(client, _imported(chance), **here)
    assert (answer["imported"], answer["refused"]) == (150, 0), answer


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (2, 3))])
async def test_imported_elsewhere_an_export_gives_an_equal_export(
    client: httpx.AsyncClient,
    services: Services,
    here: dict[str, str],
    elsewhere: dict[str, str],
    seed: int,
) -> None:
    await _live(client, services, here, seed)
    whole = await export(client, **here)
    lines = [json.loads(line) for line in whole.split("\n") if line]
    kinds = [line["kind"] for line in lines]
    assert (kinds[0], kinds.count("user"), kinds.count("core_memory"), kinds.count("episode")) == (
        "user",
        1,
        12,
        12,
    )
    assert kinds.count("message") == 12 * 2 + 2 + 2 + 150

    answer = await send(client, whole.encode(), **elsewhere)
    assert answer == {"imported": len(lines), "skipped": 0, "refused": 0, "errors": []}
    assert await export(client, **elsewhere) == whole

    for side in (here, elsewhere):
        again = await send(client, whole.encode(), **side)
        assert again == {"imported": 0, "skipped": len(lines), "refused": 0, "errors": []}
        assert await export(client, **side) == whole


@pytest.mark.traced
async def test_pins_of_turns_and_values_come_back_with_an_import(
    client: httpx.AsyncClient, services: Services, here: dict[str, str], elsewhere: dict[str, str]
) -> None:
    await exchange(services.turns, "I live by the river.", "Noted.")
    await exchange(services.turns, "I row on Sundays.", "Noted.")
    user = "/api/v1/users/u-1"
    episodes = (await client.get(f"{user}/episodes", headers=here)).json()["items"]
    await client.put(f"{user}/episodes/{episodes[0]['id']}/pin", headers=here)
    content = {"hobbies": ["rowing", "chess"], "work": {"place": "Acme"}}
    await client.put(f"{user}/core-memory/human", json={"content": content}, headers=here)
    for field, text in (("hobbies", "rowing"), ("work.place", "Acme")):
        pin = {"field": field, "text": text}
        await client.put(f"{user}/core-memory/human/pins", json=pin, headers=here)
    whole = await export(client, **here)
    answer = await send(client, whole.encode(), **elsewhere)
    assert (answer["refused"], answer["skipped"]) == (0, 0)
    assert await export(client, **elsewhere) == whole
    (section,) = (await client.get(f"{user}/core-memory", headers=elsewhere)).json()["items"]
    assert {each["text"] for each in section["pinned"]} == {"rowing", "Acme"}
    pinned = (await client.get(f"{user}/episodes?pinned=true", headers=elsewhere)).json()["items"]
    assert [each["content"] for each in pinned] == [episodes[0]["content"]]
    wrong = {"kind": "core_memory", "user_id": "u-1", "section": "s", "content": {"a": "b"}}
    line = {**wrong, "pinned": [{"field": "a", "text": "c"}]}
    (error,) = (await send(client, ndjson(line), **elsewhere))["errors"]
    assert "no value c in a" in error["reason"]


async def test_an_exchange_that_was_said_becomes_an_episode_again(
    client: httpx.AsyncClient, services: Services, here: dict[str, str]
) -> None:
    await exchange(services.turns, "What is it?", "A fox.")
    await _broken_off(services, "s-2")
    whole = await export(client, **here)
    await client.delete("/api/v1/users/u-1", headers=here)
    await send(client, whole.encode(), **here)
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        found = await (await connection.execute(_TURN_EPISODES)).fetchall()
    assert [row[0] for row in found] == [["Go on …"], ["What is it?", "A fox."]]


async def test_what_is_there_stays_as_it_is(client: httpx.AsyncClient, here: dict[str, str]) -> None:
    user: dict[str, Any] = {"kind": "user", "user_id": "u-1", "timezone": "Europe/Berlin", "display_name": "Ann"}
    session = {
        "kind": "session",
        "user_id": "u-1",
        "session_id": "s-1",
        "title": "First",
        "created_at": "2025-01-01T00:00:00Z",
    }
    section = {"kind": "core_memory", "user_id": "u-1", "section": "human", "content": {"name": "Ann"}}
    assert (await send(client, ndjson(user, session, section), **here))["imported"] == 3
    before = await export(client, **here)
    others = [
        {**user, "display_name": "Bob"},
        {**session, "title": "Last"},
        {**section, "content": {"name": "Bob"}},
    ]
    assert (await send(client, ndjson(*others), **here))["skipped"] == 3
    assert await export(client, **here) == before
    assert '"display_name":"Ann"' in before
    assert '"title":"First"' in before
    assert '"content":{"name":"Ann"}' in before


async def test_what_the_user_chose_comes_back(
    client: httpx.AsyncClient, services: Services, here: dict[str, str]
) -> None:
    turn = await exchange(services.turns, "How does rye bread rise?", "In warmth.")
    path = f"/api/v1/conversations/{turn.conversation_id}"
    await client.patch(path, json={"title": "The loaf", "pinned": True}, headers=here)
    await client.patch("/api/v1/users/u-1", json={"memory": False}, headers=here)
    whole = await export(client, **here)
    await client.delete("/api/v1/users/u-1", headers=here)
    await send(client, whole.encode(), **here)
    (found,) = (await client.get("/api/v1/conversations", headers=here)).json()["items"]
    assert (found["title"], found["pinned"]) == ("The loaf", True)
    assert (await client.get("/api/v1/users/u-1", headers=here)).json()["memory"] is False
    assert await export(client, **here) == whole


async def test_a_long_export_is_read_in_pages(client: httpx.AsyncClient, here: dict[str, str]) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "QUJD" * 400_000}}
    large = [message(n, parts=[picture] * (1 if n % 40 == 0 else 0)) for n in range(1, 650)]
    notes = [
        {
            "kind": "episode",
            "user_id": "u-1",
            "session_id": "s-1",
            "episode_type": "preference",
            "content": f"Likes {n}",
            "importance": 1,
            "origin": "derived",
            "created_at": "2025-04-01T00:00:00Z",
            "sources": [{"session_id": "s-1", "external_id": "gone"}],
        }
        for n in range(450)
    ]
    assert (await send(client, ndjson(*large, *notes), **here))["imported"] == 649 + 450
    lines = [json.loads(line) for line in (await export(client, **here)).split("\n") if line]
    assert [each["content"] for each in lines if each["kind"] == "message"] == [each["content"] for each in large]
    assert [len(each["parts"]) for each in lines if each["kind"] == "message"] == [len(e["parts"]) for e in large]
    episodes = [each for each in lines if each["kind"] == "episode"]
    assert [each["content"] for each in episodes] == [each["content"] for each in notes]
    assert all(each["sources"] == [] for each in episodes)


async def test_one_user_exports_and_imports_at_the_same_time(
    client: httpx.AsyncClient, here: dict[str, str]
) -> None:
    body = ndjson(*(message(number) for number in range(1, 800)))
    await send(client, ndjson(message(0)), **here)
    report, *exports = await asyncio.gather(
        send(client, body, **here), *(export(client, **here) for _ in range(3))
    )
    assert report["imported"] == 799
    for text in exports:
        assert all(json.loads(line) for line in text.split("\n") if line)
    assert (await export(client, **here)).count('"kind":"message"') == 800
