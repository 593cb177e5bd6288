"""What every command has in common, without a process: help, wrong use and wrong settings."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from api.cli.main import app

pytestmark = pytest.mark.traced


def _commands(group: typer.Typer, *above: str) -> Iterator[tuple[str, ...]]:
    for command in group.registered_commands:
        assert command.callback is not None
        yield (*above, command.name or command.callback.__name__.replace("_", "-"))
    for nested in group.registered_groups:
        assert nested.typer_instance is not None
        yield from _commands(nested.typer_instance, *above, str(nested.name))


COMMANDS = sorted(_commands(app))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(command: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*command, "--help"])
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
