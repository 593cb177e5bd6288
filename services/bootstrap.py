"""Makes all services once, and closes them in reverse order: for the server, the worker, Studio and the tests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

from services.backlog import Backlog
from services.context.wiring import make_conversation, make_sources
from services.conversations.branches import Branches
from services.conversations.client_metadata import ClientMetadata
from services.conversations.event_log import EventLog
from services.conversations.experts import Experts
from services.conversations.explanation import Explanations
from services.conversations.feedback import TurnFeedback
from services.conversations.known_conversations import KnownConversations
from services.conversations.leases import TurnLeases
from services.conversations.naming import ConversationNames
from services.conversations.paused_turns import PausedTurns
from services.conversations.transcript import Transcript
from services.conversations.turns import Turns
from services.conversations.users import Spaces, Users
from services.engines import Engines, make_database
from services.events.feed import EventFeed
from services.events.webhooks import Webhooks
from services.experiments.experiments import Experiments
from services.identity.api_keys import ApiKeys
from services.identity.authentication import Authenticator, Tickets
from services.identity.operators import Operators
from services.identity.rate_limits import RateLimits
from services.index_rebuild import IndexRebuild
from services.jobs.queue import JobQueue, WorkerTimings
from services.knowledge.wiring import Knowledge
from services.llm.chat_models import ChatModels
from services.llm.embeddings import Embedder
from services.llm.token_estimates import TokenEstimators
from services.memory.filing.evidence import FilingEvidence
from services.memory.filing.filing import Filing, longest_wait_s
from services.memory.filing.store import FilingStore
from services.memory.lineage.prompt import PromptLineage
from services.memory.lineage.tracing import Lineage
from services.memory.proposals.wishes import FeedbackWishes
from services.memory.removal.erasures import Erasures
from services.memory.removal.expiry import Retention
from services.memory.removal.key_renewal import KeyRenewal
from services.memory.removal.receipts import ReceiptKey, Receipts
from services.memory.removal.stores import RemovalStores
from services.memory.removal.targets import TargetPlanner
from services.memory.removal.wholes import WholeErasure
from services.memory.upkeep.pairs import PairFinder
from services.memory.upkeep.past_plans import PastPlans
from services.memory.upkeep.scheduler import UpkeepScheduler
from services.memory.upkeep.upkeep import Upkeep
from services.memory.wiring import Memory
from services.platform import redis
from services.platform.embedded_milvus import Standby
from services.platform.milvus import Milvus
from services.platform.outgoing import OutgoingHttp
from services.platform.patience import CircuitBreaker, Probes
from services.platform.postgres import Database
from services.platform.recent_turns import RecentTurns
from services.platform.redis import RedisClient
from services.platform.settings import Settings
from services.promises.filed import FiledPromises
from services.promises.keeping import Keeping
from services.promises.logged import OPERATION, take_back
from services.promises.promises import Promises
from services.promises.quiet import QuietHours
from services.reflection.reflection import Reflection
from services.store.store import Store
from services.summaries.daily_scheduler import DailyScheduler
from services.summaries.daily_summaries import DailySummaries
from services.summaries.day_store import DayStore
from services.summaries.past_days import PastDays
from services.summaries.rolling_summaries import RollingSummaries
from services.summaries.store import SummaryStore
from services.summaries.topic_store import TopicStore
from services.summaries.topics import TopicArchive
from services.summaries.writer import SummaryWriter
from services.text.secrets import Secrets
from services.tools.wiring import Tools
from services.transfer.exporter import Exporter
from services.transfer.importer import Importer
from services.usage.budgets import Budgets
from services.usage.ledger import UsageLedger
from services.visits.visit import visit_schedule
from services.visits.visits import Visits


@dataclass(eq=False, repr=False)
class Connected:
    """Connections to stores and models, which are closed at the end."""

    settings: Settings
    database: Database
    redis: RedisClient
    milvus: Milvus
    models: ChatModels
    embedder: Embedder
    authenticator: Authenticator
    jobs: JobQueue
    usage: UsageLedger


async def connect(stack: AsyncExitStack, settings: Settings, engines: Engines) -> Connected:
    """Connect to the stores and the models; `stack` closes the connections."""
    database = make_database(settings, engines.database_url, engines.direct_url)
    stack.push_async_callback(database.close)
    await database.open()
    cache = redis.connect(settings.redis_url)
    stack.push_async_callback(redis.close, cache)
    milvus = Milvus(engines.milvus_uri, settings.milvus_token, engines.standby)
    stack.push_async_callback(milvus.close)
    models, embedder = await asyncio.to_thread(lambda: (ChatModels(settings), Embedder.of(settings)))
    stack.push_async_callback(models.close)
    stack.push_async_callback(embedder.close)
    authenticator = Authenticator(settings, database)
    stack.push_async_callback(authenticator.close)
    usage = UsageLedger(database)
    usage.open()
    stack.push_async_callback(usage.close)
    filing_s = longest_wait_s(settings.memory_filing_quiet_s, settings.memory_filing_pause_s)
    delays = (filing_s, settings.turn_events_keep_s)
    timings = WorkerTimings(longest_delay_s=max(delays) + 5 * 60)
    jobs = JobQueue(database, timings=timings, meter=usage.meter, at_once=settings.worker_jobs)
    stack.push_async_callback(jobs.close)
    await jobs.open()
    return Connected(settings, database, cache, milvus, models, embedder, authenticator, jobs, usage)


class Services(Connected):
    """All services; each node and route takes the few that it needs."""

    def __init__(
        self, connected: Connected, memory: Memory, tools: Tools, promises: Promises, standby: Standby | None
    ) -> None:
        """Make the services that are not given, and register their jobs in the queue."""
        super().__init__(**vars(connected))
        settings = self.settings
        self.probes, self.recent_turns = Probes(), RecentTurns()
        self.operators = Operators(self.authenticator, self.probes)
        self.memory = memory
        self.promises = promises
        self.tools, self.tool_executor = tools.registry, tools.executor
        self.approvals, self.mcp_servers = tools.approvals, tools.servers
        self._make_conversations()
        self._make_work_on_memory()
        self.knowledge = Knowledge(settings, self.database, self.milvus, self.embedder, self.jobs)
        self.index_rebuild = IndexRebuild(
            self.database, memory, self.knowledge, episodes=settings.memory_episodes, standby=standby
        )
        self.conversation = make_conversation(settings, self.database)
        self.sources = make_sources(settings, self.database, memory, self.past_days)
        self.importer = Importer(settings, self.database, self.jobs)
        self.exporter = Exporter(self.database)

    def with_others(self, **others: Any) -> Self:
        """Return these services with some replaced, by their names."""
        changed = copy(self)
        vars(changed).update(others)
        return changed

    def _make_conversations(self) -> None:
        """Make the services for callers, users, experts, conversations and turns."""
        settings, database, memory = self.settings, self.database, self.memory
        zone, locale = settings.default_timezone, settings.default_locale
        offline = self.models.offline
        self.api_keys = ApiKeys(database)
        self.tickets = Tickets(self.redis)
        has_limit = settings.turns_per_minute or settings.requests_per_minute
        self.rate_limits = RateLimits(settings, self.redis) if has_limit else None
        has_budget = settings.budget_user_tokens_per_day or settings.budget_tenant_tokens_per_day
        self.budgets = Budgets(settings, self.usage) if has_budget else None
        self.leases = TurnLeases(database, default_locale=locale)
        self.events = EventLog(
            self.redis, CircuitBreaker("Redis"), keep_s=settings.turn_events_keep_s, vault=database.vault
        )
        self.turns = Turns(
            database,
            self.jobs,
            visits=visit_schedule(settings),
            reflection=settings.memory_reflection and not offline,
            filing_quiet_s=None if offline else settings.memory_filing_quiet_s,
            default_timezone=zone,
            default_locale=locale,
            hiding=memory.hiding,
            secrets=Secrets(settings.memory_keep_secrets),
        )
        self.paused_turns = PausedTurns(database, wait_s=settings.client_tools_wait_s)
        self.feedback = TurnFeedback(database, FeedbackWishes(database, memory.proposals))
        self.transcript = Transcript(database)
        self.conversation_names = ConversationNames(database, self.transcript, self.models)
        self.branches = Branches(database, memory.undo)
        self.known_conversations = KnownConversations(database)
        self.explanations = Explanations(database)
        self.experts = Experts(database)
        self.client_metadata = ClientMetadata(database)
        self.users = Users(database, default_timezone=zone, default_locale=locale)
        self.spaces = Spaces(database)
        self.visits = Visits(database, self.jobs, visit_schedule(settings))
        self.estimators = TokenEstimators()
        self.experiments = Experiments(database)
        self.store = Store(database, self.embedder, self.jobs, default_timezone=zone, default_locale=locale)

    def _make_work_on_memory(self) -> None:
        """Make the services that trace memory, summarise, and work on memory in the background."""
        settings, database, memory, jobs = self.settings, self.database, self.memory, self.jobs
        self.lineage = Lineage(database)
        self.prompt_lineage = PromptLineage(database, self.lineage)
        writer = SummaryWriter(
            self.models,
            most_tokens=settings.memory_summary_max_tokens,
            chunk_tokens=settings.memory_summary_chunk_tokens,
        )
        self.summaries = RollingSummaries(SummaryStore(database), writer, settings, jobs)
        keep_newest, topics_on = settings.memory_summary_window_size, settings.memory_topics
        self.topics = TopicArchive(TopicStore(database), self.models, jobs, on=topics_on, keep_newest=keep_newest)
        schedule = visit_schedule(settings)
        self.daily = DailySummaries(DayStore(database), writer, schedule, jobs)
        self.daily_scheduler = DailyScheduler(database, self.daily, jobs, on=schedule.summaries)
        self.past_days = PastDays(self.daily, database, most_tokens=settings.memory_days_tokens)
        self._make_removal()
        self.filing = Filing(
            FilingStore(database, memory.operations),
            FilingEvidence(memory.changes.finder, memory.values, memory.foreign_origins),
            self.models,
            memory.changes.planner,
            memory.hiding,
            memory.proposals,
            jobs,
            FiledPromises(self.promises).make,
            self.feedback.complain,
            on=settings.memory_filing and (settings.memory_core or settings.memory_episodes),
            hears_mood=settings.memory_mood,
            grade=settings.memory_filing_grade,
            quiet_s=settings.memory_filing_quiet_s,
            pause_s=settings.memory_filing_pause_s,
        )
        pairs = PairFinder(self.models, self.embedder)
        self.upkeep = Upkeep(database, memory.values, pairs, memory.proposals.pairs, memory.operations)
        keeps_up = settings.memory_upkeep and settings.memory_episodes
        self.upkeep_scheduler = UpkeepScheduler(
            database,
            self.upkeep,
            PastPlans(database, memory.values, memory.changes.planner, memory.hiding),
            jobs,
            find_days=self.daily_scheduler.find if self.daily_scheduler.is_on else None,
            on=keeps_up,
        )
        self.event_feed = EventFeed(database)
        self.webhooks = Webhooks(database, jobs, private_origins=settings.webhook_origins)
        self.keeping = Keeping(
            database, self.models, jobs, following=self.promises.following, quiet_hours=settings.quiet_hours
        )
        self.backlog = Backlog(database, indexes=settings.memory_episodes, upkeep=keeps_up)
        self.reflection = Reflection(database, self.models, jobs, on=settings.memory_reflection)

    def _make_removal(self) -> None:
        """Make the services that remove what users said."""
        settings, database, memory, jobs = self.settings, self.database, self.memory, self.jobs
        stores = RemovalStores(
            database,
            self.leases.stop_all,
            self.events.delete,
            memory.index,
            memory.operations,
            jobs,
            events_keep_s=settings.turn_events_keep_s,
            on_removed=memory.drop_cached,
        )
        self.erasure = WholeErasure(stores)
        self.retention = Retention(database, self.erasure, jobs)
        self.forgetting = Erasures(
            stores,
            self.lineage,
            TargetPlanner(database, memory.values, memory.changes.planner),
            memory.hiding,
            Receipts(database, ReceiptKey(settings.data_dir, settings.receipt_key_file)),
            KeyRenewal(database, jobs),
        )


@asynccontextmanager
async def open_services(settings: Settings, engines: Engines) -> AsyncIterator[Services]:
    """Connect to the stores and wire the services. Raises `ConfigurationError` if the database's role or schema
    is not what the service needs."""
    async with AsyncExitStack() as stack:
        connected = await connect(stack, settings, engines)
        database, jobs = connected.database, connected.jobs
        memory = Memory(settings, database, connected.milvus, connected.embedder, jobs)
        stack.push_async_callback(memory.working_sets.close)
        http = OutgoingHttp()
        stack.push_async_callback(http.close)
        promises = Promises(database, memory.operations, memory.values)
        memory.undo.also(OPERATION, take_back)
        memory.undo.also(QuietHours.OPERATION, promises.quiet.take_back)
        tools = await asyncio.to_thread(Tools, settings, database, memory, promises, http)
        stack.push_async_callback(tools.servers.close)
        services = Services(connected, memory, tools, promises, engines.standby)
        stack.push_async_callback(services.knowledge.search.close)
        stack.push_async_callback(services.store.close)
        stack.push_async_callback(services.probes.close)
        stack.push_async_callback(services.event_feed.close)
        stack.push_async_callback(services.webhooks.close)
        yield services
