"""Users get variants by a stable hash: uniform, independent between experiments, and the same for ever."""

import hashlib
import math
from collections import Counter
from uuid import UUID

import pytest

from services.experiments.assignment import RunningExperiment, Variant, VariantSettings, assign, variant_of

pytestmark = pytest.mark.untraced

TENANT, OTHER = UUID(int=1), UUID(int=2)
EXPERIMENT = UUID(int=3)


def _variants(*weights: float) -> list[Variant]:
    return [Variant(name=chr(97 + n), weight=weight, settings={}) for n, weight in enumerate(weights)]


def _experiment(*weights: float, id: UUID = EXPERIMENT, share: float = 1.0) -> RunningExperiment:
    return RunningExperiment(id, f"x-{id.int}", _variants(*weights), share, None)


def _users(count: int) -> list[UUID]:
    return [UUID(bytes=hashlib.sha256(str(n).encode()).digest()[:16]) for n in range(count)]


def _name(experiment: RunningExperiment, user: UUID, tenant: UUID = TENANT) -> str | None:
    found = variant_of(tenant, experiment, user)
    return found["name"] if found else None


def test_the_documented_algorithm_gives_the_documented_variant() -> None:
    user = UUID("0190a000-0000-7000-8000-000000000042")
    text = f"00000000-0000-0000-0000-000000000001:00000000-0000-0000-0000-000000000003:{user}"
    digest = hashlib.sha256(text.encode()).hexdigest()
    place = int(digest[16:32], 16) / 2**64
    assert _name(_experiment(1, 1), user) == ("a" if place < 0.5 else "b")
    assert (_name(_experiment(1, 1, share=0.5), user) is not None) == (int(digest[:16], 16) / 2**64 < 0.5)


def test_variants_are_given_in_proportion_to_their_weights() -> None:
    users = _users(20_000)
    counts = Counter(_name(_experiment(1, 2, 7), user) for user in users)
    expected = {"a": 2000, "b": 4000, "c": 14_000}
    assert sum((counts[name] - count) ** 2 / count for name, count in expected.items()) < 13.8  # chi², p = 0.001


def test_a_larger_share_keeps_the_users_of_a_smaller_one_where_they_are() -> None:
    for user in _users(500):
        small = _name(_experiment(1, 1, share=0.2), user)
        assert small is None or small == _name(_experiment(1, 1, share=0.8), user)


def test_experiments_and_tenants_are_independent_of_each_other() -> None:
    users = _users(20_000)
    for one, other in (
        (_experiment(1, 1), _experiment(1, 1, id=UUID(int=4))),
        (_experiment(1, 1, share=0.5), _experiment(1, 1, id=UUID(int=4), share=0.5)),
    ):
        counts = Counter((_name(one, user), _name(other, user)) for user in users)
        rows, columns = (Counter[str | None]() for _ in range(2))
        for (row, column), count in counts.items():
            rows[row] += count
            columns[column] += count
        expected = {(row, column): rows[row] * columns[column] / len(users) for row in rows for column in columns}
        assert sum((counts[cell] - count) ** 2 / count for cell, count in expected.items()) < 18.5
    same = sum(_name(_experiment(1, 1), user) == _name(_experiment(1, 1), user, OTHER) for user in users)
    assert abs(same - 10_000) < 3.3 * math.sqrt(20_000 / 4)


def test_settings_of_several_experiments_come_together_and_experts_are_kept_apart() -> None:
    user = _users(1)[0]

    def only(number: int, settings: VariantSettings, experts: list[str] | None = None) -> RunningExperiment:
        variants = [Variant(name="on", weight=1, settings=settings)]
        return RunningExperiment(UUID(int=number), f"x-{number}", variants, 1, experts)

    running = [
        only(1, {"recall_items": 9}),
        only(2, {"model": "m"}, ["critic"]),
        only(3, {"model": "n"}, ["cook"]),
    ]
    found = assign(TENANT, user, "critic", running)
    assert found.names == {"x-1": "on", "x-2": "on"}
    assert found.settings == {"recall_items": 9, "model": "m"}
    assert set(found.variants) == {str(UUID(int=1)), str(UUID(int=2))}
    assert assign(TENANT, user, "critic", []).variants == {}
