"""The versions of Python that the project names."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _named() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    first, end = re.findall(r"3\.(\d+)", project["requires-python"])
    named = {each.rpartition(" ")[2] for each in project["classifiers"] if "Python :: 3." in each}
    assert named == {f"3.{minor}" for minor in range(int(first), int(end))}
    return named


def test_the_classifiers_name_what_is_accepted_and_the_pages_and_checks_do_too() -> None:
    named = sorted(_named())
    for page in ("README.md", "docs/try-it.md", "docs/operations.md", "CONTRIBUTING.md"):
        assert f"Python {named[0]} to {named[-1]}" in (ROOT / page).read_text(), page
    assert f"for version in {' '.join(named)};" in (ROOT / "Makefile").read_text()
