"""The order of what is found loses to nothing that the legs say by themselves."""

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
from training.stores import encode, stores_of, working_set

_KINDS = Path(__file__).parents[3] / "training" / "data" / "kinds"
"""Mails, notes, a project, long answers and Traditional Chinese, of which nothing was learned."""


@pytest.mark.parametrize("cut", [5, 10])
def test_kinds_of_text_that_nothing_was_learned_from_are_found_as_well_as_by_the_legs(cut: int) -> None:
    found = {name: np.mean(values) for name, values in figures_of(_KINDS)[""].items()}
    for other in ("BM25", "encoder", "fusion"):
        assert found[f"recall@{cut}"] >= found[f"{other}@{cut}"] - 0.01, other


def test_the_first_ten_for_several_sentences_hold_the_first_five_of_the_legs() -> None:
    dataset, heads = load(_KINDS), Heads.of(NAME)
    [messages] = stores_of(dataset).values()
    units = working_set(messages)
    mask = units.within()
    asked = [
        *chain((each.text for each in dataset.questions), ("My cat fell. I felt sorry. Which paint was it?",))
    ]
    several = [query for text in asked if (query := make_query(text)) and query.parts]
    assert len(several) > 2
    for query in several:
        vectors = np.asarray(query.vectors(encode(list(query.embedded))), dtype=np.float32)
        words = by_words(query, terms(query.text), units, mask)
        plain = fused(words, by_meaning(query, vectors, units, mask, heads), mask)
        ordered = score(query, vectors, units, mask, heads).places[:10]
        assert {*np.argsort(-plain)[:5].tolist()} <= {*ordered.tolist()}
