import numpy as np
import pytest

from services.search.legs import sought
from services.search.queries import Utterance, make_query

SAID = (Utterance("user", "My sister Alma plays the violin."), Utterance("assistant", "Lovely!"))


def test_a_question_stands_for_itself() -> None:
    query = make_query("What does my sister Alma play in the orchestra?", SAID)
    assert query is not None
    assert (query.texts, query.asks, query.of_oneself) == ((query.text,), True, True)


@pytest.mark.parametrize(
    "message", ["She practises every evening.", "那她呢？", "那個鋼琴老師貴嗎？", "And when?"]
)
def test_a_message_that_goes_on_or_leaves_its_subject_open_is_sought_with_what_was_said(message: str) -> None:
    query = make_query(message, SAID)
    assert query is not None
    assert any("Alma" in said for said in query.context)
    assert 0 < query.context_share < 1


def test_sentences_are_sought_one_by_one_and_those_that_say_nothing_are_not() -> None:
    query = make_query("Oh! The weather is awful today! What is the name of the vet?")
    assert query is not None
    assert query.parts == ("The weather is awful today!", "What is the name of the vet?")
    assert query.embedded == query.parts
    assert query.vectors([[2.0, 0.0], [0.0, 1.0]]).tolist() == [[0.5, 0.5], [2.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize("message", ["Write a poem about spring.", "什么是复利？", "How do I boil rice?"])
def test_work_is_told_from_what_is_asked_of_oneself(message: str) -> None:
    query = make_query(message)
    assert query is not None
    assert query.wants_work


def test_of_many_sentences_those_that_ask_are_sought_and_count_at_least_half() -> None:
    talk = (
        "The rain stopped. The market was full. I met a neighbour. We had soup. The bus was late. I read a book."
    )
    query = make_query(f"{talk} What is the name of the vet?")
    assert query is not None
    assert len(query.parts) == 6
    assert query.parts[-1] == "What is the name of the vet?"
    assert query.asking == (False, False, False, False, False, True)
    embeddings = np.eye(6)
    message = sought(query, query.vectors(embeddings))[0]
    assert message[5] == pytest.approx(5 * message[0], abs=1e-5)
    told = make_query(talk)
    assert told is not None
    assert all(told.asking)
