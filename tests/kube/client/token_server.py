"""An API server that knows some tokens and answers everything with an empty object."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ApiServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, known: Collection[str]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.known, self.shown = known, list[str]()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: ApiServer

    def do_GET(self) -> None:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self.server.shown.append(token)
        self.send_response(200 if token in self.server.known else 401)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *what: object) -> None:
        pass


@contextmanager
def serving(known: Collection[str]) -> Iterator[ApiServer]:
    with ApiServer(known) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()
