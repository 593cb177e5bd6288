"""Makes what reads for a prompt, as the settings say."""

from datetime import timedelta
from typing import TYPE_CHECKING

from services.context.budget import ContextBudget
from services.context.reading import ConversationReader
from services.platform.postgres import Database
from services.platform.settings import Settings
from services.summaries.schedule import summary_schedule

if TYPE_CHECKING:
    from services.context.acquaintances import Acquaintances
    from services.context.recalled import Memories
    from services.memory.opening import Memory


def make_conversations(settings: Settings, database: Database) -> ConversationReader:
    """What reads a conversation."""
    budget = ContextBudget(settings.context_budget_tokens)
    idle = timedelta(minutes=settings.context_idle_minutes)
    return ConversationReader(
        database, budget, summary_schedule(settings), idle=idle, persona=settings.memory_persona
    )


def make_memories(settings: Settings, memory: "Memory") -> "Memories":
    """What shows earlier conversations."""
    from services.context.recalled import Memories  # noqa: PLC0415 — it needs the embedder

    return Memories(
        memory.recall,
        on=settings.memory_recall and settings.memory_episodes,
        max_items=settings.memory_recall_items,
        max_tokens=settings.memory_recall_tokens,
    )


def make_acquaintances(settings: Settings, database: Database) -> "Acquaintances":
    """What reads a user's visits and moods."""
    # Commands that answer nobody do without the words of feeling and the dictionaries below them.
    from services.context.acquaintances import Acquaintances, Parts  # noqa: PLC0415

    parts = Parts(tone=settings.tone, persona=settings.memory_persona, time=settings.context_time)
    return Acquaintances(database, parts)
