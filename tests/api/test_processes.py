"""`anamnesis serve --workers N`: processes that share a port, and the one that watches them."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from services.engines import Engines
from services.platform.child_process import wait_until
from tests.conftest import free_port
from tests.support.command import run_command
from tests.support.folders import new_folder
from tests.support.model_server import ModelServer, Reply
from tests.support.service_process import ServiceProcess, answer_of, chat, stream

pytestmark = pytest.mark.process


@pytest.fixture
def service(engines: Engines, redis_server: str, model_server: ModelServer) -> Iterator[ServiceProcess]:
    """Two processes behind one port."""
    with new_folder() as folder:
        process = ServiceProcess(
            Path(folder) / "data",
            free_port(),
            arguments=["--workers", "2"],
            database_url=engines.database_url,
            redis_url=redis_server,
            milvus_uri=engines.milvus_uri,
            llm_model="scripted",
            llm_base_url=model_server.base_url,
            llm_api_key="k",
        )
        yield process
        process.end()


def serving(service: ServiceProcess) -> list[psutil.Process]:
    """The processes that answer."""
    assert service.process
    return psutil.Process(service.process.pid).children()


def metric(url: str, name: str) -> float:
    families = text_string_to_metric_families(httpx.get(f"{url}/metrics").raise_for_status().text)
    return sum(sample.value for family in families for sample in family.samples if sample.name == name)


@pytest.mark.soak
def test_a_process_that_dies_is_replaced_while_the_other_answers(
    service: ServiceProcess, model_server: ModelServer
) -> None:
    service.start()
    assert wait_until(lambda: len(serving(service)) == 2, seconds=60)
    for number in range(6):
        assert answer_of(chat(service.url, "Hello.", session_id=f"s-{number}"))
    assert metric(service.url, "anamnesis_turns_total") == 6
    assert metric(service.url, "anamnesis_turns_running") == 0

    killed = serving(service)[0]
    killed.kill()
    for number in range(6):
        assert answer_of(chat(service.url, "Hello.", session_id=f"t-{number}"))
    assert metric(service.url, "anamnesis_turns_total") == 12
    assert wait_until(lambda: len(serving(service)) == 2 and killed not in serving(service), seconds=60)
    assert re.search(r"process ended and is started again.*-9", service.text)

    left = serving(service)
    model_server.default = Reply(["It ", "takes ", "a ", "little ", "time."], gap_s=0.5)
    running = stream(service.url, "Hello.", session_id="u-0")
    events = [next(running)]
    service.send(signal.SIGTERM)
    events.extend(running)
    assert answer_of(events) == "It takes a little time."
    assert service.wait() == 0
    assert not any(each.is_running() for each in left)
    assert service.text.count("Anamnesis is ready at") == 1


def test_several_processes_need_stores_that_they_can_share() -> None:
    ran = run_command("serve", "--workers", "2", variables={"ANAMNESIS_REDIS_URL": "redis://127.0.0.1:9/0"})
    assert ran.returncode == 1
    assert "ANAMNESIS_DATABASE_URL, ANAMNESIS_MILVUS_URI" in ran.stderr
