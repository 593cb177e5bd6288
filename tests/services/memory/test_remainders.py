"""What is left of a message consists of whole clauses of it, whatever goes."""

import pytest

from services.memory.remainders import clauses_of, sentences_without, without
from services.text.language import sentences

_EDGES = " \n.,;!?。，；！？"


@pytest.mark.parametrize(
    ("message", "first", "second"),
    [
        ("I play chess on Mondays and train for a marathon.", "I play chess on Mondays", "train for a marathon"),
        ("我住在上海，是一名护士。", "我住在上海", "是一名护士"),
    ],
)
def test_what_shares_a_subject_goes_with_it_and_is_told(message: str, first: str, second: str) -> None:
    gone = without(message, lambda clause: clause == first)
    assert (gone.text, gone.gone, gone.also_gone) == ("", (first,), (second,))
    kept = without(message, lambda clause: clause == second)
    assert (kept.text.strip(_EDGES), kept.gone, kept.also_gone) == (first, (second,), ())


@pytest.mark.parametrize(
    "message",
    [
        "My dog and my cat sleep on the sofa.",
        "My dog is called Bruno and my wife and I live in Oslo.",
        "我爸是医生，我妈，我妹妹都住在上海。",
        "I would move if the rent fell and my wife agreed.",
        "If it rains, we stay at home and my son reads.",
        "因为房租贵，我搬走了。",
        "我花了1，500块买的。",
    ],
)
def test_what_cannot_be_divided_safely_is_one_clause(message: str) -> None:
    assert [each.text for sentence in sentences(message) for each in clauses_of(sentence)] == [
        message.strip(_EDGES)
    ]


def test_who_is_spoken_of_goes_with_the_sentence_that_names_them() -> None:
    rest = without("My son is called Otto. He is three. I like tea.", lambda clause: "Otto" in clause)
    assert (rest.text, rest.also_gone) == ("I like tea.", ("He is three",))


def test_an_answer_keeps_the_sentences_that_say_something_else() -> None:
    answer = "Noted: your dog is Bruno. Oslo is lovely in May!"
    assert sentences_without(answer, "My dog is called Bruno") == "Oslo is lovely in May!"
    assert sentences_without(answer, "it was so") == answer
