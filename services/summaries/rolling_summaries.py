"""Rolling summary of a conversation, updated in the background.

Messages up to a covered point are in the summary, later ones in the history of the prompt. The point moves only
together with the summary that covers it, so no message is ever in neither.
"""

import asyncio
from collections.abc import Sequence
from datetime import date
from uuid import UUID

import structlog

from services.errors import BadModelOutput, Conflict
from services.jobs.queue import JobQueue
from services.jobs.tasks import SUMMARISE, RunningJob
from services.llm.token_estimates import count_tokens
from services.platform.authorship import authoring
from services.platform.metrics import SUMMARIES
from services.platform.settings import Settings
from services.summaries.prompts import Place, Said, SaidMessage
from services.summaries.schedule import is_due
from services.summaries.store import NewSummary, Part, StoredSummary, SummaryState, SummaryStore
from services.summaries.writer import SummaryWriter
from services.time_reference.local_days import local_day

log = structlog.get_logger(__name__)

_RETRIES = 3
_FIRST_PAUSE_S = 0.1
_READ_AT_ONCE = 500

_Conversation = tuple[UUID, UUID]
"""Tenant id and conversation id."""


class RollingSummaries:
    """Keeps summaries up to date. Every process with a worker has one: it registers the job."""

    def __init__(self, store: SummaryStore, writer: SummaryWriter, settings: Settings, jobs: JobQueue) -> None:
        self.store = store
        self._writer = writer
        self._settings = settings
        self._chunk_tokens = writer.chunk_tokens
        jobs.task(SUMMARISE)(self._job)

    async def update(self, tenant_id: UUID, conversation_id: UUID) -> bool:
        """Renew the summary if it is due; return whether it was.

        Raises:
            ModelFailed: The model did not answer; the summary stays as it was.
            BadModelOutput: The model's answer was no summary, twice; the summary stays as it was.
            Conflict: Others changed the conversation or its summary again and again.
        """
        conversation = (tenant_id, conversation_id)
        window = self._settings.memory_summary_window_size
        for attempt in range(_RETRIES + 1):
            # The state is read first, so that a retraction between the two reads is noticed when the summary is
            # written.
            state = await self.store.state(tenant_id, conversation_id, window=window)
            old = await self.store.get(tenant_id, conversation_id)
            if state is None or not self._is_due(state, old):
                return False
            through = _further(state.through, old)
            if through is None:
                return False
            with authoring():
                new = await self._summarise(conversation, state, old, through)
                written = await self.store.write(tenant_id, conversation_id, new)
            if written:
                kind = "full" if new.increments == 0 else "increment"
                SUMMARIES.labels(kind).inc()
                log.info("summary written", conversation_id=str(conversation_id), kind=kind, covered=new.count)
                return True
            if new.increments == 0:
                await self.store.forget_parts(tenant_id, conversation_id, all_of_them=True)
            await asyncio.sleep(_FIRST_PAUSE_S * 2**attempt)
        raise Conflict("The conversation changes faster than it can be summarised.")

    def _is_due(self, state: SummaryState, old: StoredSummary | None) -> bool:
        if state.strategy != "summary" or not self._settings.memory_summaries:
            return False
        is_covered = old is not None
        return state.late or is_due(self._settings, covered=is_covered, behind=state.behind, tokens=state.tokens)

    async def _summarise(
        self, conversation: _Conversation, state: SummaryState, old: StoredSummary | None, through: Place
    ) -> NewSummary:
        if old and not state.late and old.increments_since_full < self._settings.memory_summary_full_after:
            new = await self._read(conversation, old.through, through)
            if sum(message.token_count for message in new) <= self._chunk_tokens:
                said, days = _said(new, self._chunk_tokens), _days(new, state.timezone)
                text = await self._writer.conversation("increment", said, [old.summary], days=days)
                count = old.covered_message_count + len(new)
                increments = old.increments_since_full + 1
                return NewSummary(text, old.summary_version, through, count, increments, state.retracted_at)
        text, count = await self._from_the_beginning(conversation, through, state)
        version = old.summary_version if old else 0
        return NewSummary(text, version, through, count, 0, state.retracted_at)

    async def _from_the_beginning(
        self, conversation: _Conversation, through: Place, state: SummaryState
    ) -> tuple[str, int]:
        """Summarise the whole transcript; return the summary, and the number of messages that it covers. Each
        stretch that fills a call is summarised once and kept, because what it says never changes."""
        await self.store.forget_parts(*conversation, all_of_them=False)
        parts = [part for part in await self.store.parts(*conversation) if part.through <= through]
        rest: list[SaidMessage] = []
        place = parts[-1].through if parts else None
        while page := await self.store.messages(*conversation, after=place, through=through, limit=_READ_AT_ONCE):
            for message in page:
                if rest and sum(m.token_count for m in rest) + message.token_count > self._chunk_tokens:
                    parts.append(await self._part(conversation, len(parts) + 1, rest, state))
                    rest = []
                rest.append(message)
            place = page[-1].place
        count = sum(part.message_count for part in parts) + len(rest)
        said, days = _said(rest, self._chunk_tokens), _days(rest, state.timezone)
        if not parts:
            return await self._writer.conversation("first", said, days=days), count
        summaries = await self._fewer([part.summary for part in parts])
        return await self._writer.conversation("whole", said, summaries, days=days), count

    async def _part(
        self, conversation: _Conversation, number: int, messages: Sequence[SaidMessage], state: SummaryState
    ) -> Part:
        said, days = _said(messages, self._chunk_tokens), _days(messages, state.timezone)
        summary = await self._writer.conversation("part", said, days=days)
        part = Part(summary, *messages[-1].place, len(messages))
        await self.store.add_part(*conversation, number, part, state.retracted_at)
        return part

    async def _fewer(self, summaries: list[str]) -> list[str]:
        """Merge neighbouring summaries until all fit into one call."""
        while len(summaries) > 1 and sum(map(count_tokens, summaries)) > self._chunk_tokens:
            groups: list[list[str]] = [[]]
            for summary in summaries:
                if len(groups[-1]) > 1 and sum(map(count_tokens, [*groups[-1], summary])) > self._chunk_tokens:
                    groups.append([])
                groups[-1].append(summary)
            summaries = [await self._writer.conversation("whole", [], group, days=[]) for group in groups]
        return summaries

    async def _read(self, conversation: _Conversation, after: Place, through: Place) -> list[SaidMessage]:
        """Return the messages of an increment; those that do not fit into one call are not read."""
        limit = self._chunk_tokens + 1  # each message has at least one token
        return await self.store.messages(*conversation, after=after, through=through, limit=limit)

    async def _job(self, job: RunningJob, *, conversation_id: UUID) -> None:
        try:
            await self.update(job.tenant_id, conversation_id)
        except BadModelOutput as error:
            # A repeated request would fail in the same way; the next turn brings a new message.
            log.warning("summary given up", conversation_id=str(conversation_id), reason=error.message)
            SUMMARIES.labels("given_up").inc()


def _further(through: Place | None, old: StoredSummary | None) -> Place | None:
    """Return the new covered point; it never moves back, even when more of the newest messages stay uncovered."""
    if old is None or through is None:
        return through
    return max(through, old.through)


def _days(messages: Sequence[SaidMessage], timezone: str) -> list[date]:
    return [local_day(each.created_at, timezone) for each in messages]


def _said(messages: Sequence[SaidMessage], most_tokens: int) -> list[Said]:
    """Return the messages as said; a message too long for one call is cut to its beginning."""
    return [(m.role, m.told if m.token_count <= most_tokens else f"{m.told[:most_tokens]}…") for m in messages]
