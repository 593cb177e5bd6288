"""The readmes: what they tell people to type, and how long they are."""

import re

import pytest

from tests.docs.test_site import PAGES, READ_IN_THE_CHECKOUT
from tests.packaging.follow_readme import commands
from tests.support.fork_server import ROOT

MOST_WORDS = 800
UNPUBLISHED = re.compile(
    r"pip install [^`\n]*(?<![./])\b(?:anamnesis-agent|anamnesis-client|langchain-anamnesis)\b"
)


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_they_are_short_and_their_commands_are_those_that_are_played(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    assert len(text.split()) <= MOST_WORDS
    block = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert block is not None
    assert [line.split("#")[0].strip() for line in block[1].splitlines()] == commands()


def test_every_target_that_is_named_is_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in (*PAGES, *READ_IN_THE_CHECKOUT):
        named = set(re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text("utf-8"), re.MULTILINE))
        assert named <= targets, page


def test_no_page_tells_to_install_a_name_that_is_not_ours_yet() -> None:
    for page in (*PAGES, *READ_IN_THE_CHECKOUT):
        assert UNPUBLISHED.findall(page.read_text("utf-8")) == [], page
