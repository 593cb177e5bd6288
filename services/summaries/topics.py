"""Topics: stretches of a conversation that leave the prompt and are represented there by a title and a summary."""

import asyncio
from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

import structlog
from pydantic import BaseModel, Field, StringConstraints

from services.errors import AnamnesisError, BadModelOutput
from services.jobs.queue import JobQueue
from services.jobs.tasks import ARCHIVE, RunningJob
from services.llm.chat_models import ChatModels
from services.llm.structured_output import ask_for, json_answer
from services.platform.authorship import authoring
from services.platform.metrics import TOPICS
from services.summaries import prompts
from services.summaries.prompts import Said
from services.summaries.schedule import again_if_retracted
from services.summaries.topic_store import NewTopic, TopicStore, Unarchived
from services.summaries.writer import Text, extract, title_from
from services.text.language import Language, language_of

log = structlog.get_logger(__name__)

_SHORTEST_TOPIC = 10
"""Minimum length of a topic in messages."""
_IN_TIME_S = 20.0
"""Seconds that an answer waits for archiving."""
_LONGEST_SUMMARY_TOKENS = 200


class _Topic(BaseModel):
    title: Annotated[Text, StringConstraints(max_length=100)]
    summary: Annotated[Text, StringConstraints(max_length=1000)]
    start: int
    end: int
    keywords: list[Text] = Field(default_factory=list, max_length=20)


class _Answer(BaseModel):
    topics: list[_Topic]


class TopicArchive:
    """Archives topics. Every process with a worker has one: it registers the job."""

    def __init__(
        self, store: TopicStore, models: ChatModels, jobs: JobQueue, *, on: bool = True, keep_newest: int = 6
    ) -> None:
        """Take the services that it uses.

        Args:
            on: Whether anything is archived.
            keep_newest: Number of the newest messages that are never archived.
        """
        self.store = store
        self._models = models
        self._on = on
        self._keep_newest = keep_newest
        jobs.task(ARCHIVE)(self._job)

    async def archive_in_time(self, tenant_id: UUID, conversation_id: UUID) -> bool:
        """Archive before an answer; return whether it worked. A failure is logged, not raised."""
        try:
            async with asyncio.timeout(_IN_TIME_S):
                await self.archive(tenant_id, conversation_id)
        except AnamnesisError as error:
            reason = error.message
        except TimeoutError:
            reason = f"not within {_IN_TIME_S:g} s"
        else:
            return True
        log.warning("no topics archived", conversation_id=str(conversation_id), reason=reason)
        return False

    @again_if_retracted
    async def archive(self, tenant_id: UUID, conversation_id: UUID) -> int:
        """Find topics in the messages that are in none, and archive them; return how many.

        Raises:
            ModelFailed: The model did not answer; nothing was archived.
            BadModelOutput: The model's answer was wrong, twice; nothing was archived.
            Conflict: Something in the conversation was retracted again and again meanwhile.
        """
        found = await self.store.unarchived(tenant_id, conversation_id)
        if found is None or not self._on or found.strategy != "topics":
            return 0
        messages = found.messages[: -self._keep_newest] if self._keep_newest else found.messages
        if len(messages) < max(_SHORTEST_TOPIC, found.min_archive_messages - self._keep_newest):
            return 0
        with authoring():
            answer = await self._ask(found, [(m.role, m.told) for m in messages])
            new = [
                NewTopic(topic.title, topic.summary, topic.keywords, messages[topic.start - 1 : topic.end])
                for topic in answer.topics
            ]
            archived = await self.store.archive(tenant_id, conversation_id, new, retracted_at=found.retracted_at)
        TOPICS.labels("archived").inc(archived)
        log.info("topics archived", conversation_id=str(conversation_id), topics=archived)
        return archived

    async def _ask(self, found: Unarchived, said: Sequence[Said]) -> _Answer:
        language = language_of(text for _, text in said)
        if self._models.offline:
            return _Answer(topics=[_by_rule(said, language)])
        asked = prompts.topics(said, language, least=_SHORTEST_TOPIC)
        return await ask_for(
            self._models, asked, lambda text: _checked(text, len(said)), schema=_Answer, purpose="topics"
        )

    async def _job(self, job: RunningJob, *, conversation_id: UUID) -> None:
        try:
            # After an import, unarchived messages can fill many prompts.
            while await self.archive(job.tenant_id, conversation_id):
                if not await self.store.is_full(job.tenant_id, conversation_id):
                    break
        except BadModelOutput as error:
            log.warning("topics given up", conversation_id=str(conversation_id), reason=error.message)
            TOPICS.labels("given_up").inc()


def _checked(text: str, messages: int) -> _Answer:
    """Return a model's answer after checking that its topics can be archived. Raises `BadModelOutput` if it is
    no JSON, or a range is out of bounds, too short, or overlaps the one before."""
    answer = json_answer(_Answer, text)
    topics = answer.topics
    if not topics:
        raise BadModelOutput("no topics")
    end = 0
    for number, topic in enumerate(topics, 1):
        if not 1 <= topic.start <= topic.end <= messages:
            raise BadModelOutput(f"topic {number} is out of bounds: {topic.start} to {topic.end} of {messages}")
        if topic.start <= end:
            raise BadModelOutput(f"topic {number} overlaps the one before it, or stands before it")
        if topic.end - topic.start + 1 < _SHORTEST_TOPIC:
            raise BadModelOutput(f"topic {number} has fewer than {_SHORTEST_TOPIC} messages")
        end = topic.end
    return answer


def _by_rule(said: Sequence[Said], language: Language) -> _Topic:
    """Return one topic with all messages, for use without a model."""
    summary = extract("", said, language, _LONGEST_SUMMARY_TOKENS) or title_from(said)
    return _Topic(title=title_from(said), summary=summary[:1000], start=1, end=len(said))
