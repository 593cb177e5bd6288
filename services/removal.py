"""Services that remove what users said: forgetting with receipts, erasure, retention."""

from dataclasses import dataclass

from services.conversations.event_log import EventLog
from services.conversations.leases import TurnLeases
from services.erasure.conversations import ConversationErasure
from services.erasure.erasure import Erasure
from services.erasure.spaces import SpaceErasure
from services.erasure.stores import ErasureStores
from services.erasure.traces import Traces
from services.forgetting.forgetting import Forgetting
from services.forgetting.key_renewal import KeyRenewal
from services.forgetting.receipts import ReceiptKey, Receipts
from services.forgetting.targets import TargetPlanner
from services.jobs.queue import JobQueue
from services.lineage.tracing import Lineage
from services.memory.retraction import RebuildTasks
from services.memory.wiring import Memory
from services.platform.postgres import Database
from services.platform.settings import Settings
from services.retention.retention import Retention
from services.retention.rules import RetentionRules


@dataclass(frozen=True)
class RemovalServices:
    """Services that remove what users said."""

    forgetting: Forgetting
    erasure: Erasure
    conversation_erasure: ConversationErasure
    space_erasure: SpaceErasure
    retention_rules: RetentionRules
    retention: Retention


def make_removal(
    settings: Settings,
    database: Database,
    memory: Memory,
    leases: TurnLeases,
    events: EventLog,
    jobs: JobQueue,
    rebuilding: RebuildTasks,
) -> RemovalServices:
    """Wire them and register their jobs in the queue.

    Args:
        settings: of the service.
        database: where everything is stored.
        memory: whose caches and index lose what is removed.
        leases: of running turns, which are stopped before their conversation is removed.
        events: of turns, which are removed with them.
        jobs: the queue.
        rebuilding: the jobs that make again what was derived from something forgotten.
    """
    stores = ErasureStores(
        database,
        leases,
        Traces(events, memory.core_cache),
        memory.index,
        memory.operations,
        jobs,
        events_keep_s=settings.turn_events_keep_s,
    )
    conversation_erasure = ConversationErasure(stores, shares_human=settings.memory_share_human)
    rules = RetentionRules(database)
    lineage = Lineage(database)
    forgetting = Forgetting(
        stores,
        lineage,
        TargetPlanner(database, lineage, memory.changes),
        memory.retraction,
        Receipts(database, ReceiptKey(settings.data_dir, settings.receipt_key_file)),
        rebuilding,
        on_forgotten=memory.drop_cached,
        keys=KeyRenewal(database, jobs),
    )
    return RemovalServices(
        forgetting=forgetting,
        erasure=Erasure(stores, on_erased=memory.drop_cached),
        conversation_erasure=conversation_erasure,
        space_erasure=SpaceErasure(stores, on_erased=memory.drop_cached),
        retention_rules=rules,
        retention=Retention(database, rules, conversation_erasure, jobs),
    )
