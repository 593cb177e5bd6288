"""`anamnesis import --from`, end to end."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.services.transfer.exports import EXPORTS, INSTRUCTION, written
from tests.support.command import run_command

pytestmark = [pytest.mark.slow, pytest.mark.traced]


def _exported(beside: dict[str, str], user: str) -> list[dict[str, Any]]:
    told = run_command("export", user, variables=beside)
    assert told.returncode == 0, told.stderr
    return [json.loads(line) for line in told.stdout.splitlines()]


def test_every_vendors_archive_is_counted_imported_and_known_again(beside: dict[str, str], tmp_path: Path) -> None:
    for vendor, content in EXPORTS.items():
        path = str(written(tmp_path, vendor, content, zipped=vendor in {"chatgpt", "claude"}))
        arguments = ("import", "--from", vendor, path, "--user", "u-1")

        tried = run_command(*arguments, "--dry-run", variables={})
        assert tried.returncode == 0, tried.stderr
        assert "Nothing was imported" in tried.stdout
        first = json.loads(run_command(*arguments, "--json", variables=beside).stdout)
        again = json.loads(run_command(*arguments, "--json", variables=beside).stdout)

        assert first["errors"] == []
        assert first["lines"]["refused"] == again["lines"]["refused"] == 0
        assert first["lines"]["imported"] > 0
        assert again["lines"] == {"imported": 0, "skipped": first["lines"]["imported"], "refused": 0}
        counted = first["messages"] + first["conversations"] + first["memories"]
        assert counted == first["lines"]["imported"]
    lines = _exported(beside, "u-1")
    titles = {line["title"] for line in lines if line["kind"] == "session"}
    assert titles == {"Bruno 🐕", "Where I live", "Colours", "Music"}
    memories = {line["content"] for line in lines if line["kind"] == "episode"}
    assert memories == {"Is allergic to peanuts", "Prefers trains"}
    # Instructions in an export stay in its conversation and go nowhere else.
    assert [line["kind"] for line in lines if INSTRUCTION in json.dumps(line)] == ["message"]
    assert "core_memory" not in {line["kind"] for line in lines}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--from", "copilot", "x.json"], "'copilot' is not one of 'chatgpt'"),
        (["--from", "claude", "x.json", "--user", ".."], "--user"),
    ],
)
def test_wrong_use_is_told_in_one_line(arguments: list[str], named: str) -> None:
    ran = run_command("import", *arguments, variables={})
    assert ran.returncode == 2
    assert named in ran.stderr
