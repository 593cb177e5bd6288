import pytest

from benchmarks.capacity_model import Demands, Habits, machines_for, most_turns_per_s

DEMANDS = Demands(api_ms=20, postgres_ms=4, redis_ms=1, load_ms=5, bytes_stored=10_000)


def test_processes_add_until_the_cores_are_used_up() -> None:
    assert most_turns_per_s(DEMANDS, 1, 2, with_load=True) == 50
    assert most_turns_per_s(DEMANDS, 2, 2, with_load=True) == pytest.approx(2000 / 30)
    assert most_turns_per_s(DEMANDS, 2, 2, with_load=False) == pytest.approx(80)
    assert most_turns_per_s(DEMANDS, 4, 16, with_load=False) == 200


def test_machines_follow_from_the_busiest_hour() -> None:
    habits = Habits(messages_a_day=36, busiest_hour=0.5, answer_s=10, busy=0.5)
    machines = machines_for(10_000, DEMANDS, habits)
    assert (machines.turns_per_s, machines.open_streams) == (50, 500)
    assert (machines.api_processes, machines.cores) == (2, 3)
    assert machines.gb_a_year == pytest.approx(10_000 * 36 * 365 * 10_000 / 1e9)
    assert machines_for(1, DEMANDS, habits).api_processes == 1
