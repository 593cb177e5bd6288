"""Conversations whose topics are archived, and answers of a model about them."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.summaries.topic_store import StoredTopic
from services.summaries.topics import TopicArchive
from tests.support.jobs import hurried_queue
from tests.support.talks import new_expert, talk


async def thirty_messages(services: Services) -> UUID:
    """Make a conversation of thirty messages, of which 24 may be archived."""
    await services.experts.create(DEFAULT_TENANT, new_expert("archivist", context_strategy="topics"))
    return await talk(services.turns, "s-1", 15, expert="archivist")


@asynccontextmanager
async def archiving_queue(services: Services) -> AsyncIterator[JobQueue]:
    """Run a queue with short pauses that archives."""
    async with hurried_queue(services.database) as jobs:
        TopicArchive(services.topics.store, services.models, jobs)
        yield jobs


def topic(start: int, end: int, **values: Any) -> dict[str, Any]:
    """One topic of a model's answer."""
    return {"title": f"From {start} to {end}", "summary": "Said.", "start": start, "end": end, **values}


def answer(*topics: dict[str, Any], **more: Any) -> str:
    """A model's answer."""
    return json.dumps({"topics": list(topics), "user_information": {}, **more}, ensure_ascii=False)


TWO = answer(topic(1, 12, title=" Trains ", keywords=["trains", "时刻"]), topic(13, 22))
"""A correct answer to `thirty_messages`."""


async def archived(services: Services, conversation: UUID, tenant_id: UUID = DEFAULT_TENANT) -> list[StoredTopic]:
    return await services.topics.store.topics(tenant_id, conversation, limit=100)


async def topic_ids(services: Services, conversation: UUID) -> list[UUID | None]:
    """The topic of each message, oldest first."""
    statement = "SELECT topic_id FROM messages WHERE conversation_id = %(id)s ORDER BY created_at, id"
    rows = await services.database.fetch(DEFAULT_TENANT, statement, {"id": conversation}, tuple_row)
    return [row[0] for row in rows]
