"""Maintenance, made once."""

from dataclasses import dataclass

from services.jobs.queue import JobQueue
from services.maintenance.fading import MemoryFading
from services.maintenance.policy import MaintenancePolicies
from services.memory.wiring import Memory
from services.platform.postgres import Database


@dataclass(frozen=True)
class Maintenance:
    """What keeps memory in order by a tenant's policy."""

    policies: MaintenancePolicies
    fading: MemoryFading


def make_maintenance(database: Database, memory: Memory, jobs: JobQueue) -> Maintenance:
    """Wire it."""
    policies = MaintenancePolicies(database)
    return Maintenance(policies, MemoryFading(database, policies, memory.operations, jobs))
