"""`anamnesis import` and `anamnesis export` beside the running service."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.command import run_command
from tests.support.transfer import message, ndjson

pytestmark = [pytest.mark.slow, pytest.mark.traced]


def _anamnesis(
    variables: dict[str, str], *arguments: str, given: bytes = b""
) -> "subprocess.CompletedProcess[bytes]":
    ran = run_command(*arguments, variables=variables, typed=given)
    return subprocess.CompletedProcess(ran.args, ran.returncode, ran.stdout.encode(), ran.stderr.encode())


def test_what_is_imported_is_exported_and_imported_elsewhere(beside: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    file.write_bytes(ndjson(*(message(n, content=f"第{n}句 🦊") for n in range(1, 301))))
    done = _anamnesis(beside, "import", str(file))
    assert (done.returncode, done.stdout) == (0, b"300 imported, 0 skipped, 0 refused.\n"), done.stderr
    assert b"import" in done.stderr

    told = _anamnesis(beside, "export", "u-1")
    assert told.returncode == 0, told.stderr
    assert told.stdout.count(b"\n") == 302
    output = tmp_path / "u-1.jsonl"
    written = _anamnesis(beside, "export", "u-1", "-o", str(output))
    assert (written.returncode, written.stdout) == (0, b"")
    assert b"302/" in written.stderr
    assert written.stderr.endswith(f"302 lines are in {output}.\n".encode())
    assert output.read_bytes() == told.stdout
    assert sorted(os.listdir(tmp_path)) == ["talk.jsonl", "u-1.jsonl"]

    elsewhere = told.stdout.replace(b'"u-1"', b'"u-2"')
    brought = _anamnesis(beside, "import", "-", "--json", given=elsewhere)
    assert json.loads(brought.stdout) == {"imported": 302, "skipped": 0, "refused": 0, "errors": []}
    assert _anamnesis(beside, "export", "u-2").stdout == elsewhere
    again = _anamnesis(beside, "import", str(output), "--json")
    assert json.loads(again.stdout) == {"imported": 0, "skipped": 302, "refused": 0, "errors": []}


def test_what_is_wrong_is_said_in_one_line(beside: dict[str, str], tmp_path: Path) -> None:
    for arguments, variables, code, says in (
        (("import", str(tmp_path / "none")), beside, 2, "none cannot be read: No such file or directory"),
        (("import", str(tmp_path)), beside, 2, "cannot be read: Is a directory"),
        (
            ("import", "-"),
            {"ANAMNESIS_URL": "http://127.0.0.1:9"},
            1,
            "No service is running at http://127.0.0.1:9",
        ),
        (("export", "nobody"), beside, 1, "There is no user 'nobody'."),
        (("export", "nobody", "-o", str(tmp_path / "a" / "b")), beside, 1, "b.part: No such file or directory"),
    ):
        done = _anamnesis(variables, *arguments)
        assert (done.returncode, done.stdout) == (code, b""), arguments
        assert done.stderr.startswith(b"anamnesis: "), done.stderr
        assert says.encode() in done.stderr
        assert done.stderr.count(b"\n") == 1
    assert os.listdir(tmp_path) == []
