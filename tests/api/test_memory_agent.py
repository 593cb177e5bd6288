"""What was said in one conversation is filed in the background, and known in the next: over HTTP."""

import json
import re
from typing import Any
from uuid import UUID

import httpx
import pytest
from services.memory.agent.triggers import REMEMBER

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.platform.settings import Settings, load_settings
from tests.support.archiving import with_small_model
from tests.support.jobs import has_ended, statuses, until
from tests.support.model_server import ModelServer, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]

USER = "/api/v1/users/u-1"


@pytest.fixture
def settings(request: pytest.FixtureRequest, model_server: ModelServer) -> Settings:
    """Settings with a small model, without any, or with the agent switched off."""
    kind = getattr(request, "param", "")
    if kind == "offline":
        return load_settings()
    return with_small_model(model_server).model_copy(update={"memory_agent": kind != "off"})


async def _say(client: httpx.AsyncClient, message: str, session: str) -> dict[str, Any]:
    body = {"user_id": "u-1", "session_id": session, "message": message}
    answer = await client.post("/api/v1/chat", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def _filed(services: Services, jobs: int) -> None:
    """Wait until the agent has looked at this many turns; again at one of which a part was corrected since."""

    async def done() -> bool:
        found = await statuses(services.database, REMEMBER)
        return len(found) >= jobs and set(found) == {"succeeded"}

    await until(done)


def _patch(**human: Any) -> Reply:
    operation = {"operation": "update", "memory": "core", "section": "human", "patch": human}
    return Reply([json.dumps({"operations": [operation]}, ensure_ascii=False)])


def _prompt(model_server: ModelServer) -> str:
    """All of the last prompt of a turn."""
    turns = [request for request in model_server.requests if request.body["model"] == "large"]
    return "\n".join(text for _, text in turns[-1].prompt)


async def _core(client: httpx.AsyncClient) -> dict[str, Any]:
    items = (await client.get(f"{USER}/core-memory")).json()["items"]
    return {item["section"]: item["content"] for item in items}


async def _change_of_taste(client: httpx.AsyncClient, services: Services) -> None:
    services.jobs.start_worker()
    await _say(client, "我喜欢看恐怖片", "s-1")
    await _filed(services, 1)
    await _say(client, "我现在不喜欢恐怖片了，喜欢喜剧", "s-2")
    await _filed(services, 2)


async def _move(client: httpx.AsyncClient, services: Services) -> None:
    services.jobs.start_worker()
    await _say(client, "I live in Berlin and I like rye bread.", "s-1")
    await _filed(services, 1)
    await _say(client, "By the way, I moved from Berlin to Lisbon last month.", "s-2")
    await _filed(services, 3)


async def test_a_change_of_taste_replaces_the_old_one_in_chinese(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    model_server.script(
        _patch(preferences=["喜欢看恐怖片"]), _patch(preferences=["不喜欢恐怖片", "喜欢喜剧"]), model="small"
    )
    await _change_of_taste(client, services)
    assert await _core(client) == {"human": {"preferences": ["不喜欢恐怖片", "喜欢喜剧"]}}

    await _say(client, "推荐一部电影", "s-3")
    prompt = _prompt(model_server)
    assert "不喜欢恐怖片" in prompt
    assert "喜欢喜剧" in prompt
    assert "喜欢看恐怖片" not in prompt
    assert "喜欢恐怖片" not in prompt.replace("不喜欢恐怖片", "")


async def test_a_move_replaces_the_old_home_in_english(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    model_server.script(
        _patch(home="lives in Berlin", preferences=["likes rye bread"]),
        _patch(home="lives in Lisbon"),
        model="small",
    )
    await _move(client, services)
    assert await _core(client) == {"human": {"home": "lives in Lisbon", "preferences": ["likes rye bread"]}}

    for question in ("Where do I live now?", "Where should I eat tonight in my city?", "Is Berlin far?"):
        await _say(client, question, f"about-{len(question)}")
        prompt = _prompt(model_server)
        assert "lives in Lisbon" in prompt
        assert "live in Berlin" not in prompt
        assert "lives in Berlin" not in prompt


@pytest.mark.parametrize("settings", ["offline"], indirect=True)
async def test_without_a_model_rules_file_the_obvious(client: httpx.AsyncClient, services: Services) -> None:
    await _change_of_taste(client, services)
    assert await _core(client) == {"human": {"preferences": ["不喜欢恐怖片", "喜欢喜剧"]}}
    await _say(client, "I moved from Berlin to Lisbon.", "s-3")
    await _say(client, "我决定明年学法语", "s-3")
    await _filed(services, 4)
    assert (await _core(client))["human"]["home"] == "lives in Lisbon"
    operations = (await client.get(f"{USER}/memory-operations")).json()["items"]
    assert [operation["type"] for operation in operations[:2]] == ["episode_insert", "memory_agent"]
    assert re.fullmatch(r"用户决定\d{4}年学法语。", operations[0]["new_value"]["content"])
    assert operations[0]["trigger"]["actor"] == "memory_agent"
    assert "Lisbon" in (await _say(client, "Where do I live?", "s-4"))["answer"]


async def test_ordinary_turns_cause_no_job_and_no_call(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    services.jobs.start_worker()
    for message in ("Hello!", "What is the capital of France?", "推荐一部电影", "谢谢"):
        await _say(client, message, "s-1")
    assert await statuses(services.database, REMEMBER) == []
    assert {request.body["model"] for request in model_server.requests} == {"large"}


@pytest.mark.parametrize("settings", ["off"], indirect=True)
async def test_switched_off_it_files_nothing(client: httpx.AsyncClient, services: Services) -> None:
    done = await _say(client, "I live in Berlin.", "s-1")
    assert await statuses(services.database, REMEMBER) == []
    assert await services.memory_agent.remember(DEFAULT_TENANT, UUID(done["turn_id"])) == 0
    assert await _core(client) == {}


async def test_a_model_that_is_away_leaves_it_to_the_rules(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    services.jobs.start_worker()
    model_server.script(Reply(status=500), model="small")
    await _say(client, "I live in Berlin.", "s-1")
    await until(lambda: has_ended(services.database, REMEMBER, "succeeded"))
    assert await _core(client) == {"human": {"home": "lives in Berlin"}}
