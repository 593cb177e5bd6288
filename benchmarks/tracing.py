"""What tracing costs a turn: CPU time of its spans, sent to a collector, beside that of the turn itself.

`python -m benchmarks.tracing [--turns 2000]`

The spans are those of an ordinary turn with their attributes: request, turn, search in memory, call of the model,
operation of memory, two jobs. Counted is the CPU time of the whole process, so the thread that encodes and sends
them is part of it. The turn is that of a running service against the stand-in model, without tracing.
"""

import argparse
import http.server
import os
import signal
import time
from contextlib import ExitStack
from uuid import uuid4

from opentelemetry.trace import SpanKind

from benchmarks.processes import child
from benchmarks.rig import Client, fresh_lanes, interrupt_once, service, stand_in
from services.platform import span_names as names
from services.platform.tracing import TRACING, causes, span, taken_causes

_AT_ONCE = 10
_OF_THE_SERVICE = 200
_COLLECT = "from benchmarks.tracing import collect; collect()"


class _Drop(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def collect() -> None:
    """Be the collector: print the port, then drop what comes."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Drop) as server:
        print(server.server_port, flush=True)
        server.serve_forever()


def _spans_of_a_turn() -> None:
    turn, conversation = str(uuid4()), str(uuid4())
    request = {names.METHOD: "POST", names.PATH: "/api/v1/chat/stream"}
    agent = {
        names.OPERATION: "invoke_agent",
        names.AGENT: "default",
        names.CONVERSATION: conversation,
        names.USER: "user-1",
        names.SESSION: "session-1",
        names.TENANT: conversation,
        names.TURN: turn,
    }
    model = {names.OPERATION: "chat", names.PROVIDER: names.OPENAI, names.REQUEST_MODEL: "stand-in"}
    kept: list[dict[str, list[str]]] = []
    with span("POST /api/v1/chat/stream", request, kind=SpanKind.SERVER) as served:
        served.set_attribute(names.STATUS, 200)
        with span("invoke_agent default", agent) as running:
            with span("search_memory", {names.OPERATION: "search_memory", names.MEMORY_STORE: turn}) as search:
                search.set_attribute(names.MEMORY_RECORDS, 5)
            with span("chat stand-in", model, kind=SpanKind.CLIENT) as call:
                for name in (names.FIRST_CHUNK, names.INPUT_TOKENS, names.OUTPUT_TOKENS, names.CACHED_TOKENS):
                    call.set_attribute(name, 64)
            with span("create_memory", {names.OPERATION: "create_memory", names.MEMORY_RECORD: turn}):
                kept += [causes(), causes()]
            running.set_attribute(names.TURN_STATUS, "completed")
    for carried in kept:
        with (
            taken_causes(carried) as links,
            span("job file_memory", {names.JOB: 1}, kind=SpanKind.CONSUMER, links=links),
        ):
            pass


def _cpu_ms(turns: int) -> float:
    begun = time.process_time()
    for _ in range(turns):
        _spans_of_a_turn()
        if TRACING.tracer is not None:
            time.sleep(0.002)  # as turns come: a burst would be dropped in place of being sent
    TRACING.stop()
    return (time.process_time() - begun) / turns * 1000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=2000)
    chosen = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt_once)
    off = _cpu_ms(chosen.turns)
    with ExitStack() as stack:
        collector = stack.enter_context(child(["-c", _COLLECT], piped=True))
        if collector.stdout is None:
            raise AssertionError("it is piped")
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{int(collector.stdout.readline())}"
        TRACING.start()
        on = _cpu_ms(chosen.turns)
        del os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]
        model = f"http://127.0.0.1:{stack.enter_context(stand_in())}/burst/v1"
        client = Client(stack.enter_context(child(["-m", "benchmarks.load_client"], piped=True)))
        ours = stack.enter_context(service(model, "chat"))
        client.measure(ours, ours.load(fresh_lanes(_OF_THE_SERVICE), _AT_ONCE))
        _, before, after = client.measure(ours, ours.load(fresh_lanes(_OF_THE_SERVICE), _AT_ONCE))
        turn = (after.cpu_s - before.cpu_s) / _OF_THE_SERVICE * 1000
    print(f"CPU of a turn, without tracing: {turn:.2f} ms")
    print(f"spans of a turn while tracing is off: {off:.4f} ms, {off / turn:.2%}")
    print(f"spans of a turn, made, encoded and sent: {on:.3f} ms, {on / turn:.2%}")


if __name__ == "__main__":
    main()
