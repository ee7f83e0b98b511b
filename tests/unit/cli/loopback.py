"""A small platform on loopback that speaks the REST contract: real HTTP for the command, without a database."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

KEY = "dk_test_key"
TASK = "task_01h000000000000000000000t1"
JOB = "job_01h000000000000000000000j1"

SCAN = {
    "id": "seo.website.scan",
    "title": "Scan a website",
    "description": "Reads every page.",
    "version": 1,
    "queue": "default",
    "modes": ["async", "sync"],
    "plugin": "web",
    "permission": "seo.scan",
    "timeout_s": 600,
    "dangerous": False,
    "input_schema": {
        "type": "object",
        "additionalProperties": False,
        "required": ["url"],
        "properties": {
            "url": {"type": "string", "description": "Where to start."},
            "max_pages": {"type": "integer", "default": 50, "minimum": 1},
            "deep": {"type": "boolean", "default": False},
        },
    },
}


def task(status: str = "queued", **fields: Any) -> dict[str, Any]:
    """A task as the API shows it."""
    return {
        "id": TASK,
        "type": "seo.website.scan",
        "name": "",
        "status": status,
        "priority": 0,
        "input": {"url": "http://a.test", "max_pages": 3},
        "output": None,
        "error": None,
        "progress": None,
        "created_at": "2026-11-30T20:00:00+00:00",
        "started_at": None,
        "completed_at": None,
        **fields,
    }


def progress(current: int, total: int | None = 4, message: str = "") -> dict[str, Any]:
    percentage = None if total is None else 100 * current / total
    return {"current": current, "total": total, "percentage": percentage, "phase": "fetch", "message": message}


def line(number: int, message: str, level: str = "info") -> dict[str, Any]:
    return {
        "id": number,
        "execution_id": "exec_1",
        "level": level,
        "message": message,
        "metadata": {},
        "timestamp": "2026-11-30T20:00:01+00:00",
    }


def error(code: str, message: str, details: Any = None) -> dict[str, Any]:
    return {"code": code, "message": message, "details": details, "request_id": "req_1"}


Answer = tuple[int, Any]
Route = Callable[[dict[str, list[str]], Any], Answer]


class Platform:
    """Answers from ``routes`` ("GET /api/tasks" -> an answer, or a function of query and body); notes each call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, list[str]], Any, dict[str, str]]] = []
        self.routes: dict[str, Answer | Route] = {
            "GET /api/actions": (200, {"results": [SCAN, {**SCAN, "id": "core.echo", "title": "Echo"}], "next": None}),
            "GET /api/actions/seo.website.scan": (200, SCAN),
            "POST /api/tasks": (202, task()),
        }
        platform = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._handle(None)

            def do_POST(self) -> None:
                self._handle(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def do_DELETE(self) -> None:
                self._handle(None)

            def _handle(self, body: Any) -> None:
                status, answer = platform.answer(self, body)
                if status == 0:
                    self.close_connection = True
                    return
                text = answer if isinstance(answer, str) else json.dumps(answer)
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", text)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, format: str, *args: Any) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()

    def answer(self, request: BaseHTTPRequestHandler, body: Any) -> Answer:
        parts = urlsplit(request.path)
        query = parse_qs(parts.query)
        name = f"{request.command} {parts.path}"
        self.calls.append((name, query, body, dict(request.headers)))
        if request.headers.get("Authorization") != f"Api-Key {KEY}":
            return 401, error("NOT_AUTHENTICATED", "This key is not known.")
        found = self.routes.get(name, (404, error("NOT_FOUND", f"There is no {parts.path} here.")))
        return found(query, body) if callable(found) else found

    def sequence(self, name: str, *answers: Answer) -> None:
        """Give these answers one after the other; the last one again and again."""
        left = list(answers)
        self.routes[name] = lambda _query, _body: left.pop(0) if len(left) > 1 else left[0]

    def sent(self, name: str) -> Any:
        """The body of the last call of ``name``."""
        return [body for called, _, body, _ in self.calls if called == name][-1]

    def stop(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
