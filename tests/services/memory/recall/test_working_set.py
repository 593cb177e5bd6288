"""A working set whose units were removed ranks those that are left as a new set of them does."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np

from services.memory.recall.unit_arrays import KeptUnit
from services.memory.recall.unit_loading import content_of
from services.memory.recall.working_set import WorkingSet
from services.text.tokenizer import terms

DIMENSION = 8
BEGUN = datetime(2026, 3, 1, tzinfo=UTC)
TEXTS = ("My dog is called Bruno.", "We moved to Lisbon in May, near the river.", "我家的狗叫布鲁诺，今年三岁。")


def _kept(number: int) -> KeptUnit:
    return KeptUnit(
        unit_id=UUID(int=number + 1 << 70 | number),
        episode_id=UUID(int=number + 7),
        conversation_id=UUID(int=1),
        episode_type="turn",
        said_at=BEGUN + timedelta(minutes=number),
        waiting=False,
        text_hash=number,
        content=content_of(TEXTS[number % 3], None, "user", written=False),
        vector=np.random.default_rng(number).normal(size=DIMENSION).tolist(),
    )


def _scores(units: WorkingSet) -> dict[UUID, tuple[float, float]]:
    mask = units.within()
    [words], _ = units.by_words([terms("What is my dog called? 我的狗叫什么名字？")], mask)
    [cosines] = units.by_meaning(np.ones((1, DIMENSION), dtype=np.float32))
    return {
        units.unit_id(place): (round(float(words[place]), 6), round(float(cosines[place]), 6))
        for place in mask.nonzero()[0].tolist()
    }


def test_places_of_what_is_gone_are_given_up_and_nothing_else_changes() -> None:
    every = [_kept(number) for number in range(600)]
    units, fresh = WorkingSet(DIMENSION), WorkingSet(DIMENSION)
    units.replace({unit.episode_id for unit in every}, every)
    before = units.nbytes
    units.replace({unit.episode_id for unit in every[:400]}, [])
    fresh.replace((), every[400:])
    assert (len(units), units.nbytes < before) == (200, True)
    assert _scores(units) == _scores(fresh)


def test_embeddings_are_given_of_living_units_that_have_one() -> None:
    every = [_kept(number) for number in range(3)]
    units = WorkingSet(DIMENSION)
    units.replace((), [*every[:2], replace(every[2], vector=None)])
    units.replace([every[0].episode_id], [])
    found = units.embeddings_of({unit.unit_id for unit in every} | {UUID(int=5)})
    assert list(found) == [every[1].unit_id]
    wanted = np.array(every[1].vector)
    assert float(found[every[1].unit_id] @ wanted) > 0.999 * float(np.linalg.norm(wanted))
