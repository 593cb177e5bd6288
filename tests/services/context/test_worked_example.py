"""The section that CONTRIBUTING.md adds, added to a copy of the code: one file, one line, and its test passes."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("api", "graph", "nodes", "services", "state", "tests")
_SOURCES = """
from types import SimpleNamespace
from services.context.wiring import make_sources
from services.platform.settings import load_settings

memory = SimpleNamespace(core=None, recall=None, questions=None)
print(*(source.name for source in make_sources(load_settings(), None, memory, None, None)))
"""


def _section() -> str:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return text.split("## Add a prompt section\n", 1)[1].split("\n## ", 1)[0]


def _run(folder: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    ran = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.slow
def test_the_worked_example_works(tmp_path: Path) -> None:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    module, test = re.findall(r"```python\n(.*?)```", _section(), re.DOTALL)
    (line,) = re.findall(r"```text\n(.*)\n```", _section())
    source, tested = "services/context/sources/birthday.py", "tests/services/context/test_birthday.py"
    (tmp_path / source).write_text(module, encoding="utf-8")
    (tmp_path / tested).write_text(test, encoding="utf-8")
    wiring = tmp_path / "services/context/wiring.py"
    known = "from services.context.sources.core_memory"
    imported = f"from services.context.sources.birthday import BirthdaySource\n{known}"
    wired = wiring.read_text(encoding="utf-8").replace(known, imported)
    assert wired.count("        TimeSource(),\n") == 1
    wiring.write_text(
        wired.replace("        TimeSource(),\n", f"        {line}\n        TimeSource(),\n"), encoding="utf-8"
    )
    _run(tmp_path, "-m", "ruff", "check", source, tested)
    _run(tmp_path, "-m", "ruff", "format", "--check", source, tested)
    basetemp = f"--basetemp={tmp_path / 'run'}"
    _run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", basetemp, tested)
    names = _run(tmp_path, "-c", _SOURCES).split()
    assert names.index("birthday") == names.index("time") - 1
