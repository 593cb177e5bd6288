"""Exemplars: histograms that name the trace of the newest observation in each bucket, while tracing is on.

Several processes of one port share their figures in files, which hold no exemplars. There, each process keeps its
own in memory and adds them to the merged figures when it is the one that is asked.
"""

import os
import time
from collections.abc import Iterable

from opentelemetry import trace
from prometheus_client import Histogram
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar
from prometheus_client.utils import floatToGoString

from services.platform.tracing import TRACING

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The client library's variable for the folder in which the processes of one service keep their figures."""

_Bucket = tuple[str, frozenset[tuple[str, str]]]
"""Name and labels of a bucket's series."""

_OWN: dict[_Bucket, Exemplar] = {}
"""The newest of this process; as many as it has buckets, and filled only if figures are shared."""


class TracedHistogram(Histogram):
    """A histogram with the trace of the newest observation in each bucket."""

    def observe(self, amount: float, exemplar: dict[str, str] | None = None) -> None:
        """Count an observation, with the trace under way."""
        exemplar = exemplar or _current()
        super().observe(amount, exemplar)
        if exemplar is not None and SHARED_FOLDER in os.environ:
            bound = next(bound for bound in self._upper_bounds if amount <= bound)
            labels = dict(zip(self._labelnames, self._labelvalues, strict=True)) | {"le": _written(bound)}
            _OWN[f"{self._name}_bucket", frozenset(labels.items())] = Exemplar(exemplar, amount, time.time())


class SharedFigures(Collector):
    """The figures of all processes, with the exemplars of this one."""

    def __init__(self) -> None:
        self._merged = MultiProcessCollector(None)  # type: ignore[no-untyped-call]

    def collect(self) -> Iterable[Metric]:
        """Merge the figures."""
        for metric in self._merged.collect():  # type: ignore[no-untyped-call]
            if metric.type == "histogram":
                metric.samples = [
                    sample._replace(exemplar=_OWN.get((sample.name, frozenset(sample.labels.items()))))
                    for sample in metric.samples
                ]
            yield metric


def _written(bound: float) -> str:
    return str(floatToGoString(bound))  # type: ignore[no-untyped-call]


def _current() -> dict[str, str] | None:
    """Return the trace and span under way; None if there is none that is kept."""
    if TRACING.tracer is None:
        return None
    context = trace.get_current_span().get_span_context()
    if not (context.is_valid and context.trace_flags.sampled):
        return None
    return {"trace_id": trace.format_trace_id(context.trace_id), "span_id": trace.format_span_id(context.span_id)}
