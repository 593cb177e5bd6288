"""What every command has in common, without a process: help, wrong use and wrong settings."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from api.cli.main import app

pytestmark = pytest.mark.traced


def _commands(command: Any, *above: str) -> Iterator[tuple[str, Any]]:
    """Every command with its whole name."""
    if isinstance(command, typer.core.TyperGroup):
        for name, each in command.commands.items():
            yield from _commands(each, *above, name)
    else:
        yield " ".join(above), command


def test_every_command_has_help_with_an_example() -> None:
    commands = dict(_commands(typer.main.get_command(app)))
    assert len(commands) > 20
    assert [name for name, command in commands.items() if "Example:" not in str(command.help)] == []
    shown = CliRunner().invoke(app, ["serve", "--help"])
    assert shown.exit_code == 0
    assert "Example:" in shown.stdout


@pytest.mark.parametrize("arguments", [["no-such-command"], ["serve", "--no-such-option"]])
def test_wrong_use_ends_with_two(arguments: list[str]) -> None:
    assert CliRunner().invoke(app, arguments).exit_code == 2


@pytest.mark.parametrize("command", ["serve", "worker", "chat", "migrate", "doctor"])
def test_a_wrong_setting_is_one_line_and_ends_with_two(command: str) -> None:
    done = CliRunner().invoke(app, [command], env={"ANAMNESIS_PORT": "eighty"})
    assert done.exit_code == 2
    assert done.stderr.startswith("anamnesis: ANAMNESIS_PORT=eighty is not accepted")
    assert done.stderr.count("\n") == 1


def test_init_writes_every_setting_for_the_owner_alone_and_keeps_what_is_there() -> None:
    assert CliRunner().invoke(app, ["init"]).exit_code == 0
    written = Path(".env")
    assert written.stat().st_mode & 0o777 == 0o600
    assert "# ANAMNESIS_PORT=8000" in written.read_text()
    written.write_text("ANAMNESIS_PORT=8001\n")
    again = CliRunner().invoke(app, ["init"])
    assert again.exit_code == 1
    assert again.stderr.count("\n") == 1
    assert written.read_text() == "ANAMNESIS_PORT=8001\n"
