"""The order of what is found loses to nothing that the legs say by themselves."""

from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from services.evaluation.dataset import load
from services.llm.builtin_embeddings import NAME
from services.search.legs import by_meaning, by_words, fused
from services.search.queries import Heads, make_query
from services.search.ranking import score
from services.text.tokenizer import terms
from training.scorecard import figures_of
from training.stores import Said, encode, stores_of, working_set

_KINDS = Path(__file__).parents[3] / "training" / "data" / "kinds"
"""Mails, notes, a project, long answers and Traditional Chinese, of which nothing was learned."""


@pytest.mark.parametrize("cut", [5, 10])
def test_kinds_of_text_that_nothing_was_learned_from_are_found_as_well_as_by_the_legs(cut: int) -> None:
    found = {name: np.mean(values) for name, values in figures_of(_KINDS)[""].items()}
    for other in ("BM25", "encoder", "fusion"):
        assert found[f"recall@{cut}"] >= found[f"{other}@{cut}"] - 0.01, other


def test_the_first_ten_hold_what_the_legs_find_first() -> None:
    dataset, heads = load(_KINDS), Heads.of(NAME)
    [messages] = stores_of(dataset).values()
    units = working_set(messages)
    mask, exchange = units.within(), units.overview().exchange
    asked = [
        *chain((each.text for each in dataset.questions), ("My cat fell. I felt sorry. Which paint was it?",))
    ]
    queries = [query for text in asked if (query := make_query(text))]
    assert sum(bool(query.parts) for query in queries) > 2
    for query in queries:
        vectors = np.asarray(query.vectors(encode(list(query.embedded))), dtype=np.float32)
        words = by_words(query, terms(query.text), units, mask)
        plain = fused(words, by_meaning(query, vectors, units, mask, heads), mask)
        ordered = score(query, vectors, units, mask, heads).places[:10]
        share = 0.6 if query.parts else 0.8
        first = [at for at in np.argsort(-plain, kind="stable")[:5] if plain[at] >= share * plain.max()]
        assert {*exchange[first].tolist()} <= {*exchange[ordered].tolist()}


def test_a_long_exchange_has_one_place_among_the_first_and_a_short_one_two() -> None:
    answers = (
        "Chimney sweeps bring luck.",
        "Chimney sweeps bring luck. " + "They are paid well for what they do. " * 12,
    )
    at = datetime(2026, 1, 1, tzinfo=UTC)
    told = [
        Said(f"{place}", text, "", role, f"{number}", at + timedelta(days=number, minutes=place))
        for number, answer in enumerate(answers)
        for place, (role, text) in enumerate((("user", "Our chimney sweep came."), ("assistant", answer)))
    ]
    other = [
        Said(f"{day}", f"Day {day} went by.", "", "user", f"d{day}", at + timedelta(days=day)) for day in range(9)
    ]
    units = working_set([*told, *other])
    query = make_query("When did the chimney sweep come?")
    assert query is not None
    vectors = np.asarray(query.vectors(encode(list(query.embedded))), dtype=np.float32)
    found = score(query, vectors, units, units.within(), Heads.of(NAME)).places.tolist()
    assert {*found[:3]} == {0, 1, 2} or {*found[:3]} == {0, 1, 3}
    assert {found[-1]} | {*found[:3]} == {0, 1, 2, 3}
