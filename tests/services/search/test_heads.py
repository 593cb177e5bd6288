"""What is learned of the built-in encoder."""

import numpy as np
import pytest

from services.llm.builtin_embeddings import NAME
from services.search.heads import Heads
from services.search.queries import make_query
from services.search.selection import Floor


def test_a_message_is_turned_a_little_and_keeps_its_length() -> None:
    heads = Heads.of(NAME)
    assert heads is not None
    drawn = np.random.default_rng(3).normal(size=(20, heads.matching.shape[2])).astype(np.float32)
    vectors = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    turned = heads.turned(vectors)
    assert np.linalg.norm(turned, axis=1) == pytest.approx(1, abs=1e-5)
    cosines = (turned * vectors).sum(axis=1)
    assert (cosines > 0.5).all()
    assert (cosines < 0.9999).all()


def test_another_encoder_has_no_heads() -> None:
    assert Heads.of("text-embedding-3-small") is None


@pytest.mark.parametrize("asked", ["Which director did you mention?", "你上次推荐的是哪位导演？"])
def test_what_the_assistant_said_is_asked_for_like_ones_own_affairs(asked: str) -> None:
    query, other = make_query(asked), make_query("Which director made that film?")
    assert query is not None
    assert other is not None
    assert Floor.of(query).likelihood < Floor.of(other).likelihood
