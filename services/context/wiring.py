"""The sections of a prompt, one line each, in order; and the features that the settings switch on."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from services.context.conversation import ContextBudget, Conversation
from services.context.memory_changes import MemoryChangesSource, OpenQuestionSource
from services.context.source import Source
from services.context.sources.core_memory import CoreMemorySource
from services.context.sources.days import DaysSource
from services.context.sources.history import HistorySource, SummarySource
from services.context.sources.instructions import ClientSource, PrivateNoteSource, SystemSource
from services.context.sources.knowledge import KnowledgeSource
from services.context.sources.recall import RecallSource
from services.context.sources.speaker import SpeakerSource
from services.context.sources.time import TimeSource, UserActivitySource
from services.memory.wiring import Memory
from services.platform.postgres import Database
from services.platform.settings import Settings
from services.summaries.past_days import PastDays
from state.prompt import FEATURES, Feature


def make_sources(settings: Settings, database: Database, memory: Memory, days: PastDays) -> Sequence[Source[Any]]:
    """The sources of a prompt, in order."""
    most = {"max_items": settings.memory_recall_items, "max_tokens": settings.memory_recall_tokens}
    return (
        UserActivitySource(database, settings.quiet_hours),
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
        SpeakerSource(),
        TimeSource(),
    )


def make_conversation(settings: Settings, database: Database) -> Conversation:
    budget = ContextBudget(settings.context_budget_tokens)
    idle = timedelta(minutes=settings.context_idle_minutes)
    return Conversation(database, budget, settings, idle=idle)


def features_on(settings: Settings) -> tuple[Feature, ...]:
    """Return the features that the settings switch on."""
    switches: dict[Feature, bool] = {
        "core_memory": settings.memory_core,
        "recall": settings.memory_recall and settings.memory_episodes,
        "persona_card": settings.memory_persona,
        "time": settings.context_time,
        "mood": settings.memory_mood,
        "memory_filing": settings.memory_filing,
        "quick_tools": settings.tools_quick,
    }
    return tuple(feature for feature in FEATURES if switches.get(feature, True))
