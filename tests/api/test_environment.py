"""The service in environments that people really have, as a process with everything embedded."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import psycopg
import pytest

from services.platform.embedded_postgres import EmbeddedPostgres
from tests.support.command import run_command
from tests.support.folders import new_folder
from tests.support.model_server import ModelServer, Reply
from tests.support.ports import free_port
from tests.support.service_process import ServiceProcess, answer_of, chat

pytestmark = [pytest.mark.process, pytest.mark.slow]

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """Where an own service keeps its data."""
    with new_folder() as folder:
        yield Path(folder) / "data"


class DeafProxy:
    """Accepts connections, answers nothing, and counts."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        try:
            while True:
                self._listening.accept()[0].close()
                self.connections += 1
        except OSError:
            return

    def close(self) -> None:
        """Listen no more."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


def _dependencies(url: str, patience_s: float = 120) -> dict[str, str]:
    """The states once Milvus is up, which the service does not wait for."""
    end = time.monotonic() + patience_s
    while True:
        found = {
            each["name"]: each["state"] for each in httpx.get(f"{url}/readyz", timeout=60).json()["dependencies"]
        }
        if found["milvus"] == "ok" or time.monotonic() > end:
            return found
        time.sleep(0.1)


def _indexed(data_dir: Path) -> bool:
    with psycopg.connect(EmbeddedPostgres(data_dir).url("postgres")) as superuser:
        states = superuser.execute("SELECT indexed_at IS NOT NULL FROM episodes").fetchall()
    return bool(states) and all(indexed for (indexed,) in states)


def test_neither_embedded_engines_nor_a_model_on_this_machine_are_asked_through_a_proxy(
    data_dir: Path, model_server: ModelServer
) -> None:
    model_server.script(Reply(["Good day."]))
    with closing(DeafProxy()) as proxy:
        address = f"socks5://127.0.0.1:{proxy.port}"
        service = ServiceProcess(
            data_dir,
            free_port(),
            environment={**dict.fromkeys(PROXIES, address), "no_grpc_proxy": "intern.example"},
            llm_model="scripted",
            llm_base_url=model_server.base_url,
            llm_api_key="k",
        ).start()
        try:
            assert answer_of(chat(service.url, "Hello")) == "Good day."
            assert _dependencies(service.url)["milvus"] == "ok"
            asked = run_command(
                "doctor",
                variables={**dict.fromkeys(PROXIES, address), "ANAMNESIS_PORT": service.url.rpartition(":")[2]},
            )
            assert asked.returncode == 0, asked.stderr
        finally:
            service.end()
    assert proxy.connections == 0
    assert "proxy" not in service.text.lower()


def test_a_proxy_of_an_unknown_kind_is_refused_at_the_start(data_dir: Path) -> None:
    ran = run_command(
        "serve", variables={"ANAMNESIS_DATA_DIR": str(data_dir), "ALL_PROXY": "socks4://127.0.0.1:1"}
    )
    assert ran.returncode == 2
    assert ran.stderr.startswith("anamnesis: ALL_PROXY=socks4://127.0.0.1:1 cannot be used")
    assert len(ran.stderr.splitlines()) == 1


def test_an_embedding_model_that_is_set_after_having_talked_is_taken_over_while_the_service_answers(
    data_dir: Path, model_server: ModelServer
) -> None:
    service = ServiceProcess(data_dir, free_port()).start()
    answer_of(chat(service.url, "My dog is called Bruno."))
    assert _dependencies(service.url)["milvus"] == "ok"
    end = time.monotonic() + 120
    while not _indexed(data_dir):
        assert time.monotonic() < end
        time.sleep(0.05)
    service.stop()
    port = free_port()
    model = {
        "ANAMNESIS_DATA_DIR": str(data_dir),
        "ANAMNESIS_PORT": str(port),
        "ANAMNESIS_EMBEDDING_MODEL": "e",
        "ANAMNESIS_EMBEDDING_DIM": "8",
        "ANAMNESIS_EMBEDDING_BASE_URL": model_server.base_url,
        "ANAMNESIS_EMBEDDING_API_KEY": "k",
    }
    again = ServiceProcess(data_dir, port, environment=model).start()
    try:
        assert "Bruno" in answer_of(chat(again.url, "What is my dog called?"))
        end = time.monotonic() + 120
        while "the indexes are rebuilt" not in again.text:
            assert time.monotonic() < end, again.text
            time.sleep(0.1)
        found = run_command("memory", "search", "u-1", "What is my dog called?", variables=model)
    finally:
        again.stop()
    assert (found.returncode, "Bruno" in found.stdout) == (0, True), found.stderr
