"""The section that CONTRIBUTING.md adds: one module, one line, and its test passes."""

import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from services.platform.settings import load_settings

ROOT = Path(__file__).parents[3]
SOURCE = "services/context/sources/birthday.py"
TESTED = "tests/services/context/test_birthday.py"
MODULE = "services.context.sources.birthday"


def _section() -> str:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return text.split("## Add a prompt section\n", 1)[1].split("\n## ", 1)[0]


def _accepted(path: str, text: str) -> None:
    """Have the linter and the formatter look at a file as if it were there."""
    for command in (["check"], ["format", "--check"]):
        ran = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", path, "-"],
            input=text,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.process
def test_the_worked_example_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, test = re.findall(r"```python\n(.*?)```", _section(), re.DOTALL)
    (line,) = re.findall(r"```text\n(.*)\n```", _section())
    _accepted(SOURCE, source)
    _accepted(TESTED, test)

    file = tmp_path / "birthday.py"
    file.write_text(source, encoding="utf-8")
    spec = spec_from_file_location(MODULE, file)
    assert spec
    assert spec.loader
    monkeypatch.setitem(sys.modules, MODULE, module := module_from_spec(spec))
    spec.loader.exec_module(module)
    tests: dict[str, Any] = {}
    exec(test, tests)
    (run,) = (each for name, each in tests.items() if name.startswith("test_"))
    run()

    wiring = (ROOT / "services/context/wiring.py").read_text(encoding="utf-8")
    assert wiring.count("        TimeSource(),\n") == 1
    wired: dict[str, Any] = {}
    exec(wiring.replace("        TimeSource(),\n", f"        {line}\n        TimeSource(),\n"), wired)
    wired["BirthdaySource"] = module.BirthdaySource
    memory = SimpleNamespace(core=None, recall=None, questions=None)
    names = [made.name for made in wired["make_sources"](load_settings(), None, memory, None)]
    assert names.index("birthday") == names.index("time") - 1
