"""Gathers the sections of a prompt: loads from all sources at the same time, then lets each select in order."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import structlog

from services.context.conversation import Conversation, FetchedConversation
from services.context.source import Known, PromptTurn, ShownConversation, Source
from services.context.sources.recall import RecallSource
from services.errors import Unavailable
from services.platform.patience import Patience, Result, beside_the_loop
from services.summaries.topics import TopicArchive
from state.prompt import HistoryMessage

_MUCH_TEXT = 20_000
"""Characters of the message, the conversation and what was recalled."""

log = structlog.get_logger(__name__)


async def gather(
    sources: Sequence[Source[Any]], turn: PromptTurn, *, conversation: Conversation, topics: TopicArchive
) -> Known:
    """Load and select; sources that fail or are late are left out and named in `degraded`.

    If the conversation is full, topics are archived first.

    Raises:
        DatabaseUnavailable: the conversation cannot be read.
    """
    degraded: list[str] = []
    loading = [source for source in sources if source.loads]
    data: dict[type[Source[Any]], Any] = {
        type(source): source.when_off() for source in loading if not source.is_on(turn)
    }
    try:
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(conversation.load(turn))
            tasks = {
                type(source): group.create_task(_load(source, turn, reading, degraded))
                for source in loading
                if type(source) not in data
            }
    except ExceptionGroup as failed:  # the graph handles the error itself, with a retry
        raise failed.exceptions[0] from None
    data |= {kind: task.result() for kind, task in tasks.items()}
    data[Conversation] = reading.result()

    def shown() -> ShownConversation:
        for source in sources:
            source.revise(turn, data)
        return conversation.show(turn, data)

    known = Known(data, await _beside(turn, data, shown), degraded)
    if known.conversation.full:
        if await topics.archive_in_time(turn.owner.tenant_id, turn.conversation_id):
            data[Conversation] = await conversation.load(turn)
            known.conversation = await _beside(turn, data, shown)
        else:
            known.went_without("topics")
    await _beside(turn, data, partial(select_all, sources, turn, known))
    return known


async def _beside(turn: PromptTurn, data: Mapping[type[Any], Any], work: Callable[[], Result]) -> Result:
    """Do some work on what was loaded."""
    fetched: FetchedConversation = data[Conversation]
    characters = len(turn.message) + sum(len(each["content"]) for each in fetched.history)
    if (recalled := data.get(RecallSource)) is not None:
        characters += sum(len(unit.text) for unit in recalled.units.values())
    return await beside_the_loop(work, characters=characters, most=_MUCH_TEXT)


def select_all(sources: Sequence[Source[Any]], turn: PromptTurn, known: Known) -> None:
    """Let each active source select its sections, in order."""
    for source in sources:
        if source.is_on(turn):
            known.sections += source.select(turn, known)


def _seconds_of(source: Source[Any], turn: PromptTurn) -> float | None:
    """Return how long a source may load; what the prompt cannot do without is waited for."""
    if turn.within_s is None or source.required:
        return source.within_s
    return turn.within_s if source.within_s is None else min(source.within_s, turn.within_s)


async def _load(
    source: Source[Any], turn: PromptTurn, reading: asyncio.Task[FetchedConversation], degraded: list[str]
) -> Any:
    """Return what the source loads; None if it fails."""

    async def history() -> Sequence[HistoryMessage]:
        return (await asyncio.shield(reading)).history

    try:
        async with Patience(_seconds_of(source, turn)):
            return await source.load_after(turn, history)
    except (Unavailable, TimeoutError) as error:
        if source.required:
            raise
        log.warning("left out of the prompt", source=source.name, error=type(error).__name__)
        degraded.append(source.name)
        return None
