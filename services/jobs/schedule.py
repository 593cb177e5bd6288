"""When periodic jobs are due, also after somebody has set the clock."""

from collections.abc import Iterable

from procrastinate.periodic import PeriodicDeferrer, TaskAtTime
from procrastinate.worker import Worker


class DueTicks(PeriodicDeferrer):
    """Defers each periodic task for its last tick.

    The library defers for every tick since the one before. A clock that is set forward by a day would then cost
    tens of thousands of statements, and one that is set back would stop all periodic tasks for as long.
    """

    def get_previous_tasks(self, at: float) -> Iterable[TaskAtTime]:
        """The tasks whose last tick before `at`, in seconds since 1970, differs from the one that was deferred."""
        for key, periodic in self.registry.periodic_tasks.items():
            tick = round(periodic.croniter.get_prev(ret_type=float, start_time=at))
            deferred = self.last_defers.get(key)
            if tick == deferred or (deferred is None and at - tick > self.max_delay):
                continue
            self.last_defers[key] = tick
            yield periodic, tick


class ScheduledWorker(Worker):
    """The library's worker, with this schedule."""

    async def _periodic_deferrer(self) -> None:
        await DueTicks(registry=self.app.periodic_registry).worker()
