"""Sends spans to a collector with OpenTelemetry's SDK, which is an optional dependency."""

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


def exporting_provider(service: str) -> TracerProvider:
    """Return a provider that sends spans in the name of a service, as OpenTelemetry's own variables say."""
    provider = TracerProvider(resource=Resource.create({"service.name": service}), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider
