"""The versions of Python that the project names."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "anamnesis_agent",
    "anamnesis_client",
    "langchain_anamnesis",
    "api",
    "graph",
    "nodes",
    "services",
    "state",
)
REMOVED = frozenset(
    [
        "asynchat",
        "asyncore",
        "distutils",
        "imp",
        "smtpd",
        "aifc",
        "audioop",
        "cgi",
        "cgitb",
        "chunk",
        "crypt",
        "imghdr",
        "lib2to3",
        "mailcap",
        "msilib",
        "nis",
        "nntplib",
        "ossaudiodev",
        "pipes",
        "sndhdr",
        "spwd",
        "sunau",
        "telnetlib",
        "uu",
        "xdrlib",
    ]
)
"""Modules of the standard library that Python 3.12 or 3.13 does not have any more."""


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


def test_no_module_is_imported_that_newer_versions_lack() -> None:
    found = set()
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Import):
                    found |= {each.name.partition(".")[0] for each in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    found.add(node.module.partition(".")[0])
    assert not found & REMOVED
