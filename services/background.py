"""Services that work on memory in the background: the memory agent, upkeep, reflection."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from services.jobs.queue import JobQueue
from services.llm.chat_models import ChatModels
from services.llm.embeddings import Embedder
from services.memory.agent.agent import MemoryAgent
from services.memory.agent.command_review import CommandReview
from services.memory.agent.consent import Consent
from services.memory.agent.decisions import DecisionMaker
from services.memory.agent.store import AgentStore
from services.memory.upkeep.wiring import UpkeepServices, make_upkeep
from services.memory.wiring import Memory
from services.platform.postgres import Database
from services.platform.settings import Settings
from services.reflection.reflection import Reflection


@dataclass(frozen=True)
class BackgroundServices:
    """Services that work on memory in the background."""

    memory_agent: MemoryAgent
    upkeep: UpkeepServices
    reflection: Reflection
    command_review: CommandReview


def make_background(
    settings: Settings,
    database: Database,
    memory: Memory,
    models: ChatModels,
    embedder: Embedder,
    jobs: JobQueue,
    find_days: Callable[[datetime], Awaitable[int]] | None,
) -> BackgroundServices:
    """Wire it; the jobs are registered in the queue."""
    core = memory.core if settings.memory_core else None
    archive = memory.archive if settings.memory_episodes else None
    store = AgentStore(database, memory.operations)
    agent = MemoryAgent(
        store,
        DecisionMaker(models, store, memory.episodes, core, archive, memory.foreign_origins),
        jobs,
        consent=Consent(store, memory.proposals),
        episodes=memory.episodes,
        core_memory=core,
        archive=archive,
        resolution=memory.resolution,
        retraction=memory.retraction,
        on=settings.memory_agent,
        pause_s=settings.memory_agent_pause_s,
    )
    return BackgroundServices(
        agent,
        make_upkeep(
            settings,
            database,
            models,
            embedder,
            jobs,
            values=memory.values,
            proposals=memory.proposals,
            episodes=memory.episodes,
            operations=memory.operations,
            find_days=find_days,
        ),
        Reflection(database, models, jobs, on=settings.memory_reflection),
        CommandReview(database, models, memory.resolution, memory.retraction, memory.undo, jobs),
    )
