"""`anamnesis serve --workers N`: processes that share a port and embedded stores, and what watches them."""

import re
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from services.platform.child_process import wait_until
from tests.support.fork_server import ROOT
from tests.support.model_server import ModelServer, Reply
from tests.support.ports import free_port
from tests.support.service_process import Event, ServiceProcess, answer_of, chat, events_of, stream

pytestmark = [pytest.mark.process, pytest.mark.slow]

PROGRAM = (sys.executable, "-P", "-m", "anamnesis_agent")


@pytest.fixture
def service(model_server: ModelServer, data_dir: Path) -> Iterator[ServiceProcess]:
    """Two workers behind one port, on stores that are started with them."""
    if shutil.which("redis-server") is None:
        pytest.skip("no redis-server on this machine; install the system's package")
    process = ServiceProcess(
        data_dir,
        free_port(),
        program=PROGRAM,
        arguments=["--workers", "2"],
        environment={"PYTHONPATH": str(ROOT)},
        llm_model="scripted",
        llm_base_url=model_server.base_url,
        llm_api_key="k",
    )
    yield process
    process.end()


def workers(service: ServiceProcess) -> list[psutil.Process]:
    """The processes that the server of forks has made."""
    assert service.process
    found = []
    for each in psutil.Process(service.process.pid).children():
        with suppress(psutil.NoSuchProcess):  # it ended meanwhile
            if "multiprocessing.forkserver" in " ".join(each.cmdline()):
                found += each.children()
    return found


@contextmanager
def only(service: ServiceProcess, worker: psutil.Process) -> Iterator[None]:
    """Let this worker alone accept connections."""
    others = [each for each in workers(service) if each != worker]
    for each in others:
        each.suspend()
    try:
        yield
    finally:
        for each in others:
            each.resume()


def metric(url: str, name: str) -> float:
    families = text_string_to_metric_families(httpx.get(f"{url}/metrics", timeout=60).raise_for_status().text)
    return sum(sample.value for family in families for sample in family.samples if sample.name == name)


def answered_by(service: ServiceProcess, turn_id: str) -> str:
    line = re.compile(rf"process='(worker \d)'.*turn_id={turn_id}")
    assert wait_until(lambda: line.search(service.text) is not None, seconds=60)
    return str(line.findall(service.text)[-1])


def each_reads_what_the_other_writes(service: ServiceProcess, model_server: ModelServer) -> None:
    """Say five things, to one worker and the other."""
    one, other = workers(service)
    with only(service, one):
        first = chat(service.url, "My dog is called Bruno.", session_id="s-1")
    with only(service, other):  # it fills its working set
        chat(service.url, "What is my dog called?", session_id="s-2")
    assert "Bruno" in str(model_server.requests[-1].prompt)
    with only(service, one):
        chat(service.url, "My cat is called Minka.", session_id="s-1")
    with only(service, other):  # its set is behind, and so is what it knows of the conversation
        chat(service.url, "What is my cat called?", session_id="s-3")
        assert "Minka" in str(model_server.requests[-1].prompt)
        last = chat(service.url, "And the dog?", session_id="s-1")
    assert "My cat is called Minka." in model_server.requests[-1].said
    by = {answered_by(service, each[-1][2]["turn_id"]) for each in (first, last)}
    assert by == {"worker 1", "worker 2"}
    assert service.settled()


@pytest.mark.soak  # runners that share turns, and working sets of two processes, are tested by themselves
def test_workers_share_memory_and_take_up_and_cancel_each_others_streams(
    service: ServiceProcess, model_server: ModelServer
) -> None:
    service.start()
    assert wait_until(lambda: len(workers(service)) == 2, seconds=60)
    each_reads_what_the_other_writes(service, model_server)
    one, other = workers(service)

    def begun(gap_s: float) -> tuple[Iterator[Event], list[Event]]:
        model_server.script(Reply(["It ", "takes ", "a ", "little ", "time."], gap_s=gap_s))
        with only(service, one):
            running = stream(service.url, "Hello.", session_id="s-1")
            return running, [next(running), next(running), next(running)]

    with httpx.Client(base_url=service.url, timeout=60) as at_other:
        with only(service, other):
            at_other.get("/healthz")  # over the connection that it uses from now on

        running, seen = begun(0.5)
        turn = f"/api/v1/turns/{seen[0][2]['turn_id']}"
        with at_other.stream("GET", f"{turn}/stream") as response:
            again = list(events_of(response.iter_lines()))
        assert again == seen + list(running)
        assert answer_of(again) == "It takes a little time."

        running, seen = begun(30)
        turn = f"/api/v1/turns/{seen[0][2]['turn_id']}"
        at_other.post(f"{turn}/cancel").raise_for_status()
        rest = list(running)
    assert rest[-1][1] == "error"
    assert rest[-1][2]["code"] == "cancelled"


def test_what_dies_is_replaced_and_a_signal_ends_everything(
    service: ServiceProcess, model_server: ModelServer
) -> None:
    service.start()
    assert wait_until(lambda: len(workers(service)) == 2, seconds=60)
    for worker in workers(service):
        with only(service, worker):
            chat(service.url, "Hello.", session_id="s-1")
    assert wait_until(lambda: metric(service.url, "anamnesis_turns_total") == 2, seconds=60)
    assert wait_until(lambda: metric(service.url, "anamnesis_turns_running") == 0, seconds=60)

    killed = workers(service)[0]
    killed.kill()
    assert answer_of(chat(service.url, "Hello.", session_id="t-0", user_id="u-2"))
    assert wait_until(lambda: metric(service.url, "anamnesis_turns_total") == 3, seconds=60)
    assert wait_until(lambda: len(workers(service)) == 2 and killed not in workers(service), seconds=60)
    told = re.compile(r"process ended and is started again.*exit_code=-9.*process='worker \d'")
    assert wait_until(lambda: told.search(service.text) is not None, seconds=60)

    assert service.process
    left = psutil.Process(service.process.pid).children(recursive=True)
    assert len(left) > 5
    model_server.default = Reply(["It ", "takes ", "a ", "little ", "time."], gap_s=0.5)
    running = stream(service.url, "Hello.", session_id="u-0", user_id="u-2")
    events = [next(running)]
    service.send(signal.SIGTERM)
    events.extend(running)
    assert answer_of(events) == "It takes a little time."
    assert service.wait() == 0
    assert wait_until(lambda: not any(each.is_running() for each in left), seconds=60)
    assert service.text.count("Anamnesis is ready at") == 1
