"""Memory is asked what it knows of a user, over HTTP."""

import json
from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from services.conversations.turn import OpenTurn
from services.memory.blocks import Owner
from services.memory.operations import Trigger
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.turns import exchange

pytestmark = [pytest.mark.anyio, pytest.mark.indexed]

ASK = "/api/v1/users/u-1/memory/ask"


async def _ask(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await client.post(ASK, json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def _tell(services: Services, said: str, **known: Any) -> OpenTurn:
    """Say something, which the agent files in core memory."""
    turn = await exchange(services.turns, said, "OK", session_key=f"s-{len(said)}")
    owner = Owner(turn.tenant_id, turn.user_id, turn.expert_id)
    trigger = Trigger("filing", turn.user_message_id, turn.conversation_id, turn.turn_id)
    if known:
        await services.memory.core.update(owner, "human", known, trigger)
    return turn


@pytest.mark.settings(llm_model=None, llm_base_url=None, llm_api_key=None)
class TestByRecords:
    """Without a language model."""

    async def test_everything_is_listed_with_its_origin(
        self, client: httpx.AsyncClient, services: Services
    ) -> None:
        cat = await _tell(services, "I'm allergic to cats.", allergies=["cats"])
        await _tell(services, "And to peanuts.", allergies=["peanuts"], city="Kiel")
        written = await client.post("/api/v1/users/u-1/episodes", json={"content": "rows on Sundays"})
        found = await _ask(client)
        for question in ("What do you know about me?", "你知道我什么？", "你都記得我什麼"):
            assert (await _ask(client, question=question))["statements"] == found["statements"], question
        statements = {each["text"]: each["sources"] for each in found["statements"]}
        assert set(statements) == {"allergies: cats", "allergies: peanuts", "city: Kiel", "rows on Sundays"}
        [source] = statements["allergies: cats"]
        assert (source["kind"], source["section"], source["field"]) == ("core_memory", "human", "allergies")
        [message] = source["messages"]
        assert (message["message_id"], message["content"]) == (str(cat.user_message_id), "I'm allergic to cats.")
        assert statements["rows on Sundays"][0]["episode_id"] == written.json()["id"]
        assert (found["answered_by"], found["degraded"]) == ("records", [])

    async def test_a_question_is_answered_from_what_bears_on_it(
        self, client: httpx.AsyncClient, services: Services
    ) -> None:
        turn = await _tell(services, "My dog is called Bruno.")
        await _tell(services, "My sister lives in Kiel.", family=["sister lives in Kiel"], dog="Bruno")
        found = await _ask(client, question="What is my dog called?")
        assert found["statements"][0]["text"] == "dog: Bruno"
        said = [each for each in found["statements"] if "user: My dog is called Bruno." in each["text"]]
        first = said[0]["sources"][0]["messages"][0]
        assert first["message_id"] == str(turn.user_message_id)
        assert "Kiel" not in found["answer"]


async def test_a_model_words_the_answer_and_names_its_records(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    turn = await _tell(services, "我对花生过敏，住在杭州。", allergies=["花生"], city="杭州")
    asked: list[str] = []

    def answer(received: Received) -> Reply:
        asked.append(received.prompt[-1][1])
        numbers = [n for n, line in enumerate(asked[-1].splitlines()) if "花生" in line and line.startswith("[")]
        statements = [
            {"text": "你对花生过敏。", "records": numbers},
            {"text": "你喜欢爬山。", "records": [99]},
            {"text": "没有来源。", "records": []},
        ]
        return Reply([json.dumps({"statements": statements}, ensure_ascii=False)])

    model_server.default = answer
    found = await _ask(client, question="我对什么过敏？")
    assert "我对什么过敏？" in asked[0]
    [statement] = found["statements"]
    assert (statement["text"], found["answer"], found["answered_by"]) == (
        "你对花生过敏。",
        "你对花生过敏。",
        "model",
    )
    core = next(source for source in statement["sources"] if source["kind"] == "core_memory")
    assert [message["message_id"] for message in core["messages"]] == [str(turn.user_message_id)]


@pytest.mark.parametrize("reply", [Reply(["I'd rather not."]), Reply(status=500)])
async def test_records_answer_where_the_model_does_not(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer, reply: Reply
) -> None:
    await _tell(services, "I live in Kiel.", city="Kiel")
    model_server.default = lambda _: reply
    found = await _ask(client)
    assert ([each["text"] for each in found["statements"]], found["answered_by"]) == (["city: Kiel"], "records")
    assert found["degraded"] == ["model"]
