"""The page of commands names every command that there is, and no other."""

import re
from collections import defaultdict

from typer.main import get_command

from api.cli.main import app
from tests.support.fork_server import ROOT

PAGE = (ROOT / "docs" / "commands.md").read_text()
ROW = re.compile(r"^\| `anamnesis ([a-z-]+).*$", re.MULTILINE)


def words_of_rows() -> dict[str, set[str]]:
    """Each command that a row begins with, and the words in code of its rows."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row in ROW.finditer(PAGE):
        for code in re.findall(r"`([^`]+)`", row.group()):
            found[row.group(1)] |= set(re.findall(r"[a-z-]+", code))
    return found


def test_every_command_has_a_row_that_names_its_parts() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    rows = words_of_rows()
    assert rows.keys() == commands.keys()
    missing = {name: set(getattr(each, "commands", ())) - rows[name] for name, each in commands.items()}
    assert not {name: parts for name, parts in missing.items() if parts}
