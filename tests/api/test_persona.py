"""A user in brief over HTTP, and in the beginning of a prompt."""

from functools import partial

import httpx
import pytest

from tests.support.model_server import ModelServer
from tests.support.talking import say

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]

_say = partial(say, debug=True)

PERSONA = "/api/v1/users/{user}/persona"


@pytest.mark.traced
async def test_an_unknown_user_is_not_found(client: httpx.AsyncClient) -> None:
    assert (await client.get(PERSONA.format(user="nobody"))).status_code == 404


@pytest.mark.settings(memory_persona=False)
async def test_without_the_card_core_memory_tells_the_name(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await _say(client, "Hello", session="s-0")
    await client.put("/api/v1/users/u-1/core-memory/human", json={"content": {"name": "Ada"}})
    done = await _say(client, "Hello")
    assert "core_memory" in done["context_report"]["tokens"]
    assert "- name: Ada" in model_server.requests[-1].prompt[0][1]
    assert "last talk" not in model_server.requests[-1].prompt[0][1]
