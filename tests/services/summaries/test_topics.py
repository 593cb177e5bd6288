"""Archiving topics: what is stored, and what is left alone."""

import asyncio
import threading
from uuid import UUID

import pytest

from services.bootstrap import Services
from services.errors import BadModelOutput
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.llm.chat_models import ChatModels
from services.platform.settings import load_settings
from services.summaries.topic_store import TopicStore
from services.summaries.topics import TopicArchive
from tests.support.archiving import (
    TWO,
    answer,
    archived,
    thirty_messages,
    topic,
    topic_ids,
)
from tests.support.model_server import ModelServer, Reply
from tests.support.talks import new_expert, talk
from tests.support.turns import messages_of

pytestmark = [pytest.mark.untraced, pytest.mark.settings(llm_model="large", small_llm_model="small")]


@pytest.fixture
async def conversation(services: Services) -> UUID:
    """Thirty messages, of which 24 may be archived."""
    return await thirty_messages(services)


async def test_two_topics_are_archived_and_what_is_behind_them_stays(
    services: Services, conversation: UUID, model_server: ModelServer
) -> None:
    model_server.script(Reply([TWO]))

    assert await services.topics.archive(DEFAULT_TENANT, conversation) == 2

    messages = await messages_of(services, conversation)
    trains, other = await archived(services, conversation)
    assert (trains.title, trains.summary, trains.keywords) == ("Trains", "Said.", ["trains", "时刻"])
    assert (trains.message_count, other.message_count) == (12, 10)
    assert (trains.first_message_id, trains.first_message_at) == (messages[0].id, messages[0].created_at)
    assert (trains.last_message_id, trains.last_message_at) == (messages[11].id, messages[11].created_at)
    assert (other.title, other.keywords) == ("From 13 to 22", [])
    assert (other.first_message_id, other.last_message_id) == (messages[12].id, messages[21].id)
    assert await topic_ids(services, conversation) == [trains.id] * 12 + [other.id] * 10 + [None] * 8
    left = await services.topics.store.unarchived(DEFAULT_TENANT, conversation)
    assert left
    assert [message.id for message in left.messages] == [message.id for message in messages[22:]]

    before = await archived(services, conversation), await topic_ids(services, conversation)
    assert await services.topics.archive(DEFAULT_TENANT, conversation) == 0
    assert before == (await archived(services, conversation), await topic_ids(services, conversation))
    assert len(model_server.requests) == 1


async def test_two_archivings_at_once_archive_once(
    services: Services, conversation: UUID, model_server: ModelServer
) -> None:
    both_asked = threading.Event()
    model_server.default = Reply([TWO[:20], TWO[20:]], held=both_asked)
    archivings = [asyncio.create_task(services.topics.archive(DEFAULT_TENANT, conversation)) for _ in range(2)]
    await model_server.asked(times=2)
    both_asked.set()
    both = await asyncio.gather(*archivings)
    assert len(model_server.requests) == 2
    assert sorted(both) == [0, 2]
    found = await archived(services, conversation)
    assert [each.message_count for each in found] == [12, 10]
    assert set(await topic_ids(services, conversation)) == {each.id for each in found} | {None}


async def test_the_newest_six_messages_are_never_archived(services: Services, model_server: ModelServer) -> None:
    await services.experts.create(DEFAULT_TENANT, new_expert("archivist", context_strategy="topics"))
    short = await talk(services.turns, "short", 7, expert="archivist")
    assert await services.topics.archive(DEFAULT_TENANT, short) == 0
    assert model_server.requests == []
    long = await talk(services.turns, "long", 8, expert="archivist")
    model_server.script(Reply([answer(topic(1, 16))]), Reply([answer(topic(1, 11))]))
    with pytest.raises(BadModelOutput, match="1 to 11 of 10"):
        await services.topics.archive(DEFAULT_TENANT, long)
    model_server.script(Reply([answer(topic(1, 10))]))
    assert await services.topics.archive(DEFAULT_TENANT, long) == 1
    assert [each is None for each in await topic_ids(services, long)] == [False] * 10 + [True] * 6


async def test_without_a_model_all_of_it_becomes_one_topic(
    services: Services, conversation: UUID, model_server: ModelServer
) -> None:
    offline = TopicArchive(TopicStore(services.database), ChatModels(load_settings()), JobQueue(services.database))
    assert await offline.archive(DEFAULT_TENANT, conversation) == 1
    [found] = await archived(services, conversation)
    assert found.title == "In s-1 I say 1."
    assert found.summary.startswith("In s-1 I say 1. In s-1 I say 2.")
    assert found.message_count == 24
    assert (await topic_ids(services, conversation))[24:] == [None] * 6
    assert model_server.requests == []
