"""The conversation in the prompt: read in one round trip and cut at the epoch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import LiteralString

from psycopg.rows import class_row, tuple_row

from services.context import epochs
from services.context.epochs import BEGINNING, NO_CHANGES, Moment, StoredConversation
from services.context.source import PromptDraft, Source
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
from services.conversations.values import image_part
from services.llm.token_estimates import IMAGE_TOKENS, MESSAGE_OVERHEAD, TokenEstimator, count_tokens
from services.platform.postgres import Database
from services.platform.settings import Settings
from services.platform.shared_reads import Query
from services.summaries.schedule import is_due
from services.text.language import Language, language_of
from services.text.tokenizer import indexed_text
from state.prompt import ContextPolicy, CoreMemorySections, Epoch, HistoryMessage, TopicSummary
from state.turn import OpenTurn

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
       created_at, uncovered, off_record AND retraction_id IS NOT NULL, speaker FROM (
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


class Conversation(Source[StoredConversation]):
    """Reads a conversation, and decides which epoch its prompt belongs to."""

    name = "conversation"
    within_s = None
    required = True

    def __init__(self, database: Database, budget: ContextBudget, settings: Settings, *, idle: timedelta) -> None:
        """Take the settings of summaries, and the time after which the provider's cache has forgotten a prompt."""
        self._database = database
        self._budget = budget
        self._settings = settings
        self._idle = idle

    def show(self, draft: PromptDraft) -> None:
        """Give the draft the epoch and the messages that follow it; begin a new epoch if needed. Core memory
        that could not be read (None) ends no epoch."""
        fetched: StoredConversation = draft.data[Conversation]
        core: CoreMemorySections | None = draft.data.get(CoreMemorySource, {})
        turn, tokens, policy = draft.turn, draft.tokens, draft.turn.policy
        whole = self._budget.of(policy)
        draft.budget = min(whole, turn.input.get("max_context_tokens") or whole)
        history, late = fetched.history, fetched.late
        before, summary = fetched.epoch(), fetched.newest_summary()
        if policy["strategy"] == "summary" and not self._settings.memory_summaries:
            summary = epochs.NO_SUMMARY
        topics = _that_fit(fetched.topics or [], draft.budget, tokens)
        shown = epochs.messages_after(history, before["history_from"] if before else None, late)
        size = sum(size_of_stored(message, tokens) for message in shown)
        core_reason, changes = changes_since(before, core) if before and core is not None else (None, NO_CHANGES)
        moment = Moment(
            strategy=policy["strategy"],
            now=turn.now,
            last_message_at=history[-1]["created_at"] if history else None,
            over_high_water=size > draft.budget * HIGH_WATER,
            core_memory=core,
            core_memory_reason=core_reason,
            core_memory_grew=bool(changes),
        )
        reason = fetched.ended_by or epochs.reason_to_begin(before, summary, topics, moment, self._idle)
        epoch = before
        if reason or epoch is None:
            epoch, changes = epochs.begin(before, reason or "first turn", summary, topics, moment), NO_CHANGES
            shown = epochs.messages_after(history, epoch["history_from"], late)
        draft.language = language_of_conversation(shown, turn)
        if "persona_card" not in draft.features:
            epoch = Epoch(**{**epoch, "persona_card": ""})
        elif reason:
            known = draft.of(UserActivitySource) or NO_ACTIVITY
            epoch = Epoch(**{**epoch, "persona_card": last_talk(known, turn.now, turn.timezone, draft.language)})
        draft.epoch, draft.history, draft.core_memory_changes = epoch, shown, changes
        draft.cut_off = fetched.cut_off or ""
        draft.excluded = frozenset(map(str, fetched.excluded or ()))
        draft.filled, draft.summary_due = 0.0, False
        if policy["strategy"] == "topics" and len(shown) >= policy["min_archive_messages"]:
            draft.filled = _size(draft) / whole
        elif policy["strategy"] == "summary":
            behind = epochs.messages_after(shown, summary.through, frozenset())
            # This turn adds the user's message and the answer.
            size = sum(count_tokens(each["content"]) for each in behind) + count_tokens(turn.message)
            due = is_due(self._settings, covered=summary.version > 0, behind=len(behind) + 2, tokens=size)
            draft.summary_due = bool(late) or due

    async def load(self, draft: PromptDraft) -> StoredConversation:
        """Read the conversation."""
        turn = draft.turn
        if turn.begins:
            return StoredConversation(history=() if turn.stored else _sent_along(turn))
        tenant_id = turn.tenant_id
        values = {
            "tenant_id": tenant_id,
            "conversation_id": turn.conversation_id,
            "before": turn.user_message_id,
            "strategy": turn.policy["strategy"],
            "summarised": turn.policy["strategy"] == "summary" and self._settings.memory_summaries,
            "most_topics": _MOST_TOPICS,
            "limit": self._budget.of(turn.policy) // _SHORTEST_MESSAGE + 1,
            "most_image_characters": MOST_IMAGE_CHARACTERS,
        }
        beginnings, rows = await self._database.read_each(
            tenant_id, Query(BEGINNING, values, class_row(StoredConversation)), Query(HISTORY, values, tuple_row)
        )
        history = [
            HistoryMessage(
                message_id=str(row[0]),
                role=row[1],
                content=without_images(row[2]) if row[3] is None else row[2],
                parts=row[3] or [],
                created_at=row[4],
                off_record=row[6],
                speaker=row[7] or "",
            )
            for row in rows
        ]
        stored = beginnings[0] if beginnings else StoredConversation()  # the user was erased at this moment
        return replace(stored, history=history, late=frozenset(str(row[0]) for row in rows if row[5]))


def _size(draft: PromptDraft) -> int:
    """Estimate the tokens of a prompt with topics, and of the user's message."""
    turn, tokens = draft.turn, draft.tokens
    size = sum(size_of_stored(message, tokens) for message in draft.history)
    size += sum(tokens.count(topic_line(topic)) for topic in draft.epoch["topics"])
    size += tokens.count(system_text(draft, draft.language)) + tokens.count(draft.tools) + MESSAGE_OVERHEAD
    text, _ = memory_text(draft.epoch["core_memory"], draft.epoch["persona_card"], draft.language)
    message = (
        tokens.count(indexed_text(turn.speaker, turn.message)) + MESSAGE_OVERHEAD + IMAGE_TOKENS * len(turn.images)
    )
    return message + size + tokens.count(text)


def _sent_along(turn: OpenTurn) -> list[HistoryMessage]:
    """Return the earlier messages sent by the caller, in the form of stored ones."""
    return [
        HistoryMessage(
            message_id=f"earlier-{place}",
            role=said["role"],
            content=said["content"],
            parts=[image_part(image) for image in said.get("images", [])],
            created_at=turn.now,
            speaker=said.get("speaker", ""),
        )
        for place, said in enumerate(turn.input.get("earlier", ()))
    ]


def language_of_conversation(shown: Sequence[HistoryMessage], turn: OpenTurn) -> Language:
    """Return the language of the oldest user message that has one, so that the prompt's beginning stays the
    same. If no message contains a letter, the user's locale decides."""
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
