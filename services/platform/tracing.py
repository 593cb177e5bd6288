"""Traces: nine kinds of spans, placed by hand. Without an exporter there are no spans, and they cost nothing.

A failing exporter never affects a turn: a thread sends the spans, and drops them when they pile up.
"""

import os
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Link, Span, SpanKind, StatusCode, Tracer
from opentelemetry.util.types import AttributeValue
from prometheus_client import Histogram

from services.errors import AnamnesisError, ConfigurationError, ModelFailed
from services.platform import span_names as names

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""OpenTelemetry's own variables; setting one of them switches tracing on."""
_FLUSH_MS = 3_000
_PARENT = "traceparent"
_PARENTS = "traceparents"
_MOST_LINKS = 32

_inherited: ContextVar[tuple[str, ...]] = ContextVar("inherited", default=())
"""Causes of the current job; a job that it queues in its place has these causes and the job itself."""

confidential: ContextVar[bool] = ContextVar("confidential", default=False)
"""Whether logs and spans leave out all that may quote a conversation, even words of an endpoint: in temporary
turns."""

Attributes = Mapping[str, AttributeValue | None]


class Tracing:
    """Whether and where this process sends spans."""

    def __init__(self) -> None:
        self._provider: TracerProvider | None = None
        self.tracer: Tracer | None = None
        """The tracer; None = tracing is off."""
        self.content = False
        """Whether spans hold what was said, and not only how much."""

    @property
    def shows_content(self) -> bool:
        """Return whether spans hold what is said in the current turn."""
        return self.content and not confidential.get()

    def start(self, *, content: bool = False) -> None:
        """Send spans if one of OpenTelemetry's variables says where to. Raises `ConfigurationError` if the
        exporter is not installed."""
        if not any(os.environ.get(name) for name in _ENDPOINTS) or self.tracer is not None:
            return
        try:
            from services.platform.tracing_exporter import exporting_provider  # noqa: PLC0415 — an extra
        except ImportError:
            raise ConfigurationError(
                f"{_ENDPOINTS[0]} is set, which needs packages: pip install opentelemetry-sdk "
                "opentelemetry-exporter-otlp-proto-http"
            ) from None
        provider = exporting_provider(os.environ.get("OTEL_SERVICE_NAME") or "anamnesis")
        self._provider, self.tracer, self.content = provider, provider.get_tracer("anamnesis"), content

    def stop(self) -> None:
        """Send the remaining spans, for three seconds at most, and stop."""
        provider, self._provider, self.tracer = self._provider, None, None
        if provider is not None:
            provider.force_flush(_FLUSH_MS)
            provider.shutdown()


TRACING = Tracing()
"""Traces of this process, global like its metrics."""


@contextmanager
def span(
    name: str,
    attributes: Attributes | None = None,
    *,
    kind: SpanKind = SpanKind.INTERNAL,
    links: Sequence[Link] = (),
    parent: Mapping[str, str] | None = None,
) -> Iterator[Span]:
    """Run the block within a span; while tracing is off, the span records nothing.

    An exception marks the span with the kind of the error, never with its message, which may quote a user.

    Args:
        attributes: Attributes; those that are None are left out.
        links: Links to spans of other traces that caused this one.
        parent: Headers of a request that name the caller's span.
    """
    tracer = TRACING.tracer
    if tracer is None:
        yield INVALID_SPAN
        return
    context = propagate.extract(parent) if parent else None
    told = {key: value for key, value in (attributes or {}).items() if value is not None}
    with tracer.start_as_current_span(
        name, context, kind, told, links, record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield current
        except BaseException as error:
            mark_failed(current, _kind_of(error))
            raise


def mark_failed(current: Span, error_type: str) -> None:
    """Mark a span as failed with a kind of error."""
    current.set_attribute(names.ERROR, error_type)
    current.set_status(StatusCode.ERROR)


def trace_id() -> str | None:
    """Return the id of the current trace, 32 hexadecimal digits; None while tracing is off or without a span."""
    context = trace.get_current_span().get_span_context() if TRACING.tracer is not None else None
    return trace.format_trace_id(context.trace_id) if context is not None and context.is_valid else None


def causes() -> dict[str, list[str]]:
    """Return the causes for what the current span causes, to be stored with it; empty without a span."""
    carrier: dict[str, str] = {}
    if TRACING.tracer is not None:
        propagate.inject(carrier)
    return {_PARENTS: [*_inherited.get(), carrier[_PARENT]][-_MOST_LINKS:]} if _PARENT in carrier else {}


@contextmanager
def taken_causes(kept: MutableMapping[str, Any]) -> Iterator[list[Link]]:
    """Remove from `kept` what `causes` stored there; yield it as links, also for what the block causes."""
    parents = tuple(map(str, kept.pop(_PARENTS, ())))
    token = _inherited.set(parents)
    try:
        contexts = [propagate.extract({_PARENT: each}, Context()) for each in parents if TRACING.tracer]
        spans = [trace.get_current_span(each).get_span_context() for each in contexts]
        yield [Link(each) for each in spans if each.is_valid]
    finally:
        _inherited.reset(token)


def add_trace_id(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add the trace to a line of the log."""
    if (current := trace_id()) is not None:
        event["trace_id"] = current
    return event


def _kind_of(error: BaseException) -> str:
    if isinstance(error, ModelFailed):
        return error.failure
    return error.code if isinstance(error, AnamnesisError) else type(error).__name__


class TracedHistogram(Histogram):
    """A histogram with the trace of the newest observation in each bucket."""

    def observe(self, amount: float, exemplar: dict[str, str] | None = None) -> None:
        """Count an observation, with the current trace."""
        super().observe(amount, exemplar or _current())


def _current() -> dict[str, str] | None:
    """Return the current trace and span; None if there is none that is kept."""
    if (traced := trace_id()) is None:
        return None
    context = trace.get_current_span().get_span_context()
    sampled = context.trace_flags.sampled
    return {"trace_id": traced, "span_id": trace.format_span_id(context.span_id)} if sampled else None
