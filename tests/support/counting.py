"""Measures coverage only where it adds lines.

On Python 3.11 tracing takes a third of a test's processor time. Whole dialogues, browsers, attacks and generated
inputs run lines that narrower tests have already reached. Tracing therefore pauses for them and for tests marked
`untraced`, with their fixtures, unless one is marked `traced`; threads that they start are not traced either.
Importing while tests are collected is the same in every process of tests, so the first process traces it for all.
It also imports the modules that the service imports late, because that may happen first while tracing pauses.
"""

import importlib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

FOLDERS = frozenset(
    {"benchmarks", "chaos", "client", "console", "deploy", "docs", "golden", "packaging", "redteam", "scenarios"}
)
"""Folders below `tests/` for whose tests coverage pauses."""
PACKAGES = ("api", "graph", "nodes", "services", "state")
"""Packages whose lines are counted."""


class CoveragePauses:
    """A plugin of pytest that stops and starts the coverage of this process; without coverage it does nothing."""

    def __init__(self) -> None:
        """Trace until told otherwise."""
        self._coverage: Any = None
        self._counting = True
        self._counted: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self, session: pytest.Session) -> Generator[None, object, object]:
        """Collect with coverage in one process, and without it in the others."""
        if session.config.pluginmanager.hasplugin("_cov"):
            from coverage import Coverage

            self._coverage = Coverage.current()
        worker = getattr(session.config, "workerinput", {}).get("workerid", "gw0")
        is_first = worker == "gw0"
        self._count(is_first)
        if is_first and self._coverage is not None:
            _import_product()
        return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Choose the tests whose lines are counted: of the cases of a test that starts something, the first."""
        functions = set()
        for item in items:
            function, _, case = item.nodeid.partition("[")
            again = case and function in functions and not item.get_closest_marker("unit")
            functions.add(function)
            if not again and _adds_lines(item):
                self._counted.add(item.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Count the lines of a test, or not."""
        self._count(item.nodeid in self._counted)

    def _count(self, counting: bool) -> None:
        if self._coverage is not None and counting != self._counting:
            if counting:
                self._coverage.start()
            else:
                self._coverage.stop()
            self._counting = counting


def _import_product() -> None:
    root = Path(__file__).parents[2]
    for package in PACKAGES:
        for path in (root / package).rglob("*.py"):
            if "migrations" in path.parts:
                continue  # Alembic alone can import these.
            name = ".".join(path.relative_to(root).with_suffix("").parts)
            importlib.import_module(name.removesuffix(".__init__"))


def _adds_lines(item: pytest.Item) -> bool:
    folder = item.path.relative_to(Path(__file__).parents[1]).parts[0]
    if item.get_closest_marker("traced"):
        return True
    if folder in FOLDERS or item.get_closest_marker("untraced") or item.get_closest_marker("slow"):
        return False
    return not hasattr(getattr(item, "function", None), "hypothesis")
