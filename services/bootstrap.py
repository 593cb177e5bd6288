"""Everything that works, made once and closed in reverse: by the server, the worker, Studio and the tests."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from services.background import make_background
from services.connected import connect
from services.context.conversation import Conversation
from services.context.source import Source
from services.context.sources.user_activity import UserActivityReader
from services.context.wiring import make_conversation, make_sources
from services.conversations.branches import Branches
from services.conversations.event_log import EventLog
from services.conversations.experts import Experts
from services.conversations.explanation import Explanations
from services.conversations.feedback import TurnFeedback
from services.conversations.known_conversations import KnownConversations
from services.conversations.leases import TurnLeases
from services.conversations.naming import ConversationNames
from services.conversations.spaces import Spaces
from services.conversations.transcript import Transcript
from services.conversations.turns import Turns
from services.conversations.users import Users
from services.engines import Engines
from services.experiments.experiments import Experiments
from services.experiments.report import ExperimentReports
from services.identity.api_keys import ApiKeys
from services.identity.authentication import Authenticator
from services.identity.rate_limits import RateLimits
from services.identity.tickets import Tickets
from services.index_rebuild import IndexRebuild
from services.jobs.queue import JobQueue
from services.knowledge.wiring import Knowledge, make_knowledge
from services.llm.chat_models import ChatModels
from services.llm.embeddings import Embedder
from services.llm.token_estimates import TokenEstimators
from services.memory.filing import Filing
from services.memory.inquiry import MemoryInquiry
from services.memory.lineage.audit import LineageAudit
from services.memory.lineage.prompt import PromptLineage
from services.memory.lineage.tracing import Lineage
from services.memory.removal.erasures import Erasures
from services.memory.removal.expiry import Retention
from services.memory.removal.expiry_rules import RetentionRules
from services.memory.removal.hiding import RebuildTasks
from services.memory.removal.wholes import WholeErasure
from services.memory.upkeep.scheduler import UpkeepScheduler
from services.memory.upkeep.upkeep import Upkeep
from services.memory.wiring import Memory, make_memory
from services.platform.breaker import CircuitBreaker
from services.platform.milvus import Milvus
from services.platform.outgoing import OutgoingHttp
from services.platform.postgres import Database
from services.platform.redis import RedisClient
from services.platform.settings import Settings
from services.reflection.reflection import Reflection
from services.removal_wiring import make_removal
from services.store.store import Store
from services.summaries.daily_scheduler import DailyScheduler
from services.summaries.daily_summaries import DailySummaries
from services.summaries.past_days import PastDays, PastTranscript
from services.summaries.rolling_summaries import RollingSummaries
from services.summaries.schedule import ARCHIVE, SUMMARISE
from services.summaries.topics import TopicArchive
from services.summaries.wiring import make_summaries
from services.text.secrets import Secrets
from services.tools.approvals import Approvals
from services.tools.executor import ToolExecutor
from services.tools.mcp_servers import McpServers
from services.tools.registry import ToolRegistry
from services.tools.wiring import make_tools
from services.transfer.export_store import ExportStore
from services.transfer.exporter import Exporter
from services.transfer.importer import Importer, make_importer
from services.usage.budgets import Budgets
from services.usage.ledger import UsageLedger
from services.visits.visit import visit_schedule
from services.visits.visits import Visits


@dataclass(frozen=True)
class Services:
    """All services; each node and route takes the few that it names."""

    settings: Settings
    authenticator: Authenticator
    api_keys: ApiKeys
    rate_limits: RateLimits
    usage: UsageLedger
    budgets: Budgets
    tickets: Tickets
    database: Database
    redis: RedisClient
    milvus: Milvus
    models: ChatModels
    embedder: Embedder
    turns: Turns
    leases: TurnLeases
    feedback: TurnFeedback
    events: EventLog
    transcript: Transcript
    conversation_names: ConversationNames
    branches: Branches
    known_conversations: KnownConversations
    explanations: Explanations
    lineage: Lineage
    prompt_lineage: PromptLineage
    lineage_audit: LineageAudit
    forgetting: Erasures
    experts: Experts
    knowledge: Knowledge
    tools: ToolRegistry
    tool_executor: ToolExecutor
    approvals: Approvals
    mcp_servers: McpServers
    estimators: TokenEstimators
    conversation: Conversation
    sources: Sequence[Source[Any]]
    summaries: RollingSummaries
    topics: TopicArchive
    daily: DailySummaries
    daily_scheduler: DailyScheduler
    visits: Visits
    users: Users
    spaces: Spaces
    memory: Memory
    index_rebuild: IndexRebuild
    memory_inquiry: MemoryInquiry
    user_activity: UserActivityReader
    past_days: PastDays
    upkeep: Upkeep
    upkeep_scheduler: UpkeepScheduler
    reflection: Reflection
    filing: Filing
    experiments: Experiments
    experiment_reports: ExperimentReports
    jobs: JobQueue
    erasure: WholeErasure
    retention_rules: RetentionRules
    retention: Retention
    store: Store
    importer: Importer
    exporter: Exporter


@asynccontextmanager
async def open_services(settings: Settings, engines: Engines) -> AsyncIterator[Services]:
    """Connect to the stores and wire the services.

    Args:
        settings: of the service.
        engines: where the stores are.

    Raises:
        ConfigurationError: the database's role or schema is not what the service needs.
    """
    async with AsyncExitStack() as stack:
        connected = await connect(stack, settings, engines)
        database, cache, jobs = connected.database, connected.cache, connected.jobs
        models, embedder = connected.models, connected.embedder
        leases = TurnLeases(database, default_locale=settings.default_locale)
        events = EventLog(cache, CircuitBreaker("Redis"), keep_s=settings.turn_events_keep_s, vault=database.vault)
        rebuilding = RebuildTasks(summarise=SUMMARISE, archive=ARCHIVE)
        memory = make_memory(settings, database, cache, connected.milvus, embedder, jobs, rebuilding)
        stack.push_async_callback(memory.working_sets.close)
        summaries = make_summaries(settings, database, models, jobs)
        experiments = Experiments(database)
        removal = make_removal(settings, database, memory, leases, events, jobs, rebuilding)
        http = OutgoingHttp()
        stack.push_async_callback(http.close)
        knowledge = make_knowledge(settings, database, connected.milvus, embedder, jobs)
        stack.push_async_callback(knowledge.search.close)
        days = PastDays(summaries.daily, PastTranscript(database), most_tokens=settings.memory_days_tokens)
        tools = await asyncio.to_thread(make_tools, settings, database, memory, http)
        stack.push_async_callback(tools.servers.close)
        user_activity = UserActivityReader(database)
        find_days = summaries.daily_scheduler.find if summaries.daily_scheduler.is_on else None
        background = make_background(settings, database, memory, models, embedder, jobs, find_days)
        yield Services(
            settings=settings,
            authenticator=connected.authenticator,
            api_keys=ApiKeys(database),
            rate_limits=RateLimits(settings, cache),
            usage=connected.usage,
            budgets=Budgets(settings, connected.usage),
            tickets=Tickets(cache),
            database=database,
            redis=cache,
            milvus=connected.milvus,
            models=models,
            embedder=embedder,
            turns=Turns(
                database,
                jobs,
                visits=visit_schedule(settings),
                shares_human=settings.memory_share_human,
                reflection=settings.memory_reflection and not models.offline,
                filing_quiet_s=None if models.offline else settings.memory_filing_quiet_s,
                default_timezone=settings.default_timezone,
                default_locale=settings.default_locale,
                hiding=memory.hiding,
                secrets=Secrets(settings.memory_keep_secrets),
            ),
            leases=leases,
            feedback=TurnFeedback(database),
            events=events,
            transcript=Transcript(database),
            conversation_names=ConversationNames(database, Transcript(database), models),
            branches=Branches(database, memory.branching),
            known_conversations=KnownConversations(database),
            explanations=Explanations(database),
            lineage=Lineage(database),
            prompt_lineage=PromptLineage(database, Lineage(database)),
            lineage_audit=LineageAudit(database, jobs),
            forgetting=removal.forgetting,
            experts=Experts(database),
            knowledge=knowledge,
            tools=tools.registry,
            tool_executor=tools.executor,
            approvals=tools.approvals,
            mcp_servers=tools.servers,
            estimators=TokenEstimators(),
            conversation=make_conversation(settings, database),
            sources=make_sources(settings, database, memory, user_activity, days),
            summaries=summaries.rolling,
            topics=summaries.topics,
            daily=summaries.daily,
            daily_scheduler=summaries.daily_scheduler,
            users=Users(
                database,
                default_timezone=settings.default_timezone,
                default_locale=settings.default_locale,
            ),
            spaces=Spaces(database),
            visits=Visits(database, jobs, visit_schedule(settings)),
            memory=memory,
            index_rebuild=IndexRebuild(
                database, memory, knowledge, episodes=settings.memory_episodes, standby=engines.standby
            ),
            memory_inquiry=MemoryInquiry(memory.core, memory.values, memory.episodes, memory.recall, models),
            user_activity=user_activity,
            past_days=days,
            upkeep=background.upkeep,
            upkeep_scheduler=background.scheduler,
            reflection=background.reflection,
            filing=background.filing,
            experiments=experiments,
            experiment_reports=ExperimentReports(database, experiments),
            jobs=jobs,
            erasure=removal.erasure,
            retention_rules=removal.retention_rules,
            retention=removal.retention,
            store=Store(
                database,
                embedder,
                jobs,
                default_timezone=settings.default_timezone,
                default_locale=settings.default_locale,
            ),
            importer=make_importer(settings, database, jobs),
            exporter=Exporter(ExportStore(database)),
        )
