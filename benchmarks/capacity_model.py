"""How many turns a second processes can carry, and what machines users need: arithmetic over measured demands.

The bounds are those of operational analysis (Denning and Buzen, 1978): no part can be busy for more than all of
the time, so that throughput is at most one over the demand on the busiest part.
"""

from dataclasses import dataclass
from math import ceil

_HOUR_S = 3600


@dataclass(frozen=True)
class Demands:
    """Resources that one turn takes."""

    api_ms: float
    """CPU of the API process, which uses one core at most."""
    postgres_ms: float
    redis_ms: float
    load_ms: float
    """CPU of what a benchmark runs on the same machine: the client and the stand-in for the model."""
    bytes_stored: float
    """In PostgreSQL, with indexes, for a message and its answer."""

    @property
    def service_ms(self) -> float:
        """CPU on all parts of the service."""
        return self.api_ms + self.postgres_ms + self.redis_ms


@dataclass(frozen=True)
class Habits:
    """How people use it; replace them by your own."""

    messages_a_day: float = 20
    busiest_hour: float = 0.2
    """Share of a day's messages."""
    answer_s: float = 10
    busy: float = 0.6
    """Share of a core that may be used in the busiest hour: beyond it, waiting grows quickly."""


@dataclass(frozen=True)
class Machines:
    """Machines that a number of users needs in the busiest hour."""

    users: int
    turns_per_s: float
    open_streams: float
    api_processes: int
    cores: int
    gb_a_year: float


def most_turns_per_s(demands: Demands, processes: int, cores: float, *, with_load: bool) -> float:
    """Bound of the throughput of some API processes on one machine.

    Args:
        demands: of a turn.
        processes: of the API.
        cores: that all of it shares.
        with_load: whether client and model run on these cores as well.
    """
    total_ms = demands.service_ms + (demands.load_ms if with_load else 0.0)
    return min(processes * 1000 / demands.api_ms, cores * 1000 / total_ms)


def machines_for(users: int, demands: Demands, habits: Habits | None = None) -> Machines:
    """Compute what a number of users needs."""
    habits = habits or Habits()
    rate = users * habits.messages_a_day * habits.busiest_hour / _HOUR_S
    return Machines(
        users,
        rate,
        rate * habits.answer_s,
        max(1, ceil(rate * demands.api_ms / 1000 / habits.busy)),
        max(1, ceil(rate * demands.service_ms / 1000 / habits.busy)),
        users * habits.messages_a_day * 365 * demands.bytes_stored / 1e9,
    )
