"""What is obeyed without a model: the listed forms with other people's fillings, and nothing else."""

import tomllib
from pathlib import Path

import pytest

from services.memory.reading import plain_forms as module
from services.memory.reading.plain_forms import plain_forms, says_yes
from state.memory import PlainForm

_HERE = Path(__file__).parent
_FORMS = sorted((Path(module.__file__).parent / "forms").glob("*.toml"))
_FILLED = [
    tuple(line.split("\t"))
    for language in ("en", "zh")
    for line in (_HERE / "data" / f"plain_forms_{language}.txt").read_text(encoding="utf-8").splitlines()
]
_OTHERS = [
    line.replace("\\n", "\n")
    for line in (_HERE / "data" / "no_plain_forms.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("# ")
]
"""Questions, quotations, pasted texts, negations, stories, words about keeping, idioms and tasks."""


def test_a_listed_form_is_obeyed_whatever_it_names() -> None:
    for kind, message in _FILLED:
        assert [each.kind for each in plain_forms(message)] == [kind], message


@pytest.mark.parametrize("path", _FORMS, ids=lambda path: path.name)
def test_the_list_is_short_enough_to_be_read(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    orders = {"before", "after", "forget", "leave_out", "remember", "standing"}
    assert ({"en", "zh"} if path.stem == "yes" else orders) <= set(tomllib.loads(text))


@pytest.mark.parametrize(
    ("message", "form"),
    [
        ("Please forget about Henrik!", ("forget", "Henrik", "", "en")),
        ("I moved. Remember that I live in Bath.", ("remember", "I live in Bath", "I moved.", "en")),
        ("From now on, answer in French.", ("standing", "From now on, answer in French", "", "en")),
        ("My PIN is 7741. Forget that.", ("forget_last", "", "My PIN is 7741.", "en")),
        ("Off the record: I quit.", ("off_record", "I quit", "", "en")),
        ("忘掉我對蝦過敏這件事。", ("forget", "我對蝦過敏這件事", "", "zh")),
        ("我对青霉素过敏，你记一下", ("remember", "我对青霉素过敏", "", "zh")),
        ("忘掉关于我妈的一切", ("forget_everything", "我妈", "", "zh")),
    ],
)
def test_a_form_is_read_word_for_word(message: str, form: tuple[str, str, str, str]) -> None:
    (found,) = plain_forms(message)
    assert (found.kind, found.what, found.rest, found.language) == form


def test_the_first_and_the_last_sentence_may_both_be_one() -> None:
    found = plain_forms("Remember that I take my tea black. It is Monday. Forget about Henrik.")
    assert [(each.kind, each.what) for each in found] == [
        ("remember", "I take my tea black"),
        ("forget", "Henrik"),
    ]
    assert plain_forms("It is Monday. Forget about Henrik. What is for dinner?") == []


def test_nothing_else_is_obeyed() -> None:
    assert [message for message in _OTHERS if plain_forms(message)] == []


@pytest.mark.parametrize(
    "message",
    [
        "",
        "Forget about Henrik.\nThanks",
        "Forget that " + "I like tea and " * 60,
        "Tea. " * 6 + "Forget about Bo.",
    ],
)
def test_a_text_to_work_on_is_no_order(message: str) -> None:
    assert plain_forms(message) == []


def test_a_message_that_shows_foreign_text_can_only_be_left_out() -> None:
    shown = 'She wrote "please pay the whole of the rent by Friday". '
    assert plain_forms(shown + "Forget about the rent.") == []
    assert [each.kind for each in plain_forms("Don't remember this: " + "x")] == ["leave_out"]
    assert all(isinstance(each, PlainForm) for each in plain_forms("Don't remember this."))


@pytest.mark.parametrize(
    "message",
    [
        "yes please",
        "Yes!! I said yes",
        "OK, thanks. And my tea?",
        "That’s right",
        "对，记下来",
        "好的谢谢",
        "嗯 对",
        "記吧",
    ],
)
def test_a_message_that_begins_with_a_yes_agrees(message: str) -> None:
    assert says_yes(message)


@pytest.mark.parametrize(
    "message",
    [
        "no",
        "ok?",
        "yes but not the Crown",
        "Yesterday we met.",
        "right now it rains",
        "对了，帮我查一下",
        "好像下雨了",
        "",
    ],
)
def test_other_beginnings_do_not(message: str) -> None:
    assert not says_yes(message)
