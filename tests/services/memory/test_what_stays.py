"""What stays of a text consists of whole clauses of it, whatever goes; what shares a clause is told, not cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.memory.reading.what_stays import clauses_of, says_more_than, what_stays
from services.memory.reading.words import repeats, says
from services.text.language import SEMICOLONS, sentences

_EDGES = " \n.,;!?。，；！？"
_CLAUSES = (
    "I live in Oslo",
    "my dog is called Rex",
    "my sister Ada works at Siemens",
    "she plays the tuba",
    "work as a nurse",
    "我住在上海",
    "女儿叫小米",
    "对花生过敏",
    "我姐姐是护士",
)
_JOINTS = (". ", ", and ", ", ", "; ", " and ", "。", "，", "! ", "？")


@pytest.mark.parametrize(
    ("message", "first", "second"),
    [
        ("I play chess on Mondays and train for a marathon.", "I play chess on Mondays", "train for a marathon"),
        ("记住：我女儿米拉七岁，对猫毛过敏。", "记住：我女儿米拉七岁", "对猫毛过敏"),
        ("My daughter Mila is seven and is allergic to cats.", "My daughter Mila is seven", "is allergic to cats"),
    ],
)
def test_what_shares_a_subject_with_what_goes_is_told(message: str, first: str, second: str) -> None:
    gone = what_stays(message, lambda clause: clause == first)
    assert (gone.text, gone.gone, gone.shared) == ("", (first, second), (message.strip(_EDGES),))
    kept = what_stays(message, lambda clause: clause == second)
    assert (kept.text.strip(_EDGES), kept.gone, kept.shared) == (first, (second,), ())


@pytest.mark.parametrize(
    ("message", "clauses"),
    [
        (
            "Remember that the wifi password is hunter2 and the router is in the attic.",
            ["Remember that the wifi password is hunter2", "the router is in the attic"],
        ),
        ("works as a nurse and lives in Oslo", ["works as a nurse", "lives in Oslo"]),
        ("对花生过敏，住在上海", ["对花生过敏", "住在上海"]),
        ("我得过肺炎，现在好了。", ["我得过肺炎", "现在好了"]),
        ("门锁密码是4711 猫粮在阳台，备用钥匙在花盆下", ["门锁密码是4711", "猫粮在阳台", "备用钥匙在花盆下"]),
        ("the alarm code is 4419; could you boil an egg?", ["the alarm code is 4419", "could you boil an egg"]),
        ("im a vegan and i commute by train", ["im a vegan", "i commute by train"]),
        ("我住在上海，是一名护士。", ["我住在上海", "是一名护士"]),
        ("I live in Oslo and Tom works at Siemens.", ["I live in Oslo", "Tom works at Siemens"]),
    ],
)
def test_clauses_that_stand_alone_are_cut_apart(message: str, clauses: list[str]) -> None:
    found = [each for sentence in sentences(message, SEMICOLONS) for each in clauses_of(sentence)]
    assert [each.text for each in found] == clauses
    assert all(each.stands for each in found)


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
    assert [each.text for sentence in sentences(message, SEMICOLONS) for each in clauses_of(sentence)] == [
        message.strip(_EDGES)
    ]


def test_a_sentence_that_speaks_of_who_was_named_before_stays() -> None:
    rest = what_stays("My son is called Otto. He is three. I like tea.", lambda clause: "Otto" in clause)
    assert (rest.text, rest.shared) == ("He is three. I like tea.", ())


def test_a_clause_between_two_with_one_subject_goes_alone() -> None:
    rest = what_stays("我叫王岚，在苏州开花店，养了一只猫叫豆豆。", lambda clause: "花店" in clause)
    assert (rest.text, rest.gone, rest.shared) == ("我叫王岚。养了一只猫叫豆豆。", ("在苏州开花店",), ())


@pytest.mark.parametrize(
    ("message", "removed", "stays"),
    [
        (
            "Please forget that I live in Oslo. I live in Bergen now, and my dog is called Bruno.",
            "I live in Oslo",
            "I live in Bergen now, and my dog is called Bruno.",
        ),
        (
            "Forget that my dog is called Rex. My dog loves the sea and my sister is a nurse.",
            "my dog is called Rex",
            "My dog loves the sea and my sister is a nurse.",
        ),
        ("请忘记我住在杭州。我现在住在上海，女儿叫小米。", "我住在杭州", "我现在住在上海，女儿叫小米。"),
    ],
)
def test_what_is_told_beside_an_order_to_forget_stays(message: str, removed: str, stays: str) -> None:
    assert what_stays(message, lambda clause: says(clause, removed)).text == stays


@pytest.mark.parametrize(
    ("clause", "what", "more"),
    [
        ("I'm allergic to peanuts and cats", "allergic to peanuts", True),
        ("I'm allergic to peanuts and cats", "peanuts and cats", False),
        ("我对花生和猫过敏", "对花生过敏", True),
        ("我有一只猫和一条狗", "我的猫", True),
        ("我有一只猫和一条狗", "我的猫和狗", False),
        ("moved the search from Otley to Ilkley", "Otley", True),
        ("My dog and my cat sleep on the sofa", "my cat", True),
        ("the wifi password is hunter2", "the wifi password", False),
        ("my dog is called Rex", "my dog", False),
        ("I live in Oslo", "where I live", False),
        ("I live in Oslo in a flat near my sister", "I live in Oslo", True),
        ("我乳糖不耐受而且晕车", "我晕车", True),
    ],
)
def test_a_clause_says_more_than_what_names_a_part_of_it(clause: str, what: str, more: bool) -> None:
    assert says_more_than(clause, what) is more


def test_an_answer_repeats_what_it_names() -> None:
    assert repeats("Oslo is forgotten", "I live in Oslo")
    assert repeats("Peanuts, I see", "I am allergic to peanuts")
    assert not repeats("Bruno is a fine name", "I am allergic to peanuts")


@given(
    st.lists(st.tuples(st.sampled_from(_CLAUSES), st.sampled_from(_JOINTS)), min_size=1, max_size=6),
    st.sampled_from(_CLAUSES),
)
def test_whatever_goes_the_rest_is_made_of_whole_clauses_in_their_order(
    parts: list[tuple[str, str]], removed: str
) -> None:
    message = "".join(clause + joint for clause, joint in parts)
    rest = what_stays(message, lambda clause: says(clause, removed))
    at = 0
    for kept in (each.text.strip(_EDGES) for each in sentences(rest.text, SEMICOLONS)):
        found = message.find(kept, at)
        assert found >= 0, (message, rest)
        at = found + len(kept)
    of_message = [each.text for sentence in sentences(message, SEMICOLONS) for each in clauses_of(sentence)]
    assert all(each in of_message for each in rest.gone)
    assert all(says(each, removed) or any(each in one for one in rest.shared) for each in rest.gone)
    assert not [each for each in of_message if says(each, removed) and each in rest.text and each not in rest.gone]
