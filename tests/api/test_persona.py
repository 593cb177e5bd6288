"""A user in brief over HTTP, and in the beginning of a prompt."""

from datetime import UTC, datetime
from functools import partial

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.platform.settings import Settings, load_settings
from tests.support.model_server import ModelServer
from tests.support.talking import say

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]

_say = partial(say, debug=True)

PERSONA = "/api/v1/users/{user}/persona"


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


def _tail(model_server: ModelServer) -> str:
    role, text = model_server.requests[-1].prompt[-2]
    assert role in {"system", "developer"}
    return text


@pytest.mark.traced
async def test_an_unknown_user_is_not_found(client: httpx.AsyncClient) -> None:
    assert (await client.get(PERSONA.format(user="nobody"))).status_code == 404


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
    }
    beginnings = []
    for message in ("Hello", "I'm thrilled!", "Thanks!"):
        done = await _say(client, message)
        beginnings.append(model_server.requests[-1].prompt[0])
        assert done["context_report"]["epoch"] == 1
    assert "name: Ada" in beginnings[0][1]
    assert beginnings[0] == beginnings[1] == beginnings[2]
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
