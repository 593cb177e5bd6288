"""What tracing costs a turn: CPU time of two services in one run, one of which sends its spans to a collector.

`python -m benchmarks.tracing [--rounds 6] [--turns 150]`

The services take turns in being loaded, and begin each round in the other order. A turn is the first of a user's
conversation, the stand-in model answers at once, and the collector, a separate process, drops what it gets.
"""

import argparse
import http.server
import signal
import statistics
from contextlib import ExitStack

from benchmarks.processes import child, weigh
from benchmarks.turn_overhead import Client, Server, fresh_lanes, interrupt_once, service, stand_in

_AT_ONCE = 10
_COLLECT = "from benchmarks.tracing import collect; collect()"


class _Swallow(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def collect() -> None:
    """Be the collector: print the port, then swallow requests."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Swallow) as server:
        print(server.server_port, flush=True)
        server.serve_forever()


def _cpu_ms(client: Client, server: Server, turns: int) -> float:
    _, before, after = client.measure(server, server.load(fresh_lanes(turns), _AT_ONCE))
    return (after.cpu_s - before.cpu_s) / turns * 1000


def main() -> None:
    """Measure and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--turns", type=int, default=150, help="turns of each service in a round")
    chosen = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt_once)
    with ExitStack() as stack:
        model = f"http://127.0.0.1:{stack.enter_context(stand_in())}/burst/v1"
        collector = stack.enter_context(child(["-c", _COLLECT], piped=True))
        if collector.stdout is None:
            raise AssertionError("it is piped")
        endpoint = f"http://127.0.0.1:{int(collector.stdout.readline())}"
        off = stack.enter_context(service(model, "chat", name="off"))
        on = stack.enter_context(service(model, "chat", name="on", OTEL_EXPORTER_OTLP_ENDPOINT=endpoint))
        client = Client(stack.enter_context(child(["-m", "benchmarks.load_client"], piped=True)))
        for server in (off, on):
            _cpu_ms(client, server, chosen.turns)
        ratios, costs = [], {"off": [], "on": []}  # type: tuple[list[float], dict[str, list[float]]]
        for turn in range(chosen.rounds):
            for server in (off, on) if turn % 2 == 0 else (on, off):
                costs[server.name].append(_cpu_ms(client, server, chosen.turns))
            ratios.append(costs["on"][-1] / costs["off"][-1])
            latest = {name: each[-1] for name, each in costs.items()}
            print(f"round {turn + 1}: off {latest['off']:.2f} ms, on {latest['on']:.2f} ms", flush=True)
        collected = weigh(collector.pid).cpu_s
    medians = {name: statistics.median(each) for name, each in costs.items()}
    print(f"CPU of a turn: {medians['off']:.2f} ms without tracing, {medians['on']:.2f} ms with it")
    print(f"on/off: median of the rounds {statistics.median(ratios):.3f}; the collector took {collected:.2f} s")


if __name__ == "__main__":
    main()
