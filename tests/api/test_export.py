"""An export holds everything of a user; imported elsewhere, it gives an equal export."""

import json
from random import Random
from uuid import UUID

import httpx
import pytest
from psycopg.types.json import Jsonb

from services.bootstrap import Services
from services.conversations.turn import TurnOutcome
from services.identity.api_keys import ApiKeys
from services.identity.tenants import DEFAULT_TENANT, Tenants
from state.turn import OpenTurn
from tests.support.issuer import bearer
from tests.support.talks import new_expert
from tests.support.transfer import export, message, ndjson, send
from tests.support.turns import exchange, new_turn

pytestmark = [pytest.mark.untraced, pytest.mark.settings(auth="api_key")]

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
    turn = await services.turns.open(new_turn("Go on …", session_id=session))
    outcome = TurnOutcome(status="partial", answer="I was about to")
    await services.turns.end(turn, outcome)


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
            session_id=f"s-{chance.randrange(3)}",
            images=[PICTURE, "https://example.org/a.png"] if number % 4 == 0 else [],
        )
        await _remember(services, turn, number)
    await exchange(services.turns, "Hello", "  ", session_id="films", expert="film-critic")
    await _broken_off(services, "s-1")
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute(_SETTLE)
    answer = await send(client, _imported(chance), **here)
    assert (answer["imported"], answer["refused"]) == (150, 0), answer


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (2, 3))])
async def test_imported_elsewhere_an_export_gives_an_equal_export(
    client: httpx.AsyncClient, services: Services, here: dict[str, str], elsewhere: dict[str, str], seed: int
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
