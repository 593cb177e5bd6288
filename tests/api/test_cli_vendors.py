"""`anamnesis import --from`, end to end."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.services.transfer.exports import EXPORTS, INSTRUCTION, chatgpt, written
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


def test_a_newer_export_adds_what_is_new(beside: dict[str, str], tmp_path: Path) -> None:
    old = written(tmp_path, "chatgpt", chatgpt(), zipped=True)
    assert run_command("import", "--from", "chatgpt", str(old), variables=beside).returncode == 0
    newer = chatgpt()
    mapping = newer[0]["mapping"]
    said = {
        **mapping["a2"]["message"],
        "id": "a3",
        "content": {"content_type": "text", "parts": ["Then in rhymes."]},
    }
    mapping["q2"]["children"] = ["a3"]
    mapping["a3"] = {"id": "a3", "parent": "q2", "children": [], "message": said}
    newer[0]["current_node"] = "a3"
    new = written(tmp_path, "chatgpt", newer, zipped=True)

    ran = run_command("import", "--from", "chatgpt", str(new), "--json", variables=beside)

    assert json.loads(ran.stdout)["lines"] == {"imported": 1, "skipped": 4, "refused": 0}
    assert [line["content"] for line in _exported(beside, "me") if "role" in line][-1] == "Then in rhymes."


def test_records_that_are_refused_are_named_by_file_and_record(beside: dict[str, str], tmp_path: Path) -> None:
    good, other = chatgpt()
    late = json.loads(json.dumps(good).replace("1762000", "9762000").replace("6d4-a", "late"))
    path = written(tmp_path, "chatgpt", [{"id": "x"}, late, good, other], zipped=True)

    ran = run_command("import", "--from", "chatgpt", str(path), variables=beside)

    assert ran.returncode == 1
    assert "chatgpt.zip/export/conversations.json, record 1: mapping is no object" in ran.stderr
    assert "record 2 (late): created_at: is in the future" in ran.stderr
    assert "4 imported" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--from", "copilot", "x.json"], "--from: is none of chatgpt"),
        (["--from", "claude", "nothing.zip"], "nothing.zip cannot be read"),
        (["--from", "claude", "-"], "not the standard input"),
        (["--from", "claude", "x.json", "--user", ".."], "--user"),
        (["x.json", "--dry-run"], "need --from"),
    ],
)
def test_wrong_use_is_told_in_one_line(arguments: list[str], named: str) -> None:
    ran = run_command("import", *arguments, variables={})
    assert ran.returncode == 2
    assert named in ran.stderr.splitlines()[-1]
