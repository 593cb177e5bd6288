"""A working set whose units were removed ranks those that are left as a new set does, by their passages."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np

from services.memory.episodes.episode import PassageId
from services.memory.recall.unit_arrays import UnitRow
from services.memory.recall.unit_loading import Found, take_in
from services.memory.recall.working_set import WorkingSet
from services.text.passages import passages_of
from services.text.tokenizer import terms

DIMENSION = 8
BEGUN = datetime(2026, 3, 1, tzinfo=UTC)
PASSAGES = 4
ABOUT = (
    "the orchard behind the mill",
    "a kitchen without a stove",
    "the train that leaves Antwerp",
    "an old clarinet",
)
TEXTS = (
    "My dog is called Bruno.",
    "We moved to Lisbon in May, near the river.",
    "我家的狗叫布鲁诺，今年三岁。",
    "\n\n".join(" ".join([f"For a while I have been writing about {about}."] * 9) for about in ABOUT),
)
ASKED = terms("What is my dog called? 我的狗叫什么名字？")


def _row(number: int) -> UnitRow:
    return UnitRow(
        episode_id=UUID(int=number + 7),
        unit_id=UUID(int=number + 1 << 70 | number),
        episode_type="turn",
        conversation_id=UUID(int=1),
        text=TEXTS[number % len(TEXTS)],
        created_at=BEGUN + timedelta(minutes=number),
        role="user",
        speaker=None,
        message_id=UUID(int=number + 1 << 70 | number),
        indexed=True,
    )


async def _taken_in(units: WorkingSet, numbers: Iterable[int]) -> None:
    rows = [_row(number) for number in numbers]
    known: dict[PassageId, Found] = {
        (row.unit_id, at): ("", np.random.default_rng([row.unit_id.int % 997, at]).normal(size=DIMENSION).tolist())
        for row in rows
        for at in range(len(passages_of(row.text or "")))
    }
    await take_in(units, rows, known, shared=False)


def _scores(units: WorkingSet) -> dict[UUID, tuple[float, float]]:
    mask = units.within()
    [words], _ = units.by_words([ASKED], mask)
    [cosines] = units.by_meaning(np.ones((1, DIMENSION), dtype=np.float32))
    return {
        units.unit_id(place): (round(float(words[place]), 6), round(float(cosines[place]), 6))
        for place in mask.nonzero()[0].tolist()
    }


async def test_places_of_what_is_gone_are_given_up_and_nothing_else_changes() -> None:
    units, fresh = WorkingSet(DIMENSION), WorkingSet(DIMENSION)
    await _taken_in(units, range(600))
    before = units.nbytes
    units.replace({UUID(int=number + 7) for number in range(400)}, [])
    await _taken_in(fresh, range(400, 600))
    assert (len(units), units.nbytes < before) == (50 * (3 + PASSAGES), True)
    assert _scores(units) == _scores(fresh)
    assert len(_scores(units)) == 200


async def test_a_long_unit_is_as_near_as_its_nearest_passage_and_found_by_it() -> None:
    units = WorkingSet(DIMENSION)
    await _taken_in(units, range(4))
    [long], _ = units.by_words([terms("Which train leaves Antwerp?")], units.within())
    assert np.flatnonzero(long).tolist() == [3]
    assert (
        units.best_passage(3, [terms("Which train leaves Antwerp?")], np.empty((0, DIMENSION), dtype=np.float32))
        == 2
    )
    cosines = [units.embeddings(np.array([place]))[0].sum() for place in range(3, 3 + PASSAGES)]
    [found] = units.by_meaning(np.ones((1, DIMENSION), dtype=np.float32))
    assert round(float(found[3]), 4) == round(float(max(cosines)), 4)


async def test_what_is_unchanged_keeps_its_passages_and_what_got_shorter_gives_them_up() -> None:
    units = WorkingSet(DIMENSION)
    await _taken_in(units, range(4))
    before = _scores(units)
    await take_in(units, [_row(3)], {}, shared=False)
    assert _scores(units) == before
    await take_in(units, [replace(_row(3), text="Only this is left.")], {}, shared=False)
    assert (len(units), _row(3).unit_id in _scores(units)) == (4, True)


async def test_embeddings_are_given_of_living_units_that_have_one() -> None:
    units = WorkingSet(DIMENSION)
    await _taken_in(units, range(2))
    await take_in(units, [_row(2)], {}, shared=False)
    units.replace([_row(0).episode_id], [])
    found = units.embeddings_of({_row(number).unit_id for number in range(3)} | {UUID(int=5)})
    assert list(found) == [_row(1).unit_id]
    wanted = np.random.default_rng([_row(1).unit_id.int % 997, 0]).normal(size=DIMENSION)
    assert float(found[_row(1).unit_id] @ wanted) > 0.999 * float(np.linalg.norm(wanted))
