"""A command of `anamnesis` as a process of its own, which knows no settings but the test's."""

import os
import subprocess
import sys
from collections.abc import Mapping

from tests.support.service_process import ROOT

COMMAND = (sys.executable, "-m", "api.cli.main")
PATIENCE_S = 120


def environment_of(variables: Mapping[str, str], *, measured: bool = True) -> dict[str, str]:
    """The variables of a process; where it is not `measured` for coverage it starts in two thirds of the time."""
    fixed = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "160"}
    coverage = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_") and measured}
    return {**fixed, **coverage, **variables}


def start_command(
    *arguments: str, variables: Mapping[str, str], measured: bool = False
) -> "subprocess.Popen[str]":
    """Start a command that the test does something beside."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment_of(variables, measured=measured),
    )


def run_command(
    *arguments: str, variables: Mapping[str, str], typed: str = "", measured: bool = True
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        input=typed,
        timeout=PATIENCE_S,
        check=False,
        env=environment_of(variables, measured=measured),
    )
