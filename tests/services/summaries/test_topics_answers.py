"""What models answer when they are asked for topics: right, wrong, broken off, or not at all."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.jobs.tasks import ARCHIVE
from tests.support.archiving import (
    TWO,
    answer,
    archived,
    archiving_queue,
    thirty_messages,
    topic,
    topic_ids,
)
from tests.support.jobs import defer, has_ended, jobs_of, until
from tests.support.model_server import ModelServer, Reply

pytestmark = [pytest.mark.untraced, pytest.mark.settings(llm_model="large", small_llm_model="small")]

CANARY = "only-in-the-answer"


@pytest.fixture
async def conversation(services: Services) -> UUID:
    """Thirty messages, of which 24 may be archived."""
    return await thirty_messages(services)


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
