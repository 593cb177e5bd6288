"""The importer, made from settings."""

from services.jobs.queue import JobQueue
from services.platform.postgres import Database
from services.platform.settings import Settings
from services.summaries.schedule import summary_schedule
from services.text.secrets import Secrets
from services.transfer.importer import Importer
from services.visits.visit import visit_schedule


def make_importer(settings: Settings, database: Database, jobs: JobQueue) -> Importer:
    """Make the importer of lines; a command needs nothing else."""
    return Importer(
        database,
        jobs,
        summary_schedule(settings),
        visit_schedule(settings),
        episodes=settings.memory_episodes,
        default_timezone=settings.default_timezone,
        secrets=Secrets(settings.memory_keep_secrets),
    )
