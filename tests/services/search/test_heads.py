"""What is learned of the built-in encoder."""

import pytest

from services.llm.builtin_embeddings import NAME, BuiltinEncoder
from services.search.queries import Heads, MessageKind, make_query
from services.search.ranking import kind_of
from services.search.selection import Floor


def test_another_encoder_has_no_heads() -> None:
    assert Heads.of("text-embedding-3-small") is None
    query = make_query("What do penguins eat?")
    assert query is not None
    assert Floor.of(query, kind=kind_of([[1.0, 0.0]], None)) == Floor.of(query)


def test_greetings_tasks_and_general_questions_are_told_from_what_concerns_the_user() -> None:
    heads = Heads.of(NAME)
    assert heads is not None
    general = [
        "Good afternoon!",
        "Compose a sonnet about a lighthouse.",
        "法国的首都是哪里？",
        "把这段话翻译成英文。",
    ]
    personal = [
        "What is my sister's name?",
        "Where should we eat tonight?",
        "我对什么过敏？",
        "今天又去看牙医了。",
    ]
    told = [heads.kind_of(vector).nothing for vector in BuiltinEncoder().encode([*general, *personal])]
    assert min(told[:4]) > 0.5
    assert max(told[4:]) < 0.4


def test_what_somebody_likes_or_avoids_is_told_from_what_happened() -> None:
    heads = Heads.of(NAME)
    assert heads is not None
    likes = ["I'd rather not eat anything with olives.", "I love walking holidays.", "我不喜欢太甜的点心。"]
    happened = ["The parcel came this morning.", "My brother lives on the third floor.", "昨天下午去修了自行车。"]
    told = [heads.prefers.logit(vector) for vector in BuiltinEncoder().encode([*likes, *happened])]
    assert min(told[:3]) > 0 > max(told[3:])


def test_a_message_that_needs_nothing_asks_more_of_what_is_shown() -> None:
    query = make_query("Compose a sonnet about a lighthouse.")
    assert query is not None
    floors = [Floor.of(query, kind=MessageKind(nothing=each)).likelihood for each in (0.1, 0.9)]
    assert floors[0] < floors[1]


@pytest.mark.parametrize("asked", ["Which director did you mention?", "你上次推荐的是哪位导演？"])
def test_what_the_assistant_said_is_asked_for_like_ones_own_affairs(asked: str) -> None:
    query, other = make_query(asked), make_query("Which director made that film?")
    assert query is not None
    assert other is not None
    assert Floor.of(query).likelihood < Floor.of(other).likelihood
