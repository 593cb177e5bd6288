"""What users ask memory to do, over HTTP: done with the turn, told in its answer, and undone again."""

from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.operations import Trigger
from tests.support.core_memory import know
from tests.support.model_server import ModelServer, Reply
from tests.support.talking import say

USER = "/api/v1/users/u-1"


async def _found(client: httpx.AsyncClient, query: str) -> str:
    answer = await client.post(f"{USER}/episodes/search", json={"query": query})
    return " ".join(item["content"] for item in answer.json()["items"])


async def _undo(client: httpx.AsyncClient, operation_id: str) -> httpx.Response:
    return await client.post(f"{USER}/memory-operations/{operation_id}/undo")


def _prompt(model_server: ModelServer) -> str:
    return "\n".join(text for _, text in model_server.requests[-1].prompt[:-1])


async def _knows_no_tools(client: httpx.AsyncClient, model_server: ModelServer) -> None:
    """Let the service find out that its model takes no tools."""
    model_server.script(Reply(status=400, error_message="gemma2 does not support tools"), Reply(["Hello."]))
    await say(client, "Hello.", "greeting")


async def _core(services: Services, **content: Any) -> None:
    owner = await services.memory.core.owner(DEFAULT_TENANT, "u-1", "default")
    await know(services, owner, "human", content, Trigger("user"))


async def test_what_is_forgotten_is_gone_from_memory_and_comes_back_when_that_is_undone(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    await say(client, "I have asthma. I live in Porto.", "s-1")
    await _core(services, health=["asthma", "bad knee"], home="Porto")
    answer = await say(client, "Please forget that I have asthma.", "s-2")
    (change,) = answer["memory_changes"]
    assert change["kind"] == "forget"
    assert change["items"] == ["I have asthma"]
    assert "asthma" not in (await _found(client, "asthma")).casefold()
    assert "Porto" in await _found(client, "Porto")
    core = (await client.get(f"{USER}/core-memory")).json()["items"][0]["content"]
    assert core == {"health": ["bad knee"], "home": "Porto"}
    await say(client, "What do you know about my health?", "s-3")
    assert "asthma" not in _prompt(model_server)

    assert (await _undo(client, change["operation_id"])).json()["already"] is False
    assert "asthma" in await _found(client, "asthma")
    core = (await client.get(f"{USER}/core-memory")).json()["items"][0]["content"]
    assert sorted(core["health"]) == ["asthma", "bad knee"]
    assert (await _undo(client, change["operation_id"])).json()["already"] is True


@pytest.mark.parametrize("takes_tools", [True, False])
async def test_what_a_plain_form_removes_is_in_no_later_prompt(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer, takes_tools: bool
) -> None:
    """A model with tools may act itself, so that the form is carried out behind its answer; any other is told."""
    if not takes_tools:
        await _knows_no_tools(client, model_server)
    await say(client, "我得过肺炎，现在好了。", "s-1")
    await _core(services, health=["得过肺炎", "对花生过敏"])
    (change,) = (await say(client, "请忘掉我得过肺炎这件事。", "s-1"))["memory_changes"]
    assert change["summary"].startswith("已从记忆中删除：")
    shown = [text for _, text in model_server.requests[-1].prompt[:-1]]
    assert ("<memory_changes>" in "\n".join(shown)) is not takes_tools
    if not takes_tools:
        beginning = "\n".join(shown[:-1]) if len(shown) > 1 else shown[0]
        assert "花生" in beginning
        assert "得过肺炎" not in beginning.split("<memory_changes>")[0]
    await say(client, "今天天气不错。", "s-1")
    assert "肺炎" not in _prompt(model_server)
    assert "花生" in _prompt(model_server)


async def test_a_standing_wish_and_a_fact_are_kept_and_can_be_taken_back(client: httpx.AsyncClient) -> None:
    wish = await say(client, "以后用法语回答我。", "s-1")
    fact = await say(client, "记住：备用钥匙在花盆底下。", "s-1")
    core = (await client.get(f"{USER}/core-memory")).json()["items"][0]["content"]
    assert core["wishes"] == ["以后用法语回答我"]
    assert core["facts"] == ["备用钥匙在花盆底下"]
    for answer in (wish, fact):
        assert (await _undo(client, answer["memory_changes"][0]["operation_id"])).status_code == 200
    assert (await client.get(f"{USER}/core-memory")).json()["items"][0]["content"] == {}


async def test_later_changes_of_a_message_are_undone_first(client: httpx.AsyncClient) -> None:
    await say(client, "I have asthma. I play the tuba. I live in Porto.", "s-1")
    first = await say(client, "Forget that I have asthma.", "s-2")
    second = await say(client, "Forget that I play the tuba.", "s-2")
    earlier, later = (each["memory_changes"][0]["operation_id"] for each in (first, second))
    refused = await _undo(client, earlier)
    assert refused.status_code == 409
    assert later in refused.json()["detail"]
    assert (await _undo(client, later)).status_code == 200
    assert (await _undo(client, earlier)).status_code == 200
    assert "tuba" in await _found(client, "asthma tuba Porto")


async def test_what_cannot_be_undone_says_why(client: httpx.AsyncClient, services: Services) -> None:
    await say(client, "Hello.", "s-1")
    await _core(services, home="Porto")
    await client.delete(f"{USER}/core-memory/human")
    operations = (await client.get(f"{USER}/memory-operations")).json()["items"]
    deleted = next(each for each in operations if each["type"] == "core_memory_delete")
    refused = await _undo(client, deleted["id"])
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert "not kept" in refused.json()["detail"]
    missing = await _undo(client, "00000000-0000-7000-8000-000000000009")
    assert missing.status_code == 404
