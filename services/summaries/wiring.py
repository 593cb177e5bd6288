"""Summaries, made once: those of conversations, and those of visits and days."""

from services.jobs.queue import JobQueue
from services.llm.chat_models import ChatModels
from services.platform.postgres import Database
from services.platform.settings import Settings
from services.summaries.daily_scheduler import DailyScheduler
from services.summaries.daily_summaries import DailySummaries
from services.summaries.day_store import DayStore
from services.summaries.rolling_summaries import RollingSummaries
from services.summaries.store import SummaryStore
from services.summaries.topic_store import TopicStore
from services.summaries.topics import TopicArchive
from services.summaries.writer import SummaryWriter
from services.visits.visit import visit_schedule


class Summaries:
    """What summarises."""

    def __init__(self, settings: Settings, database: Database, models: ChatModels, jobs: JobQueue) -> None:
        """Make it; the jobs are registered in the queue."""
        writer = SummaryWriter(
            models,
            most_tokens=settings.memory_summary_max_tokens,
            chunk_tokens=settings.memory_summary_chunk_tokens,
        )
        self.rolling = RollingSummaries(SummaryStore(database), writer, settings, jobs)
        self.topics = TopicArchive(
            TopicStore(database),
            models,
            jobs,
            on=settings.memory_topics,
            keep_newest=settings.memory_summary_window_size,
        )
        schedule = visit_schedule(settings)
        self.daily = DailySummaries(DayStore(database), writer, schedule, jobs)
        self.daily_scheduler = DailyScheduler(database, self.daily, jobs, on=schedule.summaries)
