"""What becomes of an operation of the filing model that rests on the user's words, and is about something else."""

from dataclasses import replace

import pytest

from services.memory.filing.answer import FilingOperation, filing_of_answer
from services.memory.filing.checks import Evidence, check, losing_nothing
from services.memory.model import Memory

pytestmark = pytest.mark.untraced

MUNICH = Memory("value", "v1", "moves to Munich in 2027", section="human", field="plans")
HOME = Memory("value", "v2", "Bergen", section="human", field="home")


def _evidence(message: str) -> Evidence:
    return Evidence({"u1": message}, [message], memories={"m1": MUNICH, "m2": HOME})


@pytest.mark.parametrize(
    ("message", "quote", "text", "becomes"),
    [
        # It is about neither: the memory stays, and nothing new that the user has not said is kept.
        ("I moved the sofa, Monday was long.", "Monday was long", "texts now California", ("replace", "drop")),
        # It is about something else that the user said: it is kept beside the memory.
        ("I moved the sofa to the left.", "the sofa to the left", "the sofa is on the left", ("add", "do")),
        ("It is Vienna after all, not Munich.", "Vienna after all", "moves to Vienna in 2027", ("replace", "do")),
    ],
)
def test_a_statement_replaces_a_memory_only_if_it_is_about_it(
    message: str, quote: str, text: str, becomes: tuple[str, str]
) -> None:
    wanted = FilingOperation("replace", quote, text, memory="m1")
    evidence = _evidence(message)
    operation = losing_nothing(wanted, evidence)
    assert (operation.kind, check(operation, evidence).verdict) == becomes


def test_a_value_is_replaced_as_a_user_states_it() -> None:
    evidence = _evidence("I live in Oslo now.")
    operation = losing_nothing(FilingOperation("replace", "I live in Oslo", "Oslo", memory="m2"), evidence)
    assert (operation.kind, check(operation, evidence).verdict) == ("replace", "do")


@pytest.mark.parametrize(
    ("message", "becomes"),
    [
        ("Forget about Munich, please.", "ask"),
        ("Don't forget the train to Munich.", "ask"),
        ("把慕尼黑的计划忘掉吧。", "ask"),  # a translation
        ("I had to remove the review, it was unfair.", "drop"),  # it says nothing of memory 1
    ],
)
def test_nothing_is_forgotten_and_the_user_is_asked_only_about_what_was_spoken_of(
    message: str, becomes: str
) -> None:
    operation = FilingOperation("forget", message, memory="m1")
    assert check(operation, _evidence(message)).verdict == becomes


@pytest.mark.parametrize(("is_strict", "becomes"), [(True, "drop"), (False, "ask")])
def test_a_model_that_files_well_knows_a_memory_by_other_words(is_strict: bool, becomes: str) -> None:
    evidence = replace(_evidence("Lose what I said about Bavaria."), is_strict=is_strict)
    operation = FilingOperation("forget", "Lose what I said about Bavaria", memory="m1")
    assert check(operation, evidence).verdict == becomes


@pytest.mark.parametrize("written", [r"\ud83d", r"\u0000"])
def test_what_the_database_rejects_in_a_text_is_left_out_of_it(written: str) -> None:
    answer = f'[{{"op": "add", "text": "likes tea{written}", "quote": "I like{written} tea"}}]'
    [operation] = filing_of_answer(answer, [], ["u1"]).operations
    assert (operation.text, operation.quote) == ("likes tea", "I like tea")


@pytest.mark.parametrize(
    ("theirs", "text", "becomes"),
    [
        ("Sam: the office party is on 12 December", "lives in Bergen, in the Sandviken part", "do"),
        ("Sam: he lives in Bergen, you know", "lives in Bergen, in the Sandviken part", "ask"),
        ("Sam: the office party is on 12 December", "the new flat has two rooms", "ask"),
    ],
)
def test_beside_words_of_others_a_memory_changes_if_they_do_not_name_it_and_the_user_speaks_of_it(
    theirs: str, text: str, becomes: str
) -> None:
    message = "We moved to Sandviken last weekend."
    home = replace(HOME, text="lives in Bergen")
    evidence = Evidence({"u1": message}, [message], foreign=[theirs], memories={"m2": home}, is_strict=False)
    operation = FilingOperation("replace", message, text, memory="m2")
    assert check(operation, evidence).verdict == becomes
