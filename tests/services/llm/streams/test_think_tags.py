"""Reasoning between tags, apart from the answer."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from services.llm.streams.text import Reasoning, Said, ThinkStyles, ThinkTags

# An answer in pieces, whether it is expected to begin with reasoning, its reasoning, and its text
CASES: dict[str, tuple[Sequence[str], bool, str, str]] = {
    "tags in pieces": (["<th", "ink>H", "m.</th", "ink>\n", "\nYes", "."], False, "Hm.", "Yes."),
    "Magistral": (["[THI", "NK]Hm.[/THINK]Yes."], False, "Hm.", "Yes."),
    "Kimi": (["◁think▷Hm.◁/think▷Yes."], False, "Hm.", "Yes."),
    "twice": (["<think>Hm.</think>\n<think>So.</think>Yes."], False, "Hm.So.", "Yes."),
    "never closed": (["<think>Hm. Yes."], False, "Hm. Yes.", "<think>Hm. Yes."),
    "no opening tag": (["Hm.\n", "</think>", "\n\nYes."], False, "", "Hm.\n</think>\n\nYes."),
    "no opening tag, expected": (["Hm.", "</thi", "nk>Yes."], True, "Hm.", "Yes."),
    "expected in vain": (["Yes", "."], True, "Yes.", "Yes."),
    "expected, with both tags": (["<think>Hm.", "</think>Yes."], True, "Hm.", "Yes."),
    "channels": (
        ["<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes <|",
         "b.<|return|>"],
        False, "Hm.", "Yes <|b.",
    ),
    "channels that do not end": (
        ["<|channel|>analysis<|message|>Hm.<|channel|>final<|message|>Yes."], False, "Hm.", "Yes.",
    ),
    "a channel of thoughts alone": (["<|channel|>analysis<|message|>Hm. <", "b"], False, "Hm. <b", ""),
    "a channel of words, and a call": (
        ["<|start|>assistant<|channel|>commentary<|message|>I look.<|end|><|start|>assistant"
         "<|channel|>commentary to=functions.a <|constrain|>json<|message|>{}<|call|>"],
        False, "", "I look.<|channel|>commentary to=functions.a <|constrain|>json<|message|>{}<|call|>",
    ),
    "about channels": (["<|channel|> begins one."], False, "", "<|channel|> begins one."),
    "a comparison": (["a <", " b [", "1] <i", ">"], False, "", "a < b [1] <i>"),
    "about tags": (["It ends with </think> ", "then.\n"], False, "", "It ends with </think> then.\n"),
    "in code": (["Use `", "</think>", "`:\n", "yes"], False, "", "Use `</think>`:\nyes"),
    "in a fence": (["```\n</think>\n```"], False, "", "```\n</think>\n```"),
    "quoted with its opening tag": (["Say <think>\nx\n</think>\nso"], False, "", "Say <think>\nx\n</think>\nso"),
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


def test_what_is_learned_of_a_model_is_known_after_the_next_start(tmp_path: Path) -> None:
    file = tmp_path / "new" / "styles.json"
    styles = ThinkStyles(file)
    assert [styles.learn("mine", thought_first=True) for _ in range(3)] == [False, False, True]
    styles.keep()
    again = ThinkStyles(file)
    assert [again.think_first(name) for name in ("mine", "another", "deepseek-r1")] == [True, False, True]
    file.write_text("{")
    assert not ThinkStyles(file).think_first("mine")
