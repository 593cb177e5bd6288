"""Maintenance, made once."""

from dataclasses import dataclass

from services.jobs.queue import JobQueue
from services.maintenance.compared import ComparedMemories
from services.maintenance.fading import MemoryFading
from services.maintenance.findings import Findings
from services.maintenance.policy import MaintenancePolicies
from services.maintenance.scheduler import MaintenanceScheduler
from services.memory.wiring import Memory
from services.platform.postgres import Database
from services.platform.settings import Settings


@dataclass(frozen=True)
class Maintenance:
    """What keeps memory in order by a tenant's policy."""

    policies: MaintenancePolicies
    fading: MemoryFading
    findings: Findings
    scheduler: MaintenanceScheduler


def make_maintenance(settings: Settings, database: Database, memory: Memory, jobs: JobQueue) -> Maintenance:
    """Wire it; the jobs are registered in the queue."""
    policies = MaintenancePolicies(database)
    fading = MemoryFading(database, policies, memory.operations, jobs)
    findings = Findings(database, policies, ComparedMemories(database, memory.values), memory.proposals)
    scheduler = MaintenanceScheduler(
        database,
        policies,
        fading,
        findings,
        jobs,
        keep_days=settings.memory_compression_keep_days,
        on=settings.memory_episodes,
    )
    return Maintenance(policies, fading, findings, scheduler)
