"""What is made of a conversation, as it is read: its rolling summary and its topics."""

from datetime import datetime
from typing import Any
from uuid import UUID

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.summaries.store import NewSummary
from services.summaries.topic_store import NewTopic, UnarchivedMessage
from tests.support.turns import exchange

pytestmark = pytest.mark.anyio

Messages = list[dict[str, Any]]


async def _conversation(client: httpx.AsyncClient, services: Services, turns: int) -> tuple[str, Messages]:
    for number in range(turns):
        turn = await exchange(services.turns, f"question {number}", f"answer {number}")
    address = f"/api/v1/conversations/{turn.conversation_id}"
    messages: Messages = (await client.get(f"{address}/messages")).json()["items"]
    return address, messages


async def test_a_conversation_without_a_summary_says_so(client: httpx.AsyncClient, services: Services) -> None:
    address, _ = await _conversation(client, services, 1)
    found = await client.get(f"{address}/summary")
    assert found.status_code == 200
    assert found.json() == {
        "summary": None,
        "summary_version": 0,
        "covered_through": None,
        "covered_message_count": 0,
        "increments_since_full": 0,
        "updated_at": None,
    }
    assert (await client.get(f"{address}/topics")).json() == {"items": [], "next": None}


async def test_a_summary_says_how_far_it_reaches(client: httpx.AsyncClient, services: Services) -> None:
    address, messages = await _conversation(client, services, 3)
    conversation = await _id_of(services)
    for version, last in enumerate((messages[1], messages[3])):
        place = datetime.fromisoformat(last["created_at"]), UUID(last["id"])
        new = NewSummary(f"Of {last['content']}.", version, place, 2 * version + 2, increments=version)
        assert await services.summaries.store.write(DEFAULT_TENANT, conversation, new)
    found = (await client.get(f"{address}/summary")).json()
    assert datetime.fromisoformat(found.pop("updated_at")) >= datetime.fromisoformat(messages[5]["created_at"])
    assert found == {
        "summary": "Of answer 1.",
        "summary_version": 2,
        "covered_through": {"message_id": messages[3]["id"], "created_at": messages[3]["created_at"]},
        "covered_message_count": 4,
        "increments_since_full": 1,
    }


async def test_topics_are_paged_oldest_first_without_gaps(client: httpx.AsyncClient, services: Services) -> None:
    address, messages = await _conversation(client, services, 5)
    conversation = await _id_of(services)
    unarchived = await services.topics.store.unarchived(DEFAULT_TENANT, conversation)
    assert unarchived
    for number in (1, 0, 2, 4, 3):
        two = unarchived.messages[2 * number : 2 * number + 2]
        assert await services.topics.store.archive(DEFAULT_TENANT, conversation, [_topic(number, two)]) == 1

    seen: list[dict[str, Any]] = []
    after: str | None = ""
    while after is not None:
        parameters = {"limit": 2} | ({"after": after} if after else {})
        page = (await client.get(f"{address}/topics", params=parameters)).json()
        seen += page["items"]
        after = page["next"]
    assert [topic["title"] for topic in seen] == [f"Topic {number}" for number in range(5)]
    assert seen[1] | {"id": "", "created_at": ""} == {
        "id": "",
        "title": "Topic 1",
        "summary": "About 1.",
        "keywords": ["第一", "1"],
        "message_count": 2,
        "first_message_id": messages[2]["id"],
        "last_message_id": messages[3]["id"],
        "first_message_at": messages[2]["created_at"],
        "last_message_at": messages[3]["created_at"],
        "created_at": "",
    }


async def _id_of(services: Services) -> UUID:
    [conversation] = await services.transcript.conversations(DEFAULT_TENANT, limit=1)
    return conversation.id


def _topic(number: int, messages: list[UnarchivedMessage]) -> NewTopic:
    return NewTopic(f"Topic {number}", f"About {number}.", ["第一", str(number)], messages)
