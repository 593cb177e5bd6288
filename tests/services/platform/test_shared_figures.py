"""Figures of several processes that share a port."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

_PROCESS = """
from services.platform.metrics import FIRST_TOKEN_SECONDS, exposition
FIRST_TOKEN_SECONDS.observe(0.03)
FIRST_TOKEN_SECONDS.observe(0.3)
print(exposition("application/openmetrics-text")[0].decode())
"""


def _run(folder: Path) -> str:
    """Observe in a process of its own; return what it shows."""
    done = subprocess.run(
        [sys.executable, "-c", _PROCESS],
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_process_shows_the_figures_of_all(tmp_path: Path) -> None:
    assert "anamnesis_first_token_seconds_count 2.0" in _run(tmp_path)
    assert "anamnesis_first_token_seconds_count 4.0" in _run(tmp_path)
