"""`anamnesis backup` beside the busy service, and `anamnesis restore` into an empty place."""

import json
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.platform.child_process import wait_until
from tests.support.command import run_command
from tests.support.ports import free_port
from tests.support.service_process import ServiceProcess, answer_of, chat

pytestmark = [pytest.mark.slow, pytest.mark.traced]


@pytest.mark.soak
def test_a_backup_of_the_busy_service_is_restored_elsewhere(
    service: ServiceProcess, data_dir: Path, tmp_path: Path
) -> None:
    here = {"ANAMNESIS_DATA_DIR": str(data_dir)}
    there = {"ANAMNESIS_DATA_DIR": str(tmp_path / "there")}
    answer_of(chat(service.url, "My violin teacher is called Odile."))
    busy = True

    def talk() -> None:
        while busy:
            answer_of(chat(service.url, "Another line.", user_id="u-2", session_id="s-2"))
            begun.set()

    begun = threading.Event()
    talking = threading.Thread(target=talk)
    talking.start()
    assert begun.wait(120)
    made = run_command("backup", f"{tmp_path / 'backups'}/", "--json", variables=here)
    busy = False
    talking.join()
    assert made.returncode == 0, made.stderr
    report = json.loads(made.stdout)
    file = Path(report["file"])
    assert (file.parent, file.stat().st_size) == (tmp_path / "backups", report["bytes"])
    told = run_command("export", "u-1", "--url", service.url, variables={})
    service.stop()

    cut = tmp_path / "cut.zip"
    cut.write_bytes(file.read_bytes()[: report["bytes"] // 2])
    refused = run_command("restore", str(cut), variables=there)
    assert (refused.returncode, refused.stdout) == (2, ""), refused.stderr
    assert f"anamnesis: {cut}: is not a whole backup" in refused.stderr
    assert not (tmp_path / "there").exists()

    restored = run_command("restore", str(file), variables=there)
    assert restored.returncode == 0, restored.stderr
    assert f"Restored the backup of {report['made_at']}: 2 users, 2 conversations" in restored.stdout
    assert "Indexed " in restored.stdout
    elsewhere = ServiceProcess(tmp_path / "there", free_port()).start()
    at = {"ANAMNESIS_URL": elsewhere.url}
    assert run_command("export", "u-1", variables=at).stdout == told.stdout
    _finds_the_teacher(at)
    elsewhere.stop()

    again = run_command("restore", str(file), variables=there)
    assert (again.returncode, again.stdout) == (1, "")
    assert "The database holds data (2 users)" in again.stderr
    kept = run_command("restore", str(file), "--replace", variables=there, typed="n\n")
    assert (kept.returncode, "Permanently replace everything" in kept.stderr) == (1, True)
    replaced = run_command("restore", str(file), "--replace", "--yes", "--json", variables=there)
    assert replaced.returncode == 0, replaced.stderr
    assert json.loads(replaced.stdout)["rows"] == report["rows"]


def test_a_running_service_is_not_restored_into(service: ServiceProcess, data_dir: Path, tmp_path: Path) -> None:
    here = {"ANAMNESIS_DATA_DIR": str(data_dir)}
    file = tmp_path / "b.zip"
    made = run_command("backup", str(file), variables=here)
    assert made.returncode == 0, made.stderr
    assert f"{file} (" in made.stdout
    taken = run_command("backup", str(file), variables=here)
    assert (taken.returncode, taken.stderr.splitlines()[-1]) == (
        2,
        f"anamnesis: {file}: there is such a file already",
    )
    refused = run_command("restore", str(file), "--replace", "--yes", variables=here)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Stop the service, and restore again." in refused.stderr


def _finds_the_teacher(at: dict[str, str]) -> None:
    """Search until nothing is left out: the first search starts Milvus."""
    search = ("api", "POST", "users/u-1/episodes/search", "query=Who teaches me the violin?", "--json")
    answer: dict[str, Any] = {}

    def whole() -> bool:
        nonlocal answer
        found = run_command(*search, variables=at)
        assert found.returncode == 0, found.stderr
        answer = json.loads(found.stdout)
        assert "Odile" in answer["items"][0]["content"]
        return bool(answer["degraded"] == [])

    assert wait_until(whole, seconds=60), answer["degraded"]


def test_erasures_that_a_restore_undoes_are_named_and_repeated(
    service: ServiceProcess, data_dir: Path, tmp_path: Path
) -> None:
    here = {"ANAMNESIS_DATA_DIR": str(data_dir)}
    user, file = "/api/v1/users/u-1", tmp_path / "b.zip"
    answer_of(chat(service.url, "My locker code is qzvault. I like tea."))
    answer_of(chat(service.url, "I am qzgone.", user_id="u-2"))
    answer_of(chat(service.url, "I stay.", user_id="u-3"))
    with httpx.Client(base_url=service.url, timeout=30) as http:
        content = {"bank": ["Zenith qzbank"], "home": ["Lund"]}
        http.put(f"{user}/core-memory/human", json={"content": content}).raise_for_status()
        written = http.post(f"{user}/episodes", json={"content": "My cat is called qzcat."}).raise_for_status()
        made = run_command("backup", str(file), variables=here)
        assert made.returncode == 0, made.stderr
        for target in (
            {"topic": "my locker code", "delete_messages": True},
            {"value": {"section": "human", "field": "bank", "text": "Zenith qzbank"}},
            {"episode_id": written.json()["id"]},
        ):
            erased = http.post(f"{user}/erasures", json=target).raise_for_status()
            assert erased.json()["receipt_id"]
        http.delete("/api/v1/users/u-2").raise_for_status()
        before = http.get(f"{user}/export").text
        assert "Lund" in before
    service.stop()

    asked = run_command("restore", str(file), "--replace", "--yes", variables=here)
    assert (asked.returncode, asked.stdout) == (2, "")
    assert "u-2, u-1 were erased, or had something forgotten for good (1 users, 3 receipts)" in asked.stderr
    assert "--repeat-erasures or --undo-erasures; nothing was changed" in asked.stderr
    undone = run_command("restore", str(file), "--replace", "--yes", "--undo-erasures", variables=here)
    assert undone.returncode == 0, undone.stderr
    assert "u-2, u-1 were erased" in undone.stderr
    again = run_command("restore", str(file), "--replace", "--yes", "--index-later", variables=here)
    assert "The service will index" in again.stdout
    assert again.returncode == 0, "nothing is erased since: " + again.stderr
    with_words = ServiceProcess(data_dir, free_port()).start()
    with httpx.Client(base_url=with_words.url, timeout=30) as http:
        assert "qzvault" in http.get(f"{user}/export").text
        for target in (
            {"topic": "my locker code", "delete_messages": True},
            {"value": {"section": "human", "field": "bank", "text": "Zenith qzbank"}},
            {"episode_id": written.json()["id"]},
        ):
            http.post(f"{user}/erasures", json=target).raise_for_status()
        http.delete("/api/v1/users/u-2").raise_for_status()
    with_words.stop()

    repeated = run_command("restore", str(file), "--replace", "--yes", "--repeat-erasures", variables=here)
    assert repeated.returncode == 0, repeated.stderr
    assert "Erased again what was erased since" in repeated.stdout
    without = ServiceProcess(data_dir, free_port()).start()
    with httpx.Client(base_url=without.url, timeout=30) as http:
        export = http.get(f"{user}/export").text
        assert [each for each in ("qzvault", "qzbank", "qzcat") if each in export] == []
        assert "Lund" in export
        assert http.get("/api/v1/users/u-2").status_code == 404
        assert "I stay." in http.get("/api/v1/users/u-3/export").text
        receipts = http.get(f"{user}/erasures").json()["items"]
        assert len(receipts) >= 3
    without.stop()
