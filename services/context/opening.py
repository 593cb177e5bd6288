"""Makes what reads for a prompt, as the settings say."""

from datetime import timedelta
from typing import TYPE_CHECKING

from services.context.budget import ContextBudget
from services.context.reading import ConversationReader
from services.platform.postgres import Database
from services.platform.settings import Settings
from services.summaries.schedule import summary_schedule

if TYPE_CHECKING:
    from services.context.recalled import Memories
    from services.memory.opening import Memory


def make_conversations(settings: Settings, database: Database) -> ConversationReader:
    """What reads a conversation."""
    budget = ContextBudget(settings.context_budget_tokens)
    idle = timedelta(minutes=settings.context_idle_minutes)
    return ConversationReader(database, budget, summary_schedule(settings), idle=idle)


def make_memories(settings: Settings, memory: "Memory") -> "Memories":
    """What shows earlier conversations."""
    from services.context.recalled import Memories  # noqa: PLC0415 — it needs the embedder

    return Memories(
        memory.recall, max_items=settings.memory_recall_items, max_tokens=settings.memory_recall_tokens
    )
