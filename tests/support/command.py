"""Runs a command of `anamnesis` with only the test's settings, in this process or in a new one."""

import os
import subprocess
import sys
import traceback
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from typer.testing import CliRunner

from tests.support.fork_server import ROOT, ForkedProcess

COMMAND = (sys.executable, "-m", "api.cli.main")
PATIENCE_S = 120

_FIXED = {"NO_COLOR": "1", "COLUMNS": "160"}
_OWN_PROCESS = frozenset({"serve", "worker", "chat"})
"""Commands that handle signals, which only the first thread of a process can."""


def environment_of(variables: Mapping[str, str]) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **_FIXED, **variables}


def start_command(*arguments: str, variables: Mapping[str, str]) -> ForkedProcess:
    """Start a command in a process, so that the test can act meanwhile."""
    return ForkedProcess(*arguments, environment=environment_of(variables))


def run_command(
    *arguments: str, variables: Mapping[str, str], typed: str | bytes = ""
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end: in a thread of this process, or in a new process if input is typed."""
    if not typed and not _OWN_PROCESS.intersection(arguments[:1]):
        with ThreadPoolExecutor(1) as thread:  # this thread may already have a loop
            return thread.submit(_invoke, arguments, variables).result(PATIENCE_S)
    given = typed.encode() if isinstance(typed, str) else typed
    process = ForkedProcess(*arguments, environment=environment_of(variables), typed=given)
    out, errors = process.communicate(PATIENCE_S)
    return subprocess.CompletedProcess(arguments, process.wait(), out, errors)


def _invoke(arguments: tuple[str, ...], variables: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    from api.cli.main import app

    ours = {name: None for name in os.environ if name.startswith(("ANAMNESIS_", "OPENAI_"))}
    ran = CliRunner().invoke(app, list(arguments), env={**ours, **_FIXED, **variables})
    failed = ran.exc_info is not None and not isinstance(ran.exception, SystemExit | None)
    trace = "".join(traceback.format_exception(ran.exception)) if failed else ""
    return subprocess.CompletedProcess(arguments, ran.exit_code, ran.stdout, ran.stderr + trace)
