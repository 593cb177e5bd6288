"""What is made of a conversation, as it is read: its topics."""

from typing import Any
from uuid import UUID

import httpx

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.summaries.prompts import SaidMessage
from services.summaries.topic_store import NewTopic
from tests.support.turns import exchange

Messages = list[dict[str, Any]]


async def _conversation(client: httpx.AsyncClient, services: Services, turns: int) -> tuple[str, Messages]:
    for number in range(turns):
        turn = await exchange(services.turns, f"question {number}", f"answer {number}")
    address = f"/api/v1/conversations/{turn.conversation_id}"
    messages: Messages = (await client.get(f"{address}/messages")).json()["items"]
    return address, messages


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


def _topic(number: int, messages: list[SaidMessage]) -> NewTopic:
    return NewTopic(f"Topic {number}", f"About {number}.", ["第一", str(number)], messages)
