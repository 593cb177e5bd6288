"""Which periodic tasks are due, by a clock that somebody may set."""

from procrastinate import App
from procrastinate.testing import InMemoryConnector

from services.jobs.tasks import DueTicks

_DAY_S = 86_400
_NOON = 20_000 * _DAY_S + _DAY_S // 2


def _ticks() -> DueTicks:
    app = App(connector=InMemoryConnector())
    for name, cron in (("often", "* * * * * */5"), ("nightly", "17 4 * * *")):
        app.periodic(cron=cron)(app.task(name=name)(print))
    return DueTicks(registry=app.periodic_registry)


def _due(ticks: DueTicks, at: float) -> list[tuple[str, int]]:
    return [(periodic.task.name, tick) for periodic, tick in ticks.get_previous_tasks(at=at)]


def test_a_clock_set_forward_makes_one_tick_due_not_thousands() -> None:
    ticks = _ticks()
    _due(ticks, _NOON + 1)
    assert _due(ticks, _NOON + _DAY_S + 1) == [("often", _NOON + _DAY_S)]


def test_a_clock_set_back_does_not_stop_the_schedule() -> None:
    ticks = _ticks()
    _due(ticks, _NOON + 1)
    assert _due(ticks, _NOON - _DAY_S + 1) == [("often", _NOON - _DAY_S)]
    assert _due(ticks, _NOON - _DAY_S + 6) == [("often", _NOON - _DAY_S + 5)]


def test_a_nightly_task_that_was_slept_through_is_made_up_for() -> None:
    ticks = _ticks()
    night = _NOON - _DAY_S // 2 + (4 * 60 + 17) * 60
    assert ("nightly", night) in _due(ticks, night + 1)
    assert ("nightly", night + _DAY_S) in _due(ticks, _NOON + _DAY_S)
