"""A working set ranks as one that is made at once of what it holds, whatever came and went before."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np

from services.memory.recall.unit_arrays import KeptUnit
from services.memory.recall.unit_loading import content_of
from services.memory.recall.working_set import WorkingSet
from services.text.tokenizer import terms

DIMENSION = 8
BEGUN = datetime(2026, 3, 1, tzinfo=UTC)
TEXTS = (
    "My dog is called Bruno.",
    "What is my dog called?",
    "We moved to Lisbon in May, near the river.",
    "我家的狗叫布鲁诺，今年三岁。",
    "我住在哪里？",
    "Lovely, thank you for telling me about it.",
    "I prefer trains to planes. " * 12,
)
QUESTIONS = (
    "What is my dog's name?",
    "我的狗叫什么名字？",
    "Where do I live near the river?",
    "trains or planes?",
)


def kept(number: int, text: str, *, waiting: bool, vector: int | None, conversation: int) -> KeptUnit:
    content = content_of(text, None, "user", written=number % 5 == 0)
    return KeptUnit(
        unit_id=UUID(int=number + 1 << 70 | number),
        episode_id=UUID(int=number // 2 + 7),
        conversation_id=UUID(int=conversation) if conversation else None,
        episode_type="turn",
        said_at=BEGUN + timedelta(minutes=7 * (number % 13)),
        waiting=waiting,
        text_hash=hash(text),
        content=content,
        vector=None if vector is None else embedding(vector),
    )


def embedding(seed: int) -> list[float]:
    values: list[float] = np.random.default_rng(seed).normal(size=DIMENSION).tolist()
    return values


def ranked(
    units: WorkingSet, question: str
) -> list[tuple[UUID, float, float, UUID | None, UUID | None, list[float]]]:
    """What ranking reads of each unit: its scores, its neighbours, and what others share with it."""
    mask = units.within()
    places = mask.nonzero()[0].tolist()
    shared = units.by_rare_terms(places, terms(question), mask.nonzero()[0])
    (words, *_), _ = units.by_words([terms(question), *map(terms, QUESTIONS)], mask)
    [cosines] = units.by_meaning(np.array([embedding(1)], dtype=np.float32))
    near = units.overview()

    def unit(place: int) -> UUID | None:
        return units.unit_id(place) if place >= 0 else None

    return sorted(
        (
            units.unit_id(place),
            round(float(words[place]), 6),
            round(float(cosines[place]), 6),
            unit(int(near.previous[place])),
            unit(int(near.following[place])),
            np.sort(row).round(6).tolist(),
        )
        for place, row in zip(places, shared, strict=True)
    )


Stored = dict[UUID, list[KeptUnit]]


def take_in(units: WorkingSet, stored: Stored, written: Sequence[KeptUnit], gone: Sequence[UUID]) -> None:
    """As a transaction changes what is stored, and a set then learns of it."""
    changed: Stored = {episode_id: [] for episode_id in gone}
    for unit in {each.unit_id: each for each in written}.values():
        changed.setdefault(unit.episode_id, []).append(unit)
    stored.update(changed)
    told = []
    for unit in (each for episode in changed.values() for each in episode):
        same = units.knows(unit.unit_id, unit.text_hash)
        told.append(unit if not same else _without_content(unit))
    units.replace(changed, told)


def _without_content(unit: KeptUnit) -> KeptUnit:
    values = {name: getattr(unit, name) for name in KeptUnit.__slots__}
    return KeptUnit(**{**values, "content": None})


def test_places_of_what_is_gone_are_given_up_and_nothing_else_changes() -> None:
    units = WorkingSet(DIMENSION)
    stored: Stored = {}
    every = [kept(number, TEXTS[number % 7], waiting=False, vector=2, conversation=1) for number in range(600)]
    take_in(units, stored, every, [])
    before = units.nbytes
    take_in(units, stored, [], [unit.episode_id for unit in every[:400]])
    fresh = WorkingSet(DIMENSION)
    fresh.replace(stored, [unit for episode in stored.values() for unit in episode])
    assert (len(units), units.nbytes < before) == (200, True)
    for question in QUESTIONS:
        assert ranked(units, question) == ranked(fresh, question)


def test_a_unit_is_compared_with_what_was_said_before_and_after_it() -> None:
    units = WorkingSet(DIMENSION)
    said = [(1, 3, 1), (2, 3, 1), (3, None, 1), (4, 3, 2)]  # number, embedding, conversation
    units.replace(
        (),
        [
            kept(number, TEXTS[0], waiting=False, vector=vector, conversation=conversation)
            for number, vector, conversation in said
        ],
    )
    before, after = units.by_neighbours(np.arange(4)).round(2).tolist()
    assert before == [0.0, 1.0, 0.0, 0.0]  # the third has no embedding, the last nobody before it
    assert after == [1.0, 0.0, 0.0, 0.0]
