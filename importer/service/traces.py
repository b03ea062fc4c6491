"""The export of spans over OTLP/HTTP, where the standard variables of OpenTelemetry ask for it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

from importer import tracing
from importer.errors import ServiceError
from importer.version import __version__

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL = "http/protobuf"
EXTRA = "traces need more packages: pip install 'importer[otel]'"


def requested(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the variable that asks for traces, if one does.

    Raises ServiceError("bad-setting") for an address or a protocol that cannot be used.
    """
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    if environment.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower() == "none":
        return None
    place = next((name for name in ENDPOINTS if environment.get(name, "").strip()), None)
    if place is None:
        return None
    parts = urlsplit(environment[place].strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ServiceError("bad-setting", place=place, problem="it is no http or https URL")
    for name in PROTOCOLS:
        if environment.get(name, "").strip() not in ("", PROTOCOL):
            raise ServiceError("bad-setting", place=name, problem=f"only {PROTOCOL} is known")
    return place


@contextmanager
def exported() -> Iterator[None]:
    """Export the spans of the block where the variables ask for it; at its end all of them are sent.

    Raises ServiceError("bad-setting"), also where the packages of the extra ``otel`` are missing.
    """
    place = requested()
    if place is None:
        yield
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise ServiceError("bad-setting", place=place, problem=EXTRA) from None
    named = {
        "service.name": os.environ.get("OTEL_SERVICE_NAME") or "importer",
        "service.version": __version__,
    }
    provider = TracerProvider(resource=Resource.create(named))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    tracing.use(provider.get_tracer("importer", __version__))
    try:
        yield
    finally:
        tracing.use(None)
        provider.shutdown()
