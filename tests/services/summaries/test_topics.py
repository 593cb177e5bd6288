"""Archiving topics: what is stored, what is left alone, and what models answer when they are asked for them."""

import asyncio
import threading
from collections.abc import AsyncIterator
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from services.bootstrap import Services
from services.errors import BadModelOutput
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.jobs.tasks import ARCHIVE
from services.llm.chat_models import ChatModels
from services.platform.settings import load_settings
from services.summaries.topic_store import TopicStore
from services.summaries.topics import TopicArchive
from tests.support.archiving import TWO, answer, archived, archiving_queue, thirty_messages, topic, topic_ids
from tests.support.jobs import defer, has_ended, jobs_of, until
from tests.support.model_server import ModelServer, Reply
from tests.support.talks import new_expert, talk
from tests.support.turns import messages_of

pytestmark = [pytest.mark.untraced, pytest.mark.settings(llm_model="large", small_llm_model="small")]

CANARY = "only-in-the-answer"


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


@pytest.fixture
async def jobs(services: Services) -> AsyncIterator[JobQueue]:
    """A queue in a hurry that archives."""
    async with archiving_queue(services) as opened:
        yield opened


GOOD_BUT_WRAPPED = {
    "a fence": f"```json\n{TWO}\n```",
    "prose": f"Here are the topics:\n\n{TWO}\n\nIs there anything else?",
    "numbers as text": answer(topic(1, 12) | {"start": "1"}, topic(13, 22)),
}


@pytest.mark.parametrize("text", GOOD_BUT_WRAPPED.values(), ids=GOOD_BUT_WRAPPED.keys())
async def test_what_stands_around_the_answer_does_not_matter(
    services: Services, conversation: UUID, model_server: ModelServer, text: str
) -> None:
    model_server.script(Reply([text]))
    assert await services.topics.archive(DEFAULT_TENANT, conversation) == 2
    assert len(model_server.requests) == 1


BAD: dict[str, tuple[str, str]] = {
    "prose": ("I found two topics.", "no JSON object"),
    "half an object": (TWO[:-30], "topics is wrong: missing"),
    "deep": ('{"topics": ' + "[" * 5000 + "}", "no JSON object"),
    "half a character": ('{"topics": [{"title": "\\ud83d"}]}', "topics.0.title is wrong"),
    "another object": ('{"answer": 1}', "topics is wrong: missing"),
    "no topics": (answer(), "no topics"),
    "an empty title": (answer(topic(1, 12, title="  ")), "topics.0.title is wrong: string_too_short"),
    "a long summary": (answer(topic(1, 12, summary="x" * 1001)), "topics.0.summary is wrong: "),
    "a NUL": (answer(topic(1, 12, title="a\x00b")), "topics.0.title is wrong: value_error"),
    "no number": (answer(topic(1, 12) | {"end": "last"}), "topics.0.end is wrong: int_parsing"),
    "a huge number": (TWO.replace("22", "9" * 5000), "topics is wrong: missing"),
    "beyond the end": (answer(topic(1, 12), topic(13, 25)), "topic 2 is out of bounds: 13 to 25 of 24"),
    "overlapping": (answer(topic(1, 12), topic(12, 22)), "topic 2 overlaps"),
    "nine messages": (answer(topic(1, 12), topic(13, 21)), "topic 2 has fewer than 10 messages"),
}


async def test_a_wrong_answer_archives_nothing_and_is_not_quoted(
    services: Services, conversation: UUID, model_server: ModelServer
) -> None:
    for name, (text, reason) in BAD.items():
        model_server.default = Reply([f"{CANARY}: {text}"])
        model_server.requests.clear()
        with capture_logs() as logs:
            assert not await services.topics.archive_in_time(DEFAULT_TENANT, conversation)
        assert [str(line["reason"])[: len(reason)] for line in logs if line["event"] == "no topics archived"] == [
            reason
        ], name
        assert CANARY not in str(logs)
        assert len(model_server.requests) == 2, name
    assert await archived(services, conversation) == []
    assert set(await topic_ids(services, conversation)) == {None}


async def test_before_an_answer_a_failure_is_logged_and_not_raised(
    services: Services, conversation: UUID, model_server: ModelServer
) -> None:
    model_server.script(Reply(["Sure!"]), Reply(["Sure!"]), Reply(status=500), Reply([TWO]))
    with capture_logs() as logs:
        outcomes = [await services.topics.archive_in_time(DEFAULT_TENANT, conversation) for _ in range(3)]
    assert outcomes == [False, False, True]
    assert [line["reason"] for line in logs if line["event"] == "no topics archived"] == [
        "no JSON object",
        "The language model's server failed.",
    ]


@pytest.mark.traced
async def test_a_model_that_is_away_fails_the_job_which_is_tried_again(
    services: Services, conversation: UUID, jobs: JobQueue, model_server: ModelServer
) -> None:
    model_server.script(Reply(silent=True, ending="abort"), Reply(status=500), Reply([TWO]))
    await defer(services.database, jobs, ARCHIVE, conversation_id=conversation)
    jobs.start_worker()
    await until(lambda: has_ended(services.database, ARCHIVE, "succeeded"))
    [job] = await jobs_of(jobs, DEFAULT_TENANT, ARCHIVE)
    assert (job.failures, job.reason) == (2, "ModelFailed: The language model failed.")
    assert len(model_server.requests) == 3
    assert len(await archived(services, conversation)) == 2
