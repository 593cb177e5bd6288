"""`.ci/install.py`, which `make run` starts, shows how far an installation has come."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fork_server import ROOT

pytestmark = pytest.mark.process


def _installed(lock: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(ROOT / ".ci" / "install.py"), str(lock)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PIP_NO_INDEX": "1"},
    )


def test_it_ends_with_what_was_installed(tmp_path: Path) -> None:
    pinned = re.search(r"^idna==.*?(?=^\S)", (ROOT / "requirements.lock").read_text(), re.DOTALL | re.MULTILINE)
    assert pinned is not None
    (tmp_path / "some.lock").write_text(pinned[0])
    ran = _installed(tmp_path / "some.lock")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert re.fullmatch(r" +0 packages installed in \d+ s", ran.stdout.splitlines()[-1])


def test_where_pip_fails_its_own_words_are_shown(tmp_path: Path) -> None:
    (tmp_path / "some.lock").write_text(f"no-such-package-of-ours==1.0 --hash=sha256:{'0' * 64}\n")
    ran = _installed(tmp_path / "some.lock")
    assert ran.returncode == 1
    assert "No matching distribution found for no-such-package-of-ours==1.0" in ran.stdout
