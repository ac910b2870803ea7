"""A real HTTP server on loopback with canned answers, for the commands, and how a command is run."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from typer.testing import CliRunner, Result

from app.cli.main import cli

# A free port that nobody listens on: no answer can come from there.
NOWHERE = "http://127.0.0.1:9"

Answers = Mapping[tuple[str, str], tuple[int, Any]]  # method and path -> status, and JSON or raw bytes


@dataclass
class Canned:
    """A running server: its address, and what it was asked so far."""

    url: str
    asked: list[tuple[str, str, Any]] = field(default_factory=list)  # method, path, body


@contextmanager
def serving(answers: Answers) -> Iterator[Canned]:
    """Serve until the block ends; a path without an answer is an error object `not_found`."""
    found = Canned("")

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            size = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            found.asked.append((self.command, self.path, body))
            missing = (404, refusal("not_found", f"nothing at {self.path}"))
            status, said = answers.get((self.command, self.path), missing)
            data = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815  # the names of http.server

        def log_message(self, *_: Any) -> None:
            """Say nothing on standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def refusal(code: str, message: str) -> dict[str, Any]:
    """An error object of the service."""
    return {"error": {"message": message, "type": "t", "param": None, "code": code}}


def run(*arguments: str, url: str | None = None, width: int = 200, stdin: str | None = None) -> Result:
    """Run the command as a user would, with TWINPOOL_URL set to `url`."""
    return CliRunner().invoke(
        cli,
        list(arguments),
        input=stdin,
        env={"TWINPOOL_URL": url, "COLUMNS": str(width), "NO_COLOR": "1", "TERM": "dumb"},
    )
