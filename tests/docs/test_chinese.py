"""The Chinese guide has every page that users and operators need, each built like its English page."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.test_site import CODE, DOCS, FENCE, LINK, VARIABLE

CHINESE = DOCS / "zh"
ENGLISH_ALONE = {
    *("dependencies.md", "architecture.md", "benchmarks.md", "evaluation.md"),
    "decisions",
}
"""What developers of the service look up, and the reasons."""

PAGES = sorted(
    str(page.relative_to(DOCS))
    for page in DOCS.rglob("*.md")
    if not {"zh", *ENGLISH_ALONE} & {page.relative_to(DOCS).parts[0]}
)
COMMENT = re.compile(r"(?:(?<=\s)|^)#.*$|(?<=\s)//.*$", re.MULTILINE)
QUOTED = re.compile(r'"[^"\n]*"')


def texts(page: str) -> tuple[str, str]:
    """A page in English and in Chinese."""
    return (DOCS / page).read_text("utf-8"), (CHINESE / page).read_text("utf-8")


def translated(english: str, chinese: str) -> bool:
    """Whether two blocks of code are the same but for comments and for quoted texts that are in Chinese."""
    english, chinese = COMMENT.sub("", english), COMMENT.sub("", chinese)
    pairs = zip(QUOTED.findall(english), QUOTED.findall(chinese), strict=False)
    same_texts = all(one == other or not other.isascii() for one, other in pairs)
    return same_texts and QUOTED.sub('""', english) == QUOTED.sub('""', chinese)


def shape(text: str) -> list[str]:
    """The levels of headings, the rows of tables and the items of lists, in their order."""
    found = re.findall(r"^(#{1,6}) |^(\|)|^(-|\d+\.) ", FENCE.sub("", text), re.MULTILINE)
    return ["".join(each) for each in found]


def links(page: Path) -> Counter[str]:
    """The addresses and the English pages that a page leads to, or pages in Chinese by their English name."""
    return Counter(_targets(page, page.read_text("utf-8")))


def _targets(page: Path, text: str) -> Iterator[str]:
    for target in LINK.findall(CODE.sub("``", FENCE.sub("", text))):
        if re.match(r"[a-z]+:", target):
            yield target
        elif path := target.partition("#")[0]:
            file = os.path.normpath(page.parent / path)
            yield os.path.relpath(file, CHINESE if Path(file).is_relative_to(CHINESE) else DOCS).replace(
                "-zh.", "."
            )


def test_every_page_that_users_and_operators_need_is_there_and_no_other() -> None:
    assert sorted(str(page.relative_to(CHINESE)) for page in CHINESE.rglob("*.md")) == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_built_like_the_english_one(page: str) -> None:
    english, chinese = texts(page)
    assert shape(chinese) == shape(english)
    blocks = zip(FENCE.findall(english), FENCE.findall(chinese), strict=True)
    assert [pair for pair in blocks if not translated(*pair)] == []
    assert links(CHINESE / page) == links(DOCS / page)
    assert Counter(VARIABLE.findall(chinese)) == Counter(VARIABLE.findall(english))


def test_a_link_leads_to_the_chinese_page_where_there_is_one() -> None:
    there = {DOCS / page for page in PAGES}
    for page in PAGES:
        for target in LINK.findall(FENCE.sub("", (CHINESE / page).read_text("utf-8"))):
            assert ((CHINESE / page).parent / target.partition("#")[0]).resolve() not in there, page
