"""What is left of a message consists of whole clauses of it, whatever goes."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.memory.closure import tells_of
from services.memory.remainders import clauses, sentences_without, without
from services.text.language import sentences

_EDGES = " \n.,;!?。，；！？"


@dataclass(frozen=True)
class _Part:
    """A clause with what joins it to the one before it in its sentence; empty = it begins a sentence."""

    joint: str
    text: str
    whole: bool
    """Whether it has a subject of its own."""


@dataclass(frozen=True)
class _Message:
    """A message of which it is known where each clause stands."""

    text: str
    clauses: dict[int, _Part]
    """By where they begin."""

    @classmethod
    def of(cls, made: list[tuple[list[_Part], str]]) -> "_Message":
        """Write sentences, each with its end, one behind the other."""
        text, clauses = "", {}
        for parts, end in made:
            for part in parts:
                text += part.joint
                clauses[len(text)] = part
                text += part.text
            text += end
        return cls(text, clauses)

    def places(self, text: str) -> Iterator[int]:
        """Where a text begins with a clause that has a subject, and ends with a clause."""
        ends = {start + len(part.text) for start, part in self.clauses.items()}
        for start, part in self.clauses.items():
            if part.whole and self.text.startswith(text, start) and start + len(text) in ends:
                yield start


_SUBJECTS = {
    "en": (
        "My dog",
        "my sister Ada",
        "our neighbour's son",
        "my old car",
        "I",
        "we",
        "My cousin and her wife",
        "she",
    ),
    "zh": ("我", "我妹妹", "他", "我们", "我老婆", "我的狗", "她和她丈夫", "我爸", "我妈，我妹妹"),
}
_PREDICATES = {
    "en": (
        *("is called Bruno", "lives in Oslo", "plays the tuba", "kept a spare key under the mat", "has two cats"),
        *("works as a nurse and a cook", "was born on 3.5.1990", "likes salt, pepper and chives", "needs glasses"),
        *("would move if the rent fell", "thinks that Oslo is cold", "drives a red Volvo from 1998"),
    ),
    "zh": (
        *(
            "叫布鲁诺",
            "住在上海",
            "对花生过敏",
            "养了两只猫",
            "周一下象棋",
            "是护士",
            "爱吃盐、辣椒和葱",
            "1990年5月3日出生",
        ),
        *("因为房租贵搬走了", "觉得杭州太热", "在學陶藝", "开一辆红色的沃尔沃"),
    ),
}
_DEPENDENT = {
    "en": (
        "works as a nurse",
        "trains for a marathon",
        "has never seen the sea",
        "in winter",
        "for a good reason",
    ),
    "zh": ("是一名护士", "还在练马拉松", "没见过海", "每天都去", "在银行上班"),
}
_JOINTS = {
    "en": (" and ", ", and ", ", but ", "; ", ", ", " but ", " so ", ", which is why "),
    "zh": ("，", "；", "，但", "，而且", "，所以", ","),
}
_ENDS = {"en": (". ", "! ", "? ", ".\n"), "zh": ("。", "！", "？", "。\n", "\n")}


def _messages(language: str) -> st.SearchStrategy[_Message]:
    space = " " if language == "en" else ""
    whole = st.tuples(st.sampled_from(_SUBJECTS[language]), st.sampled_from(_PREDICATES[language])).map(space.join)
    joints, dependent = st.sampled_from(_JOINTS[language]), st.sampled_from(_DEPENDENT[language])
    first = st.builds(_Part, st.just(""), whole, st.just(True))
    later = st.one_of(
        st.builds(_Part, joints, whole, st.just(True)),
        st.builds(_Part, joints, dependent, st.just(False)),
    )
    parts = st.tuples(first, st.lists(later, max_size=3)).map(lambda made: [made[0], *made[1]])
    return st.lists(st.tuples(parts, st.sampled_from(_ENDS[language])), min_size=1, max_size=4).map(_Message.of)


def _check(message: _Message, sought: str) -> None:
    rest = without(message.text, lambda clause: tells_of(clause, sought))
    if not rest.gone:
        assert rest.text == message.text
        return
    for each in sentences(rest.text):
        text = each.text.strip().strip(_EDGES)
        assert any(True for _ in message.places(text)), f"{text!r} is no whole clause of {message.text!r}"
    assert not any(tells_of(each.text, sought) for each in clauses(rest.text)), rest


@settings(max_examples=60, database=None)
@given(_messages("en"), st.sampled_from((*_PREDICATES["en"], *_DEPENDENT["en"])))
def test_what_is_left_in_english_is_whole_clauses(message: _Message, sought: str) -> None:
    _check(message, sought)


@settings(max_examples=60, database=None)
@given(_messages("zh"), st.sampled_from((*_PREDICATES["zh"], *_DEPENDENT["zh"])))
def test_what_is_left_in_chinese_is_whole_clauses(message: _Message, sought: str) -> None:
    _check(message, sought)


@pytest.mark.parametrize(
    ("message", "first", "second"),
    [
        ("I play chess on Mondays and train for a marathon.", "I play chess on Mondays", "train for a marathon"),
        ("I live in Leipzig and work as a nurse.", "I live in Leipzig", "work as a nurse"),
        ("I have two cats and drive a Volvo.", "I have two cats", "drive a Volvo"),
        ("我住在上海，是一名护士。", "我住在上海", "是一名护士"),
        ("我周一下象棋，还在练马拉松。", "我周一下象棋", "还在练马拉松"),
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
        "I like salt, pepper and chives.",
        "I would move if the rent fell and my wife agreed.",
        "If it rains, we stay at home and my son reads.",
        "Does my sister live in Oslo and my brother in Bath?",
        "我爱吃盐、辣椒和葱。",
        "因为房租贵，我搬走了。",
        "我和妹妹，還有弟弟",
        "我花了1，500块买的。",
    ],
)
def test_what_cannot_be_divided_safely_is_one_clause(message: str) -> None:
    assert [each.text for each in clauses(message)] == [message.strip(_EDGES)]


def test_who_is_spoken_of_goes_with_the_sentence_that_names_them() -> None:
    rest = without("My son is called Otto. He is three. I like tea.", lambda clause: "Otto" in clause)
    assert (rest.text, rest.also_gone) == ("I like tea.", ("He is three",))


def test_an_answer_keeps_the_sentences_that_say_something_else() -> None:
    answer = "Noted: your dog is Bruno. Oslo is lovely in May!"
    assert sentences_without(answer, "My dog is called Bruno") == "Oslo is lovely in May!"
    assert sentences_without(answer, "it was so") == answer


def test_eight_kilobytes_are_divided_at_once() -> None:
    for part in ("，", "；", ", and ", "我是，", "I am, and ", "，是", " ", "\t", ".", "\n", "a", "忘"):
        for message in ((part * 8_000)[:8_000], "忘掉" + (part * 8_000)[:8_000], ((part * 900)[:900] + "。") * 9):
            begin = time.thread_time()
            clauses(message)
            assert time.thread_time() - begin < 1, f"quadratic work would take several seconds: {part!r}"
