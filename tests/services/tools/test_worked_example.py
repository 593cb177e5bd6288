"""The tool that CONTRIBUTING.md adds, added to a copy of the code: it is found by itself, and its test passes."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("api", "graph", "nodes", "services", "state", "tests")


def _blocks() -> list[tuple[str, str]]:
    """Path and text of each file in the section: the last path before a block of Python is its own."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split("## Add a tool\n", 1)[1].split("\n## ", 1)[0]
    found = re.findall(r"`((?:services|tests)/[\w/]+\.py)`[^`\n]*\n\n```python\n(.*?)```", section, re.DOTALL)
    assert [path.rsplit("/", 1)[1] for path, _ in found] == ["days_between.py", "test_days_between.py"]
    return [(path, code) for path, code in found]


def _run(folder: Path, *command: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    ran = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.soak
def test_the_worked_example_works(tmp_path: Path) -> None:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    blocks = _blocks()
    for path, code in blocks:
        assert not (tmp_path / path).exists()
        (tmp_path / path).write_text(code, encoding="utf-8")
    paths = [path for path, _ in blocks]
    _run(tmp_path, "ruff", "check", *paths)
    _run(tmp_path, "ruff", "format", "--check", *paths)
    # Its own run place: in the usual one it would close the folders of this run to other accounts.
    _run(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'run'}", paths[1])
