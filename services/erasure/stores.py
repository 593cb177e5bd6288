"""The stores that hold something of users, for whatever removes from them."""

from dataclasses import dataclass

from services.conversations.leases import TurnLeases
from services.erasure.traces import Traces
from services.jobs.queue import JobQueue
from services.memory.episodes.index import EpisodeIndex
from services.memory.operations import OperationLog
from services.platform.postgres import Database

_LONGEST_TURN_S = 600 + 60


@dataclass(frozen=True, slots=True)
class ErasureStores:
    """Where something of a user is, and the queue that completes a removal."""

    database: Database
    leases: TurnLeases
    traces: Traces
    index: EpisodeIndex
    operations: OperationLog
    jobs: JobQueue
    events_keep_s: int
    """Seconds that the events of a turn stay after its end."""

    @property
    def recent_s(self) -> float:
        """Seconds after which a turn that began has no events any more, wherever it runs."""
        return _LONGEST_TURN_S + self.events_keep_s
