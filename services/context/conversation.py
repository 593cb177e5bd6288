"""The conversation in the prompt: read in one round trip and cut at the epoch; decides which jobs are due."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, LiteralString

from psycopg.rows import class_row, tuple_row

from services.context import epochs
from services.context.epochs import BEGINNING, Moment, NewestSummary, StoredPrefix
from services.context.source import PromptTurn, ShownConversation, Source
from services.context.sources.core_memory import CoreMemorySource, changes_since, last_talk, memory_text
from services.context.sources.history import (
    MOST_IMAGE_CHARACTERS,
    PARTS_THAT_FIT,
    size_of_stored,
    topic_line,
    without_images,
)
from services.context.sources.instructions import system_text
from services.context.sources.time import NO_ACTIVITY, UserActivitySource
from services.conversations.values import image_part, message_tokens
from services.jobs.tasks import ARCHIVE, SUMMARISE
from services.llm.token_estimates import MESSAGE_OVERHEAD, TokenEstimator
from services.platform.postgres import Database
from services.platform.shared_reads import Query
from services.summaries.schedule import ARCHIVE_SOON, SummarySchedule
from services.text.language import Language, language_of
from state.prompt import ContextPolicy, CoreMemorySections, Epoch, HistoryMessage, TopicSummary

TOPICS_SHARE = 0.25
"""Maximum share of the budget for the summaries of topics."""
HIGH_WATER = 0.5
"""Share of the budget at which the history restarts after the newest summary."""
_SHORTEST_MESSAGE = MESSAGE_OVERHEAD + 1
_MOST_TOPICS = 10

# Retracted messages are left out; those off the record are shown here and nowhere else. The newest come first, as
# many as could fit; late messages precede the epoch's history. The bounds are compared as plain values: under
# row-level security, any other expression would be evaluated for every message of the conversation.
HISTORY: LiteralString = """
WITH before AS (
    SELECT created_at, id FROM messages WHERE id = %(before)s
), epoch AS (
    SELECT coalesce(e.history_from_created_at, '-infinity') AS at,
           coalesce(e.history_from_message_id, '00000000-0000-0000-0000-000000000000') AS id
    FROM (SELECT) AS one_row LEFT JOIN context_epochs e
        ON e.conversation_id = %(conversation_id)s AND e.strategy = 'summary' AND %(summarised)s
        AND EXISTS (SELECT FROM conversation_summaries s WHERE s.conversation_id = e.conversation_id)
)
SELECT id, role, CASE WHEN off_record THEN content ELSE coalesce(memory_text, content) END AS content, {parts},
       token_count, created_at, uncovered, off_record AND retraction_id IS NOT NULL FROM (
    (SELECT m.* FROM messages m
     WHERE m.conversation_id = %(conversation_id)s AND m.tenant_id = %(tenant_id)s AND m.completed
       AND (m.retracted_at IS NULL OR m.off_record) AND m.branch_id IS NULL
       AND (m.created_at, m.id) < ((SELECT created_at FROM before), (SELECT id FROM before))
       AND (m.created_at, m.id) > ((SELECT at FROM epoch), (SELECT id FROM epoch))
       AND (%(strategy)s::text <> 'topics' OR m.topic_id IS NULL)
     ORDER BY m.created_at DESC, m.id DESC LIMIT %(limit)s)
    UNION ALL
    (SELECT m.* FROM messages m, epoch
     WHERE m.conversation_id = %(conversation_id)s AND m.tenant_id = %(tenant_id)s AND m.completed
       AND m.retracted_at IS NULL AND m.branch_id IS NULL AND m.uncovered
       AND (m.created_at, m.id) <= (epoch.at, epoch.id)
     ORDER BY m.created_at DESC, m.id DESC LIMIT %(limit)s)
) AS shown
ORDER BY created_at, id
""".replace("{parts}", PARTS_THAT_FIT)


@dataclass(frozen=True)
class FetchedConversation:
    """A conversation as stored."""

    beginning: StoredPrefix
    history: list[HistoryMessage]
    late: frozenset[str]
    """Ids of late messages that no summary covers."""


@dataclass(frozen=True)
class ContextBudget:
    """Tokens allowed for a prompt, not counting the user's message."""

    total: int

    def of(self, policy: ContextPolicy) -> int:
        """Return the budget under an expert's policy, which may set its own."""
        if policy["budget"]:
            return policy["budget"]
        if policy["strategy"] == "topics":
            return int(policy["window"] * policy["threshold"])
        return self.total


