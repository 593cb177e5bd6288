"""Reasoning between tags, apart from the answer."""

from collections.abc import Sequence

import pytest

from services.llm.streams.text import Reasoning, Retraction, Said, ThinkStyles, ThinkTags, may_think_first

# An answer in pieces, whether it is expected to begin with reasoning, its reasoning, and its text
CASES: dict[str, tuple[Sequence[str], bool, str, str]] = {
    "tags": (["<think>Hm.</think>\n\nYes."], False, "Hm.", "Yes."),
    "tags in pieces": (["<th", "ink>H", "m.</th", "ink>\n", "\nYes", "."], False, "Hm.", "Yes."),
    "other names": (["\n<thinking>Hm.</thinking>Yes."], False, "Hm.", "Yes."),
    "Magistral": (["[THI", "NK]Hm.[/THINK]Yes."], False, "Hm.", "Yes."),
    "Kimi": (["◁think▷Hm.◁/think▷Yes."], False, "Hm.", "Yes."),
    "empty": (["<think>\n\n</think>\n\nYes."], False, "\n\n", "Yes."),
    "twice": (["<think>Hm.</think>\n<think>So.</think>Yes."], False, "Hm.So.", "Yes."),
    "never closed": (["<think>Hm. Yes."], False, "Hm. Yes.", ""),
    "no opening tag": (["Hm.\n", "</think>", "\n\nYes."], False, "Hm.\n", "Yes."),
    "no opening tag, at the end of a line": (["Hm.</think>", "\n\nYes."], False, "Hm.", "Yes."),
    "no opening tag, expected": (["Hm.", "</thi", "nk>Yes."], True, "Hm.", "Yes."),
    "expected in vain": (["Yes", "."], True, "Yes.", "Yes."),
    "expected, with both tags": (["<think>Hm.", "</think>Yes."], True, "Hm.", "Yes."),
    "a comparison": (["a <", " b [", "1] <i", ">"], False, "", "a < b [1] <i>"),
    "about tags": (["It ends with </think> ", "then.\n"], False, "", "It ends with </think> then.\n"),
    "in code": (["Use `", "</think>", "`:\n", "yes"], False, "", "Use `</think>`:\nyes"),
    "in a fence": (["```\n</think>\n```"], False, "", "```\n</think>\n```"),
    "quoted with its opening tag": (["Say <think>\nx\n</think>\nso"], False, "", "Say <think>\nx\n</think>\nso"),
    "begins with a tag of its own": (["<thinkpad> is a name"], False, "", "<thinkpad> is a name"),
}  # fmt: skip


@pytest.mark.parametrize("letter_by_letter", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_reasoning_and_text_are_told_apart(name: str, letter_by_letter: bool) -> None:
    pieces, expected, reasoning, text = CASES[name]
    tags, said, thoughts = ThinkTags(thinks_first=expected), Said(), ""

    for piece in "".join(pieces) if letter_by_letter else pieces:
        for part in tags.feed(piece):
            said(part)
            thoughts += part if isinstance(part, Reasoning) else ""
    for part in tags.end():
        said(part)
        thoughts += part if isinstance(part, Reasoning) else ""

    assert (thoughts, said.text) == (reasoning, text)


def test_text_before_a_tag_is_held_only_where_reasoning_is_expected() -> None:
    assert ThinkTags().feed("Hello") == ["Hello"]
    held = ThinkTags(thinks_first=True).feed("Hello")
    assert held == ["Hello"]
    assert isinstance(held[0], Reasoning)


def test_retraction_names_all_that_was_passed_on() -> None:
    tags = ThinkTags()
    passed = [*tags.feed("Hm, "), *tags.feed("well.\n")]
    assert [type(piece) for piece in passed] == [str, str]

    retraction, reasoning, text = tags.feed("</think>\nYes.")

    assert isinstance(retraction, Retraction)
    assert retraction == reasoning == "Hm, well.\n"
    assert text == "Yes."


def test_text_of_an_endpoint_with_a_field_for_reasoning_is_not_searched() -> None:
    tags = ThinkTags(thinks_first=True)
    tags.feed("So ")
    assert tags.reasoning_is_apart() == ["So "]
    assert tags.feed("far.\n</think>\n") == ["far.\n</think>\n"]


@pytest.mark.parametrize(
    ("model", "thinks"),
    [
        ("deepseek-r1:7b", True),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", True),
        ("Qwen/QwQ-32B", True),
        ("Qwen3-4B-Thinking-2507", True),
        ("gpt-5.5", False),
        ("llama-3.1-8b", False),
        ("mistral-r1000", False),
    ],
)
def test_names_of_models_whose_template_opens_the_tag(model: str, thinks: bool) -> None:
    assert may_think_first(model) == thinks


def test_what_a_model_did_decides_over_its_name() -> None:
    styles = ThinkStyles()
    plain, closed = ThinkTags(), ThinkTags()
    plain.feed("Yes.")
    closed.feed("Hm.\n</think>\n")
    styles.learn("some-r1", plain)
    styles.learn("other", closed)
    styles.learn("other", plain)

    assert not styles.think_first("some-r1")
    assert styles.think_first("other"), "it may do without now and then"
