"""What ends a command early, and with which exit code."""

from __future__ import annotations

import json
from typing import Any

import typer

DONE = 0
WORK_FAILED = 1
USAGE = 2
NOT_REACHABLE = 3
TIMED_OUT = 124
INTERRUPTED = 130


class CliError(Exception):
    """Ends the command: ``message`` goes to stderr and ``exit_code`` to the shell."""

    exit_code = USAGE
    code = "USAGE"

    def __init__(self, message: str, details: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        self.request_id: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The error in the one shape of the API."""
        return {"code": self.code, "message": self.message, "details": self.details, "request_id": self.request_id}


class NotReachable(CliError):
    """No platform answers, or one that answers with its own fault."""

    exit_code = NOT_REACHABLE
    code = "NOT_REACHABLE"


class TimedOut(CliError):
    """We stopped waiting; the work goes on."""

    exit_code = TIMED_OUT
    code = "TIMED_OUT"


class Interrupted(CliError):
    """Ctrl-C; the work goes on."""

    exit_code = INTERRUPTED
    code = "INTERRUPTED"


class ApiError(CliError):
    """The API refused (4xx: usage) or broke (5xx: not reachable)."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(str(body.get("message") or f"The platform answered {status}."), body.get("details"))
        self.status = status
        self.code = str(body.get("code") or "ERROR")
        self.request_id = body.get("request_id")
        self.exit_code = NOT_REACHABLE if status >= 500 else USAGE


def report(error: CliError, as_json: bool) -> None:
    """Write ``error`` to stderr, for a person or as one JSON document."""
    if as_json:
        typer.echo(json.dumps(error.as_json(), ensure_ascii=False), err=True)
        return
    typer.echo(f"Error: {error.message}", err=True)
    for line in _detail_lines(error):
        typer.echo(f"  {line}", err=True)
    if error.exit_code == NOT_REACHABLE and error.request_id:
        typer.echo(f"  request {error.request_id}", err=True)


def _detail_lines(error: CliError) -> list[str]:
    """The fields that are wrong, unless the message says so already."""
    if not isinstance(error, ApiError) or not isinstance(error.details, list):
        return []
    lines = []
    for entry in error.details:
        if isinstance(entry, dict) and "problem" in entry and str(entry["problem"]) not in error.message:
            lines.append(f"{entry.get('field', '')}: {entry['problem']}")
    return lines
