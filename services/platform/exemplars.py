"""Exemplars: histograms that name the trace of the newest observation in each bucket, while tracing is on.

Several processes of one port share their figures in files, which hold no exemplars.
"""

from opentelemetry import trace
from prometheus_client import Histogram

from services.platform.tracing import TRACING


class TracedHistogram(Histogram):
    """A histogram with the trace of the newest observation in each bucket."""

    def observe(self, amount: float, exemplar: dict[str, str] | None = None) -> None:
        """Count an observation, with the trace under way."""
        super().observe(amount, exemplar or _current())


def _current() -> dict[str, str] | None:
    """Return the trace and span under way; None if there is none that is kept."""
    if TRACING.tracer is None:
        return None
    context = trace.get_current_span().get_span_context()
    if not (context.is_valid and context.trace_flags.sampled):
        return None
    return {"trace_id": trace.format_trace_id(context.trace_id), "span_id": trace.format_span_id(context.span_id)}
