"""Somebody outside of the servers who wants to hear how workflows ended."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any as Tree

from tree import RunNames

# What a library adds on its way, and what is measured.
LEFT_OUT = {"host", "user-agent", "accept", "accept-encoding", "content-length", "transfer-encoding", "connection"}
MEASURED = {"nexus-operation-start-time", "nexus-operation-close-time"}


class Heard:
    """One callback as it arrived."""

    def __init__(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self._path, self._headers, self._body = path, headers, body

    def tree(self, runs: RunNames) -> Tree:
        headers = {name: "<time>" if name in MEASURED else runs.replace_in(value)
                   for name, value in sorted(self._headers.items()) if name not in LEFT_OUT}
        return {"path": self._path, "headers": headers, "body": self._read()}

    def _read(self) -> Tree:
        if "json" in self._headers.get("content-type", ""):
            return json.loads(self._body)
        return self._body.decode(errors="replace")


class Receiver:
    """Listens on this machine and answers with the statuses that it is given, in turn; then with 200."""

    def __init__(self, statuses: Iterator[int]) -> None:
        heard: queue.Queue[Heard] = queue.Queue()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # noqa: N802  the library's name
                is_chunked = self.headers.get("Transfer-Encoding", "") == "chunked"
                body = self._read_chunks() if is_chunked else self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                heard.put(Heard(self.path, headers, body))
                self.send_response(next(statuses, 200))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def _read_chunks(self) -> bytes:
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return body

            def log_message(self, *_) -> None:
                pass

        self._heard = heard
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def next(self, timeout_s: float) -> Heard:
        return self._heard.get(timeout=timeout_s)
