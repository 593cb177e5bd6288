"""What a supervisor's SIGTERM and a person's Ctrl-C do to turns under way."""

import signal
import threading
import time
from typing import Any

import httpx
import psutil
import pytest

from services.platform.child_process import wait_until
from tests.support.model_server import ModelServer, Reply
from tests.support.service_process import Event, ServiceProcess, answer_of, messages_of, none_alive, stream

pytestmark = pytest.mark.slow

ENDLESS = Reply(["It ", "is ", "late"], gap_s=60)


class _Client(threading.Thread):
    """Sends a message and collects what comes."""

    def __init__(self, url: str, message: str, **values: Any) -> None:
        super().__init__()
        self._url, self._message, self._values = url, message, values
        self.events: list[Event] = []

    def run(self) -> None:
        for event in stream(self._url, self._message, **self._values):
            self.events.append(event)

    def until(self, status: str) -> None:
        """Wait until an event of this status has come."""
        ends = time.monotonic() + 60
        while all(event[1] != status for event in self.events):
            assert time.monotonic() < ends, self.events
            time.sleep(0.02)


def _lets_in(url: str) -> bool:
    try:
        httpx.get(f"{url}/healthz", timeout=60)
    except httpx.ConnectError:
        return False
    return True


def test_on_sigterm_running_and_waiting_turns_finish_and_nobody_new_is_let_in(
    service: ServiceProcess, model_server: ModelServer
) -> None:
    goes_on = threading.Event()
    model_server.script(Reply(["It ", "is ", "late ", "now."], held=goes_on), Reply(["Second."]))
    running, waiting = _Client(service.url, "one"), _Client(service.url, "two")
    running.start()
    running.until("token")
    waiting.start()
    with httpx.Client(base_url=service.url, timeout=60) as kept_open:
        kept_open.get("/healthz")
        waiting.until("turn")
        assert service.process
        service.process.send_signal(signal.SIGTERM)
        assert wait_until(lambda: not _lets_in(service.url), seconds=60)
        last = kept_open.get("/healthz")
        assert (last.status_code, last.headers["connection"]) == (200, "close")
    children = psutil.Process(service.process.pid).children(recursive=True)
    assert len(children) >= 2
    goes_on.set()
    running.join(60)
    waiting.join(60)
    assert answer_of(running.events) == "It is late now."
    assert answer_of(waiting.events) == "Second."
    assert service.wait() == 0
    assert none_alive(children)
    assert "Traceback" not in service.text


def test_ctrl_c_leaves_a_waiting_turn_to_the_next_start_and_a_second_signal_ends_a_running_one_at_once(
    service: ServiceProcess, model_server: ModelServer
) -> None:
    model_server.script(ENDLESS, Reply(["Later."]))
    running, waiting = _Client(service.url, "one"), _Client(service.url, "two")
    running.start()
    running.until("token")
    waiting.start()
    waiting.until("turn")
    assert service.stop(signal.SIGINT) == 0
    running.join(60)
    waiting.join(60)
    for each in (running, waiting):
        status, content = each.events[-1][1:]
        assert (status, content["code"]) == ("error", "interrupted")
    conversation = running.events[0][2]["conversation_id"]
    service.start()
    stored = httpx.get(f"{service.url}/api/v1/turns/{running.events[-1][2]['turn_id']}", timeout=60).json()
    assert (stored["status"], stored["answer"]) == ("partial", "It ")
    assert wait_until(lambda: len(messages_of(service.url, conversation)) == 4, seconds=60)
    assert messages_of(service.url, conversation) == [
        ("user", "one", True),
        ("assistant", "It ", False),
        ("user", "two", True),
        ("assistant", "Later.", True),
    ]

    model_server.script(ENDLESS)
    running = _Client(service.url, "three")
    running.start()
    running.until("token")
    assert service.process
    service.process.send_signal(signal.SIGTERM)
    assert wait_until(lambda: not _lets_in(service.url), seconds=60)
    assert service.process.poll() is None
    assert service.stop(signal.SIGTERM) == 0
    running.join(60)
    last = running.events[-1]
    assert (last[1], last[2]["code"], last[2]["answer"]) == ("error", "interrupted", "It ")
