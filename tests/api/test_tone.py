"""Tone and persona over HTTP: what the prompt says to the model, and the trajectory."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.platform.settings import Settings, load_settings
from tests.support.jobs import statuses
from tests.support.model_server import ModelServer, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]

TONE = "/api/v1/users/{user}/tone"
PERSONA = "/api/v1/users/{user}/persona"
EMOTIONS = ("anxiety", "excitement", "confusion", "trust", "frustration")


@pytest.fixture
def settings(request: pytest.FixtureRequest, model_server: ModelServer) -> Settings:
    """Settings with the scripted model, and with what a test asks for."""
    return load_settings(
        llm_model="scripted",
        llm_base_url=model_server.base_url,
        llm_api_key="secret-key",
        llm_timeout_s=5,
        **getattr(request, "param", {}),
    )


async def _say(client: httpx.AsyncClient, message: str, user: str = "u-1", session: str = "s-1") -> dict[str, Any]:
    body = {"user_id": user, "session_id": session, "message": message, "debug": True}
    answer = await client.post("/api/v1/chat", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def _trajectory(client: httpx.AsyncClient, user: str = "u-1", **query: Any) -> list[dict[str, Any]]:
    answer = await client.get(TONE.format(user=user), params=query)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def _tail(model_server: ModelServer) -> str:
    role, text = model_server.requests[-1].prompt[-2]
    assert role in {"system", "developer"}
    return text


@pytest.mark.parametrize(
    ("said", "heard", "told"),
    [
        (
            ("I'm so worried about my surgery", "What if something goes wrong?", "Thanks, that helped a lot"),
            ("anxiety", "anxiety", "trust"),
            ("sounds anxious", "sounds anxious", "trusts you"),
        ),
        (
            ("How do I reset it?", "That's not what I asked", "This is useless, it still doesn't work!"),
            ("neutral", "frustration", "frustration"),
            ("", "sounds frustrated", "sounds frustrated"),
        ),
        (
            ("I got promoted!!!", "So excited, I can't wait", "Where is the station?"),
            ("excitement", "excitement", "excitement"),
            ("sounds excited", "sounds excited", "sounds excited"),
        ),
        (
            ("明天手术，我好害怕", "万一醒不过来怎么办", "谢谢你，听你这么说我放心多了"),
            ("anxiety", "anxiety", "trust"),
            ("有些焦虑", "有些焦虑", "用户信任你"),
        ),
        (
            ("怎么重置密码", "没用，你没听懂我的问题", "氣死我了，說了三遍了"),
            ("neutral", "frustration", "frustration"),
            ("", "有些不满", "有些不满"),
        ),
        (
            ("我升职了！太开心了", "好激动，迫不及待想告诉大家", "明天几点开会"),
            ("excitement", "excitement", "excitement"),
            ("情绪高涨", "情绪高涨", "情绪高涨"),
        ),
    ],
)
async def test_what_is_heard_is_told_to_the_model_and_kept(
    client: httpx.AsyncClient,
    model_server: ModelServer,
    said: tuple[str, ...],
    heard: tuple[str, ...],
    told: tuple[str, ...],
) -> None:
    for message, expected in zip(said, told, strict=True):
        done = await _say(client, message)
        tail = _tail(model_server)
        tokens = done["context_report"]["tokens"]
        assert expected in tail
        assert ("tone" in tokens) == bool(expected) == (tail.startswith(("The user", "用户")))
        assert tokens.get("tone", 0) <= 104  # with what the message costs by itself
        assert 0 < tokens["time"] <= 64
    items = await _trajectory(client)
    assert tuple(item["dominant"] for item in items) == heard
    assert [item["session_id"] for item in items] == ["s-1"] * 3
    assert all(set(item["scores"]) == set(EMOTIONS) for item in items)
    assert [item["at"] for item in items] == sorted(item["at"] for item in items)


async def test_dissatisfaction_raises_empathy_and_thanks_lower_it(client: httpx.AsyncClient) -> None:
    for message in ("Where is my parcel?", "没用", "That's not what I asked", "Thanks, got it", "Thank you!"):
        await _say(client, message)
    empathy = [item["empathy"] for item in await _trajectory(client)]
    assert empathy == [0.5, 0.75, 1.0, 0.85, 0.7]


async def test_the_trajectory_is_read_page_by_page_and_by_conversation(client: httpx.AsyncClient) -> None:
    for number, session in enumerate(("s-1", "s-2", "s-1")):
        await _say(client, f"Message {number}", session=session)
    every = await _trajectory(client)
    first = (await client.get(TONE.format(user="u-1"), params={"limit": 2})).json()
    rest = (await client.get(TONE.format(user="u-1"), params={"limit": 2, "after": first["next"]})).json()
    assert [*first["items"], *rest["items"]] == every
    assert rest["next"] is None
    assert await _trajectory(client, session_id="s-2") == every[1:2]
    assert await _trajectory(client, session_id="none") == []
    assert (await client.get(TONE.format(user="u-1"), params={"after": "x"})).status_code == 422


@pytest.mark.traced
async def test_users_do_not_see_each_other_and_an_unknown_one_is_not_found(client: httpx.AsyncClient) -> None:
    await _say(client, "I'm so worried")
    await _say(client, "Hello", user="u-2")
    assert [item["dominant"] for item in await _trajectory(client, "u-2")] == ["neutral"]
    assert (await client.get(PERSONA.format(user="u-2"))).json()["mood"] is None
    for path in (TONE, PERSONA):
        assert (await client.get(path.format(user="nobody"))).status_code == 404


async def test_a_turn_that_fails_leaves_no_tone(client: httpx.AsyncClient, model_server: ModelServer) -> None:
    model_server.default = Reply(status=401)
    body = {"user_id": "u-1", "session_id": "s-1", "message": "I'm so worried"}
    await client.post("/api/v1/chat", json=body)
    assert await _trajectory(client) == []


@pytest.mark.parametrize("settings", [{"tone": False, "context_time": False}], indirect=True)
async def test_switched_off_nothing_is_heard_told_or_kept(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    done = await _say(client, "I'm so worried")
    assert set(done["context_report"]["tokens"]) == {"system", "history", "message"}
    assert [role for role, _ in model_server.requests[-1].prompt] == ["system", "user"]
    assert await _trajectory(client) == []
    assert done["degraded"] == []


@pytest.mark.parametrize("settings", [{"tone_llm": True, "memory_filing": False}], indirect=True)
async def test_a_model_s_opinion_comes_behind_the_answer_and_counts_from_the_next_turn(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    done = await _say(client, "The lab has not called.")
    assert len(model_server.requests) == 1
    assert await statuses(services.database, "give_tone_opinion") == ["todo"]
    opinion = '{"anxiety": 1, "excitement": 0, "confusion": 0, "trust": 0, "frustration": 0}'
    model_server.script(Reply([opinion]))
    (item,) = await _trajectory(client)
    await services.tone_opinions.give(DEFAULT_TENANT, item["turn_id"])
    (item,) = await _trajectory(client)
    assert (item["dominant"], item["opinion"]["anxiety"]) == ("neutral", 1.0)
    assert done["turn_id"] == item["turn_id"]
    await _say(client, "I'm a bit nervous")
    scores = (await _trajectory(client))[-1]
    assert scores["scores"]["anxiety"] == pytest.approx(
        (scores["message_scores"]["anxiety"] + 0.25) / 1.5, abs=0.01
    )


async def test_the_persona_card_stays_as_it_was_when_the_epoch_began(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await _say(client, "I'm so worried about the move", session="s-0")
    human = {"name": "Ada", "communication_style": "short answers", "current_intent": "moving to Oslo"}
    put = await client.put("/api/v1/users/u-1/core-memory/human", json={"content": human})
    assert put.status_code == 200
    found = (await client.get(PERSONA.format(user="u-1"))).json()
    assert datetime.fromisoformat(found.pop("last_visit")) <= datetime.now(UTC)
    assert found.pop("card").splitlines() == [
        "<memory>",
        "The user:",
        "- name: Ada",
        "- communication style: short answers",
        "- current intent: moving to Oslo",
        "</memory>",
    ]
    assert found == {
        "expert": "default",
        "name": "Ada",
        "style": "short answers",
        "concerns": "moving to Oslo",
        "visit_count": 1,
        "last_topic": None,
        "mood": "anxiety",
    }
    beginnings = []
    for message in ("Hello", "I'm thrilled!", "Thanks!"):
        done = await _say(client, message)
        beginnings.append(model_server.requests[-1].prompt[0])
        assert done["context_report"]["epoch"] == 1
    assert "name: Ada" in beginnings[0][1]
    assert beginnings[0] == beginnings[1] == beginnings[2]
    assert (await client.get(PERSONA.format(user="u-1"))).json()["mood"] != "anxiety"
    # What is taken out of core memory is in no prompt any more.
    assert (await client.delete("/api/v1/users/u-1/core-memory/human")).status_code == 204
    await _say(client, "And now?")
    assert "Ada" not in str(model_server.requests[-1].prompt)


@pytest.mark.parametrize("settings", [{"memory_persona": False}], indirect=True)
async def test_without_the_card_core_memory_tells_the_name(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await _say(client, "Hello", session="s-0")
    await client.put("/api/v1/users/u-1/core-memory/human", json={"content": {"name": "Ada"}})
    done = await _say(client, "Hello")
    assert "core_memory" in done["context_report"]["tokens"]
    assert "- name: Ada" in model_server.requests[-1].prompt[0][1]
    assert "last talk" not in model_server.requests[-1].prompt[0][1]


async def test_who_was_away_for_days_is_told_apart(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    await _say(client, "Hello", session="s-0")
    assert "上次来" not in _tail(model_server)
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute(
            "UPDATE visits SET started_at = started_at - interval '3 days', "
            "last_active_at = last_active_at - interval '3 days'"
        )
    await _say(client, "早上好")
    assert "用户上次来是3天前。" in _tail(model_server)
    await _say(client, "Hello again")
    assert "ago" not in _tail(model_server)
