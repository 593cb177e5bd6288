"""Parts of the service that are imported when they are made: commands that need none of them start faster."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from services.connected import Connected
from services.conversations.event_log import EventLog
from services.conversations.leases import TurnLeases
from services.jobs.queue import JobQueue
from services.platform.milvus import Milvus
from services.platform.outgoing import OutgoingHttp
from services.platform.postgres import Database
from services.platform.redis import RedisClient
from services.platform.settings import Settings
from services.summaries.past_transcript import PastTranscript
from services.summaries.schedule import ARCHIVE, SUMMARISE
from services.tools.mcp_config import servers_of
from services.tools.mcp_servers import McpServers
from services.tools.registry import ToolRegistry
from services.tools.tool import ToolServices

if TYPE_CHECKING:
    from services.background import BackgroundServices
    from services.context.conversation import Conversation
    from services.context.source import Source
    from services.context.sources.user_activity import UserActivityReader
    from services.knowledge.wiring import Knowledge
    from services.llm.chat_models import ChatModels
    from services.llm.embeddings import Embedder
    from services.memory.inquiry import MemoryInquiry
    from services.memory.removal.hiding import RebuildTasks
    from services.memory.wiring import Memory
    from services.removal_wiring import RemovalServices
    from services.summaries.past_days import PastDays
    from services.summaries.wiring import Summaries


def tool_services(settings: Settings, memory: "Memory", http: OutgoingHttp) -> ToolServices:
    """Return what tools may use."""
    return ToolServices(
        core_memory=memory.core if settings.memory_core else None,
        changes=memory.changes if settings.memory_core or settings.memory_episodes else None,
        proposals=memory.proposals,
        archive=memory.archive if settings.memory_episodes else None,
        http=http,
        weather_url=settings.weather_url,
        weather_geocoding_url=settings.weather_geocoding_url,
    )


def mcp_tool_servers(settings: Settings, tools: ToolRegistry) -> McpServers:
    """Make the servers whose tools the model may call.

    Raises:
        ConfigurationError: the setting is wrong.
    """
    configs = servers_of(settings.mcp_servers.get_secret_value() if settings.mcp_servers else None)
    if not configs:
        return McpServers()  # the SDK takes half a second to import
    from services.tools.mcp_connection import McpServer  # noqa: PLC0415

    return McpServers([McpServer(name, config, tools.put) for name, config in configs.items()])


def user_activity_reader(database: Database) -> "UserActivityReader":
    """Return what reads when a user was there."""
    # Commands that answer nobody do without the words of feeling and the dictionaries below them.
    from services.context.sources.user_activity import UserActivityReader  # noqa: PLC0415

    return UserActivityReader(database)


def prompt_sources(
    settings: Settings, database: Database, memory: "Memory", user_activity: "UserActivityReader", days: "PastDays"
) -> "tuple[Conversation, Sequence[Source[Any]]]":
    """Return what is known of a conversation, and the sources of its prompt."""
    from services.context.wiring import make_conversation, make_sources  # noqa: PLC0415 — they need the embedder

    return make_conversation(settings, database), make_sources(settings, database, memory, user_activity, days)


def rebuild_tasks() -> "RebuildTasks":
    """Return the tasks that make derived text again."""
    from services.memory.removal.hiding import RebuildTasks  # noqa: PLC0415 — it needs the embedder

    return RebuildTasks(summarise=SUMMARISE, archive=ARCHIVE)


def removal_services(
    settings: Settings, connected: Connected, memory: "Memory", leases: TurnLeases, events: EventLog
) -> "RemovalServices":
    """Return what removes."""
    from services.removal_wiring import make_removal  # noqa: PLC0415 — it needs the embedder

    return make_removal(settings, connected.database, memory, leases, events, connected.jobs, rebuild_tasks())


def memory_services(
    settings: Settings,
    database: Database,
    cache: RedisClient,
    milvus: Milvus,
    embedder: "Embedder",
    jobs: JobQueue,
) -> "Memory":
    """Return the services of memory."""
    from services.memory.wiring import make_memory  # noqa: PLC0415 — it needs the embedder

    return make_memory(settings, database, cache, milvus, embedder, jobs, rebuild_tasks())


def knowledge_services(settings: Settings, connected: Connected) -> "Knowledge":
    """Return the services of knowledge bases."""
    from services.knowledge.wiring import make_knowledge  # noqa: PLC0415 — it needs the embedder

    return make_knowledge(
        settings,
        connected.database,
        connected.milvus,
        connected.embedder,
        connected.jobs,
    )


def background_services(
    settings: Settings, connected: Connected, memory: "Memory", summaries: "Summaries"
) -> "BackgroundServices":
    """Return what works on memory in the background."""
    from services.background import make_background  # noqa: PLC0415 — it needs the models

    scheduler = summaries.daily_scheduler
    find_days = scheduler.find if scheduler.is_on else None
    return make_background(
        settings, connected.database, memory, connected.models, connected.embedder, connected.jobs, find_days
    )


def memory_inquiry(memory: "Memory", models: "ChatModels") -> "MemoryInquiry":
    """Return what answers questions about memory."""
    from services.memory.inquiry import MemoryInquiry  # noqa: PLC0415 — it needs the models

    return MemoryInquiry(memory.core, memory.values, memory.episodes, memory.recall, models)


def past_days(settings: Settings, database: Database, summaries: "Summaries") -> "PastDays":
    """Return what tells of past days."""
    from services.summaries.past_days import PastDays  # noqa: PLC0415 — it needs the models

    return PastDays(summaries.daily, PastTranscript(database), most_tokens=settings.memory_days_tokens)


def summary_services(settings: Settings, connected: Connected) -> "Summaries":
    """Return the services of summaries."""
    from services.summaries.wiring import make_summaries  # noqa: PLC0415 — it needs the models

    return make_summaries(settings, connected.database, connected.models, connected.jobs)
