"""An OTLP/HTTP collector that keeps what it is sent."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Sent(NamedTuple):
    name: str
    trace: str
    span: str
    parent: str
    facts: dict[str, str]
    seconds: float


class Collector(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.spans: list[Sent] = []
        self.services: set[str] = set()
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __exit__(self, *how: object) -> None:
        self.shutdown()
        super().__exit__(*how)

    def named(self, name: str) -> list[Sent]:
        return [span for span in self.spans if span.name == name]

    def take(self, request: ExportTraceServiceRequest) -> None:
        for resource in request.resource_spans:
            self.services |= {a.value.string_value for a in resource.resource.attributes if a.key == "service.name"}
            for span in (span for scope in resource.scope_spans for span in scope.spans):
                facts = {a.key: a.value.string_value or str(a.value.int_value) for a in span.attributes}
                took_s = (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9
                ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
                self.spans.append(Sent(span.name, *ids, facts, took_s))


class Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            data = gzip.decompress(data)
        self.server.take(ExportTraceServiceRequest.FromString(data))
        self.send_response(200 if self.path == "/v1/traces" else 404)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *what: object) -> None:
        pass
