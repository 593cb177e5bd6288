from itertools import pairwise

import pytest

from services.knowledge.chunking import CHUNK_TOKENS, chunks_of, sections, title_of
from services.knowledge.document import Converted, Part
from services.llm.token_estimates import count_tokens

pytestmark = pytest.mark.untraced


def _markdown(text: str) -> Converted:
    return Converted("", (Part(text),), headings=True)


def test_each_heading_begins_a_chunk_that_knows_all_above_it() -> None:
    text = "Before.\n# A\nOne.\n## B\nTwo.\n#### C ####\nThree.\n## D\nFour.\n# E\n\nFive.\n# Empty\n"
    assert [(chunk.heading, chunk.text) for chunk in chunks_of(_markdown(text))] == [
        ("", "Before."),
        ("A", "One."),
        ("A > B", "Two."),
        ("A > B > C", "Three."),
        ("A > D", "Four."),
        ("E", "Five."),
    ]


def test_underlined_lines_are_headings_and_rules_are_none() -> None:
    text = "Title\n=====\n\nOne.\n\nPart\n----\n\nTwo.\n\n- item\n---\n\nThree\nfour\n---\n"
    found = [(headings[-1], body.split("\n")[0]) for headings, body in sections(text)]
    assert found == [("Title", "One."), ("Part", "Two.")]


def test_code_keeps_its_indentation_and_its_comments_are_no_headings() -> None:
    text = "# A\n```py\ndef f():\n    # no heading\n    return 1\n```\n## B\n~~~\n# nor this\n"
    (one, two) = chunks_of(_markdown(text))
    assert one.text == "```py\ndef f():\n    # no heading\n    return 1\n```"
    assert (two.heading, two.text) == ("A > B", "~~~\n# nor this")


def test_plain_text_has_no_headings() -> None:
    (chunk,) = chunks_of(Converted("", (Part("# 1 apple\n# 2 pears"),), headings=False))
    assert (chunk.heading, chunk.text) == ("", "# 1 apple\n# 2 pears")


@pytest.mark.parametrize(
    "sentence", ["这一条规定了员工请假的办法，请仔细阅读。", "The leave of staff is regulated here. "]
)
def test_long_text_is_cut_at_sentences_and_repeats_a_little(sentence: str) -> None:
    chunks = chunks_of(_markdown("# A\n" + "".join(f"{number}{sentence}" for number in range(200))))
    assert len(chunks) > 5
    assert all(200 < count_tokens(chunk.text) <= CHUNK_TOKENS for chunk in chunks[:-1])
    assert all(chunk.text[-1] in "。." for chunk in chunks)
    for one, other in pairwise(chunks):
        assert other.text[:10] in one.text


def test_a_line_without_an_end_is_cut_too() -> None:
    chunks = chunks_of(_markdown("永" * 5000 + "x" * 5000))
    assert all(count_tokens(chunk.text) <= CHUNK_TOKENS for chunk in chunks)
    assert sum(chunk.text.count("永") for chunk in chunks) >= 5000


def test_pages_are_told_and_what_says_nothing_is_left_out() -> None:
    parts = (Part("First.", 1), Part(" ---- \n …", 2), Part("Third.", 3))
    assert [(chunk.page, chunk.text) for chunk in chunks_of(Converted("", parts, headings=False))] == [
        (1, "First."),
        (3, "Third."),
    ]


def test_a_title_is_told_or_the_first_heading_or_the_name() -> None:
    assert title_of(Converted("Told", (Part("# A\nx"),), headings=True), "f.md") == "Told"
    assert title_of(_markdown("---\ntitle: x\n---\n# **A** `b`\nx"), "f.md") == "A b"
    assert title_of(Converted("", (Part("x", 1),), headings=False), "folder/报告.pdf") == "报告"


def test_hostile_lines_take_no_time() -> None:
    text = "# " + " \t" * 100_000 + "x\n" + "#" * 100_000 + "\n" + "=" * 100_000 + "\n" + "`" * 100_000
    assert chunks_of(_markdown(text)) is not None


def test_very_long_text_is_cut_block_by_block_and_loses_nothing() -> None:
    text = "".join(f"Sentence {number} is here. " for number in range(20_000))
    chunks = chunks_of(_markdown(text))
    assert all(count_tokens(chunk.text) <= CHUNK_TOKENS for chunk in chunks)
    told = {word for chunk in chunks for word in chunk.text.split() if word.isdigit()}
    assert told == {str(number) for number in range(20_000)}
