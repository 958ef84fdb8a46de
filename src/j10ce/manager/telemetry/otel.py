"""Tracing with OpenTelemetry: spans to an OTLP/HTTP collector. Imported only where one is named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span as OtelSpan
from opentelemetry.trace import SpanKind, get_current_span, use_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from j10ce import __version__
from j10ce.manager.telemetry.trace import HEADER, Span, Tracer
from j10ce.model.kinds import AppliedChange

PATH: Final = "/v1/traces"


class Recorded:
    def __init__(self, span: OtelSpan) -> None:
        self._span = span

    @property
    def trace(self) -> str:
        context = self._span.get_span_context()
        if not context.trace_flags.sampled:
            return ""
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"

    def note(self, name: str, value: str | int) -> None:
        self._span.set_attribute(name, value)


class OtelTracer:
    def __init__(self, endpoint: str, identity: str) -> None:
        """Without an endpoint the OTEL_* variables decide; they decide on the sampler in any case."""
        facts = {"service.name": "j10ce-qos-controller-manager", "service.version": __version__}
        resource = Resource.create(facts | {"service.instance.id": identity})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint.rstrip("/").removesuffix(PATH) + PATH if endpoint else None)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("j10ce.manager", __version__)

    @contextmanager
    def request(self, name: str, caller: str, facts: Mapping[str, str]) -> Iterator[Span]:
        span = self._tracer.start_span(name, _context(caller), SpanKind.SERVER, attributes=facts)
        with use_span(span, end_on_exit=True):
            yield Recorded(span)

    @contextmanager
    def step(self, name: str, facts: Mapping[str, str]) -> Iterator[Span]:
        if not get_current_span().get_span_context().is_valid:
            yield Recorded(get_current_span())
            return
        span = self._tracer.start_span(name, kind=SpanKind.CLIENT, attributes=facts)
        with use_span(span, end_on_exit=True):
            yield Recorded(span)

    def applied(self, node: str, change: AppliedChange) -> None:
        facts: dict[str, str | int] = {
            "j10ce.node": node,
            "j10ce.source": change.source,
            "j10ce.generation": change.generation,
            "j10ce.writes": change.writes,
        }
        began = _ns(change.received)
        span = self._tracer.start_span(
            "applied on node", _context(change.trace), SpanKind.CONSUMER, attributes=facts, start_time=began
        )
        span.end(max(began, _ns(change.applied)))

    def close(self) -> None:
        self._provider.shutdown()


_: type[Tracer] = OtelTracer


def _context(trace: str) -> Context:
    """Of the caller; one that is missing or malformed begins a trace of its own."""
    return TraceContextTextMapPropagator().extract({HEADER.decode(): trace}, Context())


def _ns(moment: datetime) -> int:
    return int(moment.timestamp() * 1e9)
