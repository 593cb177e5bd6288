"""The list of decisions, and what a superseded one still says."""

import re

from tests.docs.test_site import DOCS

DECISIONS = sorted((DOCS / "decisions").glob("0*.md"))


def test_the_list_names_every_decision_once() -> None:
    listed = re.findall(
        r"^\| \[(\d+)\]\(([^)]+)\)", (DOCS / "decisions" / "README.md").read_text("utf-8"), re.MULTILINE
    )
    assert [name for _, name in listed] == [each.name for each in DECISIONS]
    assert all(int(name[:4]) == int(number) for number, name in listed)
