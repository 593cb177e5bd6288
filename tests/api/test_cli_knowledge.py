"""`anamnesis kb` beside the running service."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import run_command
from tests.support.knowledge import pdf, word

pytestmark = [pytest.mark.slow, pytest.mark.traced]


def _anamnesis(variables: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    return run_command("kb", *arguments, variables=variables)


def _listed(variables: dict[str, str], path: str = "") -> list[dict[str, Any]]:
    done = run_command("api", "GET", f"knowledge-bases{path}", "--json", variables=variables)
    found: list[dict[str, Any]] = json.loads(done.stdout)["items"]
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Documents, good and bad, in folders."""
    files = {
        "leave.md": b"# Leave\n\nThirty days of holidays a year.",
        "zh/手册.pdf": pdf("年假有八天。", ""),
        "zh/制度.docx": word((1, "考勤"), (0, "忘记打卡可以补签。")),
        ".git/config.md": b"not a document",
        "bad/broken.pdf": b"%PDF-1.7 nothing",
        "bad/empty.md": b"",
        "bad/picture.png": b"\x89PNG",
    }
    place = tmp_path / "documents"
    for name, data in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)
    return place


def test_bad_files_are_named_and_the_others_taken_in(beside: dict[str, str], folder: Path) -> None:
    made = _anamnesis(
        beside, "add", "handbook", "--description", "Ours.", "--keyword", "leave", "--keyword", "年假"
    )
    assert made.returncode == 0, made.stderr
    done = _anamnesis(beside, "ingest", "handbook", str(folder), "--json")
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert (report["created"], report["replaced"], report["unchanged"], report["removed"]) == (3, 0, 0, 0)
    (lost,) = report["left_out"]
    assert (Path(lost["file"]).name, lost["reason"]) == (
        "手册.pdf",
        "read without 1 of 2 pages, which hold no text (2)",
    )
    assert "手册.pdf: read without 1 of 2 pages" in done.stderr
    failed = {Path(failure["file"]).name: failure["reason"].split(":")[0] for failure in report["failed"]}
    assert failed == {
        "broken.pdf": "is broken",
        "empty.md": "is empty",
        "picture.png": "is of an unknown kind (.png); "
        "plain text, Markdown, HTML, PDF, DOCX, XLSX and CSV are read",
    }
    assert "broken.pdf: is broken" in done.stderr
    assert "ingest" in done.stderr
    (folder / "leave.md").write_text("# Leave\n\nTwenty days of holidays a year.")
    (folder / "zh/手册.pdf").unlink()
    again = _anamnesis(beside, "ingest", "handbook", str(folder / "leave.md"), str(folder / "zh"))
    assert (again.returncode, again.stdout) == (0, "1 new, 1 replaced, 0 unchanged, 0 removed, 0 failed.\n")
    kept = _anamnesis(beside, "ingest", "handbook", str(folder / "leave.md"), "--remove-missing")
    assert (kept.returncode, kept.stdout) == (0, "0 new, 0 replaced, 1 unchanged, 3 removed, 0 failed.\n")
    (listed,) = _listed(beside)
    assert (listed["prefix"], listed["keywords"], listed["documents"]) == ("handbook", ["leave", "年假"], 1)
    asked = ("api", "POST", "knowledge-bases/handbook/search", "query=days of holidays", "top_k:=1")
    found = run_command(*asked, variables=beside)
    assert ("leave.md" in found.stdout, "Twenty days of holidays a year." in found.stdout) == (True, True)
    (document,) = _listed(beside, "/handbook/documents")
    assert (document["source"], document["media_type"]) == ("leave.md", "text/markdown")


def test_what_is_not_there_is_told_in_one_line(beside: dict[str, str], folder: Path) -> None:
    (folder / "nobody").mkdir()
    lines = {
        ("ingest", "nothing", str(folder / "leave.md")): (1, "There is no knowledge base 'nothing'."),
        ("ingest", "nothing", str(folder / "nobody"), "--remove-missing"): (2, "every document would be removed"),
        ("add", "No", "--description", "x"): (2, "anamnesis: prefix: must match"),
        ("add", "b", "--description", "\udcff"): (2, "anamnesis: what is given is not UTF-8"),
    }
    for arguments, (code, line) in lines.items():
        done = _anamnesis(beside, *arguments)
        assert done.returncode == code, done.stderr
        assert line in done.stderr
        assert "Traceback" not in done.stderr


def test_documents_and_bases_are_removed(beside: dict[str, str], folder: Path) -> None:
    assert _anamnesis(beside, "add", "handbook", "--description", "Ours.").returncode == 0
    assert _anamnesis(beside, "ingest", "handbook", str(folder / "leave.md")).returncode == 0
    missing = _anamnesis(beside, "remove", "handbook", "--document", "x.md", "--yes")
    assert (missing.returncode, "there is no document x.md" in missing.stderr) == (1, True)
    assert _anamnesis(beside, "remove", "handbook", "--document", "leave.md", "--yes").returncode == 0
    assert _listed(beside)[0]["documents"] == 0
    assert _anamnesis(beside, "remove", "handbook", "--yes").returncode == 0
    assert _listed(beside) == []
