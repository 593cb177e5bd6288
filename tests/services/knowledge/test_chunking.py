from itertools import pairwise

import pytest

from services.knowledge.chunking import CHUNK_TOKENS, chunks_of
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


def test_hostile_lines_take_no_time() -> None:
    text = "# " + " \t" * 100_000 + "x\n" + "#" * 100_000 + "\n" + "=" * 100_000 + "\n" + "`" * 100_000
    assert chunks_of(_markdown(text)) is not None
