"""An OpenTelemetry collector on the loopback that keeps what it is sent."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue


@dataclass(frozen=True)
class Received:
    """A span as it arrived."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    failed: bool
    attributes: dict[str, Any]
    linked: list[str]
    """Ids of the traces that it links to."""


@dataclass
class TraceCollector:
    """What arrived, in the order of arrival."""

    endpoint: str = ""
    service: set[str] = field(default_factory=set)
    spans: list[Received] = field(default_factory=list)

    def one(self, name: str, trace_id: str | None = None) -> Received:
        """The only span with a name, of all traces or of one."""
        (found,) = [each for each in self.spans if each.name == name and trace_id in (None, each.trace_id)]
        return found

    def names(self) -> set[str]:
        return {each.name for each in self.spans}

    def take(self, body: bytes) -> None:
        """Keep the spans of a request."""
        for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.service.add(str(_attributes(of_resource.resource.attributes)["service.name"]))
            for scope in of_resource.scope_spans:
                self.spans += [_received(each) for each in scope.spans]


@contextmanager
def trace_collector(status: int = 200) -> Iterator[TraceCollector]:
    """Listen; answer every request with `status`, and keep the spans of accepted requests."""
    collector = TraceCollector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            if status == 200:
                collector.take(body)
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.endpoint = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield collector
        server.shutdown()
        thread.join()


def _received(each: Any) -> Received:
    return Received(
        each.name,
        each.trace_id.hex(),
        each.span_id.hex(),
        each.parent_span_id.hex(),
        each.kind,
        each.status.code == 2,
        _attributes(each.attributes),
        [link.trace_id.hex() for link in each.links],
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {each.key: _value(each.value) for each in pairs}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    found = getattr(value, str(kind))
    return [_value(each) for each in found.values] if kind == "array_value" else found
