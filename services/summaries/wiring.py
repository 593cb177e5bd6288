"""Summaries, made once: those of conversations, and those of visits and days."""

from dataclasses import dataclass

from services.jobs.queue import JobQueue
from services.llm.chat_models import ChatModels
from services.platform.postgres import Database
from services.platform.settings import Settings
from services.summaries.daily_scheduler import DailyScheduler
from services.summaries.daily_summaries import DailySummaries, VisitSummaries
from services.summaries.day_store import DayStore
from services.summaries.day_writer import DayWriter
from services.summaries.rolling_summaries import RollingSummaries
from services.summaries.schedule import summary_schedule
from services.summaries.store import SummaryStore
from services.summaries.topic_store import TopicStore
from services.summaries.topics import TopicArchive
from services.summaries.writer import SummaryWriter
from services.visits.visit import visit_schedule


@dataclass(frozen=True)
class Summaries:
    """What summarises."""

    rolling: RollingSummaries
    topics: TopicArchive
    daily: DailySummaries
    daily_scheduler: DailyScheduler


def make_summaries(settings: Settings, database: Database, models: ChatModels, jobs: JobQueue) -> Summaries:
    """Wire it; the jobs are registered in the queue."""
    writer = SummaryWriter(models, most_tokens=settings.memory_summary_max_tokens)
    chunk_tokens = settings.memory_summary_chunk_tokens
    schedule = visit_schedule(settings)
    days = DayStore(database)
    day_writer = DayWriter(models, writer, chunk_tokens=chunk_tokens)
    daily = DailySummaries(days, VisitSummaries(days, day_writer, schedule, jobs), day_writer)
    return Summaries(
        rolling=RollingSummaries(
            SummaryStore(database), writer, summary_schedule(settings), jobs, chunk_tokens=chunk_tokens
        ),
        topics=TopicArchive(
            TopicStore(database),
            models,
            jobs,
            on=settings.memory_topics,
            keep_newest=settings.memory_summary_window_size,
        ),
        daily=daily,
        daily_scheduler=DailyScheduler(database, daily, jobs, on=schedule.summaries),
    )
