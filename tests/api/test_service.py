"""The service as a process, as its users have it."""

import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest

from services.platform import child_process
from services.platform.embedded_postgres import EmbeddedPostgres
from tests.support.fork_server import ROOT
from tests.support.model_server import ModelServer, Reply
from tests.support.service_process import ServiceProcess, answer_of, chat, events_of, messages_of, none_alive

pytestmark = pytest.mark.slow


def _children(service: ServiceProcess) -> list[psutil.Process]:
    assert service.process
    return psutil.Process(service.process.pid).children(recursive=True)


def test_it_says_what_it_runs_on_and_how_to_try_it(shared_service: ServiceProcess) -> None:
    tried = f"curl -N {shared_service.url}/api/v1/chat/stream"
    assert child_process.wait_until(lambda: tried in shared_service.text, seconds=60), shared_service.text
    assert f"Anamnesis is ready at {shared_service.url}" in shared_service.text
    assert "PostgreSQL, Milvus Lite, in-process Redis" in shared_service.text
    assert "scripted" in shared_service.text
    assert shared_service.settled()["milvus"] in {"ok", "not_asked"}


def test_killed_in_mid_stream_it_keeps_the_message_and_goes_on(
    service: ServiceProcess, data_dir: Path, model_server: ModelServer
) -> None:
    answer_of(chat(service.url, "Before."))
    model_server.script(Reply(["half ", "an ", "answer"], gap_s=20))
    body = {"user_id": "u-1", "session_id": "s-1", "message": "In the middle."}
    opened: dict[str, str] = {}
    children: list[psutil.Process] = []

    def read_until_killed() -> None:
        with httpx.stream("POST", f"{service.url}/api/v1/chat/stream", json=body, timeout=120) as response:
            for _, status, content in events_of(response.iter_lines()):
                if status == "turn":
                    opened.update(content)
                if status == "token":
                    children.extend(_children(service))
                    service.kill()

    with pytest.raises(httpx.HTTPError):
        read_until_killed()
    assert none_alive(children)

    service.start()
    messages = messages_of(service.url, opened["conversation_id"])
    assert messages[:3] == [
        ("user", "Before.", True),
        ("assistant", "Certainly, here is the answer.", True),
        ("user", "In the middle.", True),
    ]
    with psycopg.connect(EmbeddedPostgres(data_dir).url("postgres")) as superuser:  # as if its time had passed
        superuser.execute(
            "UPDATE turns SET lease_expires_at = now() - interval '1 hour' WHERE id = %s", [opened["turn_id"]]
        )
    answer_of(chat(service.url, "After."))
    assert child_process.wait_until(
        lambda: (
            httpx.get(f"{service.url}/api/v1/turns/{opened['turn_id']}", timeout=60).json()["status"] == "failed"
        ),
        seconds=60,
    )


def test_milvus_is_started_with_the_first_memory_and_a_conversation_survives_a_restart(
    service: ServiceProcess, model_server: ModelServer
) -> None:
    def milvus() -> dict[str, object]:
        found = httpx.get(f"{service.url}/readyz", timeout=60).raise_for_status().json()
        return next(each for each in found["dependencies"] if each["name"] == "milvus")

    service.settled()
    assert milvus() == {
        "name": "milvus",
        "state": "not_asked",
        "latency_ms": None,
        "detail": "embedded; is started when it is needed",
        "advice": "",
    }
    assert not [each for each in _children(service) if "server" in each.cmdline()]
    answer_of(chat(service.url, "My dog is called Bruno."))
    assert child_process.wait_until(lambda: milvus()["state"] != "not_asked", seconds=60)
    assert service.settled()["milvus"] == "ok"
    assert [each for each in _children(service) if "server" in each.cmdline()]
    service.stop()
    assert "Milvus is needed and is started" in service.text
    service.start()
    assert service.settled()["milvus"] == "not_asked"
    events = chat(service.url, "What is my dog called?")
    answer = answer_of(events)
    said = ["My dog is called Bruno.", answer, "What is my dog called?"]
    assert model_server.requests[-1].said == said
    stored = messages_of(service.url, events[0][2]["conversation_id"])
    assert [content for _, content, _ in stored] == [*said, answer]


def test_a_port_that_is_taken_is_said_in_one_line(shared_service: ServiceProcess, tmp_path: Path) -> None:
    port = shared_service.url.rsplit(":", 1)[1]
    second = _anamnesis("serve", "--port", port, ANAMNESIS_DATA_DIR=str(tmp_path / "other"))
    assert second.returncode == 1
    assert second.stderr.startswith(f"anamnesis: port {port} of 127.0.0.1 cannot be used")
    assert second.stderr.count("\n") == 1


def test_logs_hold_ids_and_no_message_text_or_key(
    shared_service: ServiceProcess, model_server: ModelServer
) -> None:
    model_server.script(Reply(status=400), Reply(["whispered answer"]))
    failed = chat(shared_service.url, "a very private message", user_id="private")
    chat(shared_service.url, "another private message", user_id="private")
    assert child_process.wait_until(
        lambda: f"turn_id={failed[0][2]['turn_id']}" in shared_service.text, seconds=60
    ), shared_service.text
    for private in ("private message", "whispered", "secret"):
        assert private not in shared_service.text


def _anamnesis(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "api.cli.main", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "PYTHONPATH": str(ROOT), **variables},
    )