class Conversation(Source[FetchedConversation]):
    """Reads a conversation, and decides which epoch its prompt belongs to."""

    name = "conversation"
    within_s = None
    required = True

    def __init__(
        self,
        database: Database,
        budget: ContextBudget,
        schedule: SummarySchedule,
        *,
        idle: timedelta,
    ) -> None:
        """Take the schedule of summaries, and the time after which the provider's cache has forgotten a prompt."""
        self._database = database
        self._budget = budget
        self._schedule = schedule
        self._idle = idle

    def show(self, turn: PromptTurn, data: Mapping[type[Source[Any]], Any]) -> ShownConversation:
        """Return the epoch and the messages that follow it; begin a new epoch if needed.

        Core memory that could not be read (None in `data`) ends no epoch.
        """
        fetched: FetchedConversation = data[Conversation]
        core: CoreMemorySections | None = data.get(CoreMemorySource, {})
        policy, tokens = turn.policy, turn.tokens
        whole = self._budget.of(policy)
        budget = min(whole, turn.most_tokens or whole)
        history, late = fetched.history, fetched.late
        before, summary = fetched.beginning.epoch(), fetched.beginning.newest_summary()
        if policy["strategy"] == "summary" and not self._schedule.on:
            summary = epochs.NO_SUMMARY
        topics = _that_fit(fetched.beginning.topics or [], budget, tokens)
        shown = epochs.messages_after(history, before["history_from"] if before else None, late)
        size = sum(size_of_stored(message, tokens) for message in shown)
        core_reason, changes = changes_since(before, core) if before and core is not None else (None, {})
        moment = Moment(
            strategy=policy["strategy"],
            now=turn.now,
            last_message_at=history[-1]["created_at"] if history else None,
            over_high_water=size > budget * HIGH_WATER,
            core_memory=core,
            core_memory_reason=core_reason,
            core_memory_grew=bool(changes),
        )
        reason = fetched.beginning.ended_by or epochs.reason_to_begin(before, summary, topics, moment, self._idle)
        epoch = before
        if reason or epoch is None:
            epoch, changes = epochs.begin(before, reason or "first turn", summary, topics, moment), {}
            shown = epochs.messages_after(history, epoch["history_from"], late)
        language = language_of_conversation(shown, turn)
        if "persona_card" not in turn.features:
            epoch = Epoch(**{**epoch, "persona_card": ""})
        elif reason:
            known = data.get(UserActivitySource) or NO_ACTIVITY
            epoch = Epoch(**{**epoch, "persona_card": last_talk(known, turn.now, turn.timezone, language)})
        full, jobs = self._due(turn, whole, epoch, shown, summary, late, language)
        return ShownConversation(
            epoch,
            shown,
            budget,
            language,
            changes,
            full,
            jobs,
            fetched.beginning.cut_off or "",
            frozenset(map(str, fetched.beginning.excluded or ())),
        )

    async def load(self, turn: PromptTurn) -> FetchedConversation:
        """Read the conversation."""
        if turn.begins:
            return FetchedConversation(StoredPrefix(), _sent_along(turn), frozenset())
        tenant_id = turn.owner.tenant_id
        values = {
            "tenant_id": tenant_id,
            "conversation_id": turn.conversation_id,
            "before": turn.message_id,
            "strategy": turn.policy["strategy"],
            "summarised": turn.policy["strategy"] == "summary" and self._schedule.on,
            "most_topics": _MOST_TOPICS,
            "limit": self._budget.of(turn.policy) // _SHORTEST_MESSAGE + 1,
            "most_image_characters": MOST_IMAGE_CHARACTERS,
        }
        beginnings, rows = await self._database.read_each(
            tenant_id,
            Query(BEGINNING, values, class_row(StoredPrefix)),
            Query(HISTORY, values, tuple_row),
        )
        history = [
            HistoryMessage(
                message_id=str(row[0]),
                role=row[1],
                content=without_images(row[2]) if row[3] is None else row[2],
                parts=row[3] or [],
                token_count=row[4],
                created_at=row[5],
                off_record=row[7],
            )
            for row in rows
        ]
        beginning = beginnings[0] if beginnings else StoredPrefix()  # the user was erased at this moment
        late = frozenset(str(row[0]) for row in rows if row[6])
        return FetchedConversation(beginning, history, late)

    def _due(
        self,
        turn: PromptTurn,
        budget: int,
        epoch: Epoch,
        shown: list[HistoryMessage],
        summary: NewestSummary,
        late: frozenset[str],
        language: Language,
    ) -> tuple[bool, list[str]]:
        """Return whether the prompt is full, and which jobs the turn causes."""
        policy, tokens = turn.policy, turn.tokens
        if policy["strategy"] == "topics":
            size = sum(size_of_stored(message, tokens) for message in shown)
            size += sum(tokens.count(topic_line(topic)) for topic in epoch["topics"])
            size += tokens.count(system_text(turn, language)) + tokens.count(turn.tools) + MESSAGE_OVERHEAD
            size += tokens.count(memory_text(epoch["core_memory"], epoch["persona_card"], language)[0])
            share = (turn.message_tokens + size) / budget
            enough = len(shown) >= policy["min_archive_messages"]
            return share >= 1 and enough, [ARCHIVE] if share >= ARCHIVE_SOON and enough else []
        if policy["strategy"] == "summary":
            behind = len(epochs.messages_after(shown, summary.through, frozenset()))
            # This turn adds the user's message and the answer.
            if late or self._schedule.is_due(covered=summary.version > 0, behind=behind + 2):
                return False, [SUMMARISE]
        return False, []


def _sent_along(turn: PromptTurn) -> list[HistoryMessage]:
    """Return the earlier messages sent by the caller, in the form of stored ones."""
    return [
        HistoryMessage(
            message_id=f"earlier-{place}",
            role=said["role"],
            content=said["content"],
            parts=[image_part(image) for image in said.get("images", [])],
            token_count=message_tokens(said["content"]),
            created_at=turn.now,
        )
        for place, said in enumerate(turn.earlier)
    ]


def language_of_conversation(shown: Sequence[HistoryMessage], turn: PromptTurn) -> Language:
    """Return the language of the oldest user message that has one, so that the prompt's beginning stays the same.

    If no message contains a letter, the user's locale decides.
    """
    said = [message["content"] for message in shown if message["role"] == "user"]
    for text in (*said, turn.message):
        if any(character.isalpha() for character in text):
            return language_of([text])
    return "zh" if turn.locale.casefold().startswith("zh") else "en"


def _that_fit(topics: list[TopicSummary], budget: int, tokens: TokenEstimator) -> list[TopicSummary]:
    """Return the newest topics that fit their share, oldest first."""
    kept: list[TopicSummary] = []
    left = budget * TOPICS_SHARE
    for topic in reversed(topics):
        left -= tokens.count(topic_line(topic))
        if left < 0:
            break
        kept.insert(0, topic)
    return kept
