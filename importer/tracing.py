"""Spans of requests, jobs, steps, the Hub and engines: made where an exporter asks for them, else nothing.

A span has a name of the code, and values of the code: ids, kinds, numbers, names of documents. It never has a
body, a header, a query, a prompt or an error's text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

Value = str | int | float | bool | None
LONGEST = 200  # characters of a value
_tracers: list[Tracer] = []  # the one of this process, if spans are asked for


class OpenSpan:
    """A span that has begun; without an exporter its methods do nothing."""

    def __init__(self, span: Span | None = None) -> None:
        self._span = span

    def name(self, name: str) -> None:
        """Rename the span: a request's route is known at its end."""
        if self._span is not None:
            self._span.update_name(name)

    def note(self, **values: Value) -> None:
        """Add values; ``http__route`` is the attribute ``http.route``."""
        if self._span is not None:
            self._span.set_attributes(_attributes(values))

    def failed(self, kind: str) -> None:
        """Mark the span as failed with a kind, or the name of a class: never with a text."""
        if self._span is not None:
            from opentelemetry.trace import StatusCode

            self._span.set_status(StatusCode.ERROR, kind[:LONGEST])


def use(tracer: Tracer | None) -> None:
    """Make spans with this tracer from now on, or none."""
    _tracers[:] = [] if tracer is None else [tracer]


@contextmanager
def span(
    name: str, *, parent: str | None = None, server: bool = False, client: bool = False, **values: Value
) -> Iterator[OpenSpan]:
    """Open a span within the present one, or within ``parent``, a ``traceparent`` of W3C's Trace Context.

    An exception marks it as failed by the name of its class, or by its ``kind``.
    """
    if not _tracers:
        yield OpenSpan()
        return
    from opentelemetry.trace import SpanKind

    kind = SpanKind.SERVER if server else SpanKind.CLIENT if client else SpanKind.INTERNAL
    with _tracers[0].start_as_current_span(
        name,
        _context(parent),
        kind,
        _attributes(values),
        record_exception=False,
        set_status_on_exception=False,
    ) as begun:
        opened = OpenSpan(begun)
        try:
            yield opened
        except BaseException as error:
            opened.failed(str(getattr(error, "kind", None) or type(error).__name__))
            raise


def parent() -> str | None:
    """Return the present span as a ``traceparent``, to go on with elsewhere; ``None`` without one."""
    if not _tracers:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent")


def trace_id() -> str | None:
    """Return the id of the present trace in 32 hexadecimal digits."""
    found = parent()
    return None if found is None else found.split("-")[1]


def _context(parent: str | None) -> Context | None:
    if parent is None:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({"traceparent": parent})


def _attributes(values: Mapping[str, Value]) -> dict[str, str | int | float | bool]:
    return {
        name.replace("__", "."): value[:LONGEST] if isinstance(value, str) else value
        for name, value in values.items()
        if value is not None
    }
