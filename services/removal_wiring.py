"""Services that remove what users said: forgetting with receipts, erasure, retention."""

from services.conversations.event_log import EventLog
from services.conversations.leases import TurnLeases
from services.jobs.queue import JobQueue
from services.memory.blocks import Owner
from services.memory.lineage.tracing import Lineage
from services.memory.model import ChangeRequest
from services.memory.operations import Trigger
from services.memory.removal.erasures import Erasures
from services.memory.removal.expiry import Retention
from services.memory.removal.expiry_rules import RetentionRules
from services.memory.removal.hiding import RebuildTasks
from services.memory.removal.key_renewal import KeyRenewal
from services.memory.removal.receipts import ReceiptKey, Receipts
from services.memory.removal.stores import RemovalStores
from services.memory.removal.targets import PlanTopic, TargetPlanner
from services.memory.removal.wholes import WholeErasure
from services.memory.wiring import Memory
from services.platform.postgres import Database
from services.platform.settings import Settings
from state.memory import PlannedChange


class RemovalServices:
    """Services that remove what users said."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        memory: Memory,
        leases: TurnLeases,
        events: EventLog,
        jobs: JobQueue,
        rebuilding: RebuildTasks,
    ) -> None:
        """Make them and register their jobs; `rebuilding` names those that make again what is withdrawn."""
        stores = RemovalStores(
            database,
            leases,
            events,
            memory.core_cache,
            memory.index,
            memory.operations,
            jobs,
            events_keep_s=settings.turn_events_keep_s,
            on_removed=memory.drop_cached,
        )
        self.erasure = WholeErasure(stores, shares_human=settings.memory_share_human)
        self.retention_rules = RetentionRules(database)
        self.retention = Retention(database, self.retention_rules, self.erasure, jobs)
        self.forgetting = Erasures(
            stores,
            Lineage(database),
            TargetPlanner(database, memory.values, _plan_topic(memory)),
            memory.hiding,
            Receipts(database, ReceiptKey(settings.data_dir, settings.receipt_key_file)),
            rebuilding,
            KeyRenewal(database, jobs),
        )


def _plan_topic(memory: Memory) -> PlanTopic:
    async def plan(owner: Owner, topic: str) -> PlannedChange:
        request = ChangeRequest.outside_of_turns(owner, Trigger("user"))
        return await memory.changes.planner.plan_everything(request, topic)

    return plan
