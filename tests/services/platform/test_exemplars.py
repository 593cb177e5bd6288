"""Exemplars where several processes share their figures."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_fd_to_metric_families

pytestmark = pytest.mark.process

_PROCESS = """
import sys
from opentelemetry.sdk.trace import TracerProvider
from services.platform.metrics import FIRST_TOKEN_SECONDS, NODE_SECONDS, exposition
from services.platform.tracing import TRACING, span, trace_id
TRACING.tracer = TracerProvider().get_tracer("test")
with span("turn"):
    FIRST_TOKEN_SECONDS.observe(0.03)
    NODE_SECONDS.labels("route").observe(1000)
    trace = trace_id()
FIRST_TOKEN_SECONDS.observe(0.3)
print(trace)
print(exposition("application/openmetrics-text")[0].decode())
"""


def _run(folder: Path) -> tuple[str, str]:
    """Observe in a process of its own; return its trace and what it shows."""
    done = subprocess.run(
        [sys.executable, "-c", _PROCESS],
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    trace, _, shown = done.stdout.partition("\n")
    return trace, shown.rstrip("\n") + "\n"


def test_a_process_shows_the_figures_of_all_with_its_own_traces(tmp_path: Path) -> None:
    _run(tmp_path)
    trace, shown = _run(tmp_path)
    found = text_fd_to_metric_families(io.StringIO(shown))  # type: ignore[no-untyped-call]
    families = {family.name: family for family in found}
    samples = families["anamnesis_first_token_seconds"].samples
    assert next(each.value for each in samples if each.name.endswith("_count")) == 4
    named = {each.labels["le"]: each.exemplar for each in samples if each.exemplar}
    assert {bound: each.labels["trace_id"] for bound, each in named.items()} == {"0.05": trace}
    slowest = [each for each in families["anamnesis_node_seconds"].samples if each.exemplar]
    assert [(each.labels["le"], each.exemplar.value) for each in slowest] == [("+Inf", 1000.0)]
