"""The sections of a prompt, one line each, in order."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from services.context.conversation import ContextBudget, Conversation
from services.context.memory_changes import MemoryChangesSource
from services.context.source import Source
from services.context.sources.client import ClientSource
from services.context.sources.core_memory import CoreMemorySource
from services.context.sources.days import DaysSource
from services.context.sources.history import HistorySource
from services.context.sources.knowledge import KnowledgeSource
from services.context.sources.open_question import OpenQuestionSource
from services.context.sources.private_note import PrivateNoteSource
from services.context.sources.recall import RecallSource
from services.context.sources.summary import SummarySource
from services.context.sources.system import SystemSource
from services.context.sources.time import TimeSource
from services.context.sources.user_activity import UserActivityReader, UserActivitySource
from services.memory.wiring import Memory
from services.platform.postgres import Database
from services.platform.settings import Settings
from services.summaries.past_days import PastDays
from services.summaries.schedule import summary_schedule


def make_sources(
    settings: Settings, database: Database, memory: Memory, user_activity: UserActivityReader, days: PastDays
) -> Sequence[Source[Any]]:
    """The sources of a prompt, in order."""
    most = {"max_items": settings.memory_recall_items, "max_tokens": settings.memory_recall_tokens}
    return (
        UserActivitySource(user_activity),
        SystemSource(),
        ClientSource(),
        CoreMemorySource(memory.core),
        SummarySource(),
        HistorySource(),
        DaysSource(days),
        RecallSource(memory.recall, **most),
        KnowledgeSource(),
        PrivateNoteSource(database),
        OpenQuestionSource(memory.questions),
        MemoryChangesSource(),
        TimeSource(),
    )


def make_conversation(settings: Settings, database: Database) -> Conversation:
    """Make the reader of conversations."""
    budget = ContextBudget(settings.context_budget_tokens)
    idle = timedelta(minutes=settings.context_idle_minutes)
    return Conversation(database, budget, summary_schedule(settings), idle=idle)
