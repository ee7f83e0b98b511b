"""Watching a task until it ends: a live bar on a terminal, plain lines elsewhere, silence for --json.

It polls: five times a second while things move, down to once a second while nothing does. That works the same over
HTTP and in this process, behind any proxy, and across a restart of the server.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import typer

from devos.cli import output
from devos.cli.errors import ApiError, CliError, Interrupted, NotReachable, TimedOut

if TYPE_CHECKING:
    from devos.cli.client import Client

FINAL = {"completed", "failed", "cancelled"}
# Of an execution also these: the work goes on in another one.
ENDED = FINAL | {"paused", "lost"}
POLL_MIN_S = 0.2
POLL_MAX_S = 1.0
POLL_GROWTH = 1.5
# How long a server may be away (a restart, a deploy) before watching gives up.
AWAY_MAX_S = 30.0
PLAIN_EVERY_S = 1.0
TOO_MANY_REQUESTS = 429
LOG_PAGE = 100

Row = dict[str, Any]


class View(Protocol):
    """Shows what happens."""

    def log(self, line: Row) -> None: ...
    def state(self, task: Row) -> None: ...
    def note(self, text: str) -> None: ...


class LogTail:
    """The log lines of a task (or execution) that were not seen yet, oldest first.

    Lines are listed by their time but written in batches, so one may turn up behind lines that were seen already: the
    last full page is read again each time.
    """

    def __init__(self, client: Client, *path: str) -> None:
        self.client = client
        self.path = path
        self._start = ""
        self._seen: set[tuple[Any, Any]] = set()

    def new(self) -> Iterator[Row]:
        """Read on until there is no more for now."""
        starts = [self._start]
        while True:
            lines, following = self.client.page(*self.path, cursor=starts[-1], limit=LOG_PAGE)
            for line in lines:
                # Lines of the platform and of an execution count their ids apart.
                key = (line.get("execution_id"), line["id"])
                if key not in self._seen:
                    self._seen.add(key)
                    yield line
            if not following:
                self._start = starts[max(0, len(starts) - 2)]
                return
            starts.append(following)


def watch(client: Client, task_id: str, view: View | None, timeout_s: float | None = None) -> Row:
    """Wait until the task is final and return it. Raises `Interrupted` on Ctrl-C, `TimedOut`, `NotReachable`."""
    try:
        return _poll(client, task_id, view, timeout_s)
    except KeyboardInterrupt as error:
        raise Interrupted(
            f"Stopped watching; {task_id} goes on. Watch it again: devos task wait {task_id} --follow. "
            f"Cancel it: devos task cancel {task_id}."
        ) from error


def follow_logs(client: Client, path: list[str], tail: LogTail, show: Callable[[Row], None]) -> None:
    """Show the lines of a task or execution until it is final. Raises `Interrupted` on Ctrl-C."""
    pause = POLL_MIN_S
    try:
        while True:
            running = client.get(*path)["status"] not in ENDED
            lines = list(tail.new())
            for line in lines:
                show(line)
            if not running:
                return
            pause = POLL_MIN_S if lines else min(pause * POLL_GROWTH, POLL_MAX_S)
            time.sleep(pause)
    except KeyboardInterrupt as error:
        raise Interrupted(f"Stopped reading; {path[1]} goes on.") from error


def _poll(client: Client, task_id: str, view: View | None, timeout_s: float | None) -> Row:
    logs = LogTail(client, "tasks", task_id, "logs") if view else None
    end = None if timeout_s is None else time.monotonic() + timeout_s
    away_since: float | None = None
    pause, before = POLL_MIN_S, None
    while True:
        try:
            # The task first: log lines written before it ended are then all there.
            task = client.one("tasks", task_id)
            lines = list(logs.new()) if logs else []
        except NotReachable as error:
            away_since = _still_away(error, away_since, view)
            moved = False
        except ApiError as error:
            if error.status < 500 and error.status != TOO_MANY_REQUESTS:
                raise
            away_since = _still_away(error, away_since, view)
            moved = False
        else:
            away_since, moved, before = None, task != before or bool(lines), task
            _show(view, task, lines)
            if task["status"] in FINAL:
                return task
        pause = POLL_MIN_S if moved else min(pause * POLL_GROWTH, POLL_MAX_S)
        _sleep(pause, end, task_id)


def _show(view: View | None, task: Row, lines: list[Row]) -> None:
    if view:
        for line in lines:
            view.log(line)
        view.state(task)


def _sleep(pause: float, end: float | None, task_id: str) -> None:
    if end is not None:
        left = end - time.monotonic()
        if left <= 0:
            raise TimedOut(f"{task_id} has not ended yet; it goes on. Cancel it: devos task cancel {task_id}.")
        pause = min(pause, left)
    time.sleep(pause)


def _still_away(error: CliError, since: float | None, view: View | None) -> float:
    now = time.monotonic()
    if since is None:
        if view:
            view.note(f"{error.message} Trying again for {AWAY_MAX_S:.0f} s.")
        return now
    if now - since > AWAY_MAX_S:
        raise error
    return since


@contextmanager
def viewer(as_json: bool) -> Iterator[View | None]:
    """The view that fits where the output goes; None when nothing is to be shown."""
    stream = sys.stderr if as_json else sys.stdout
    if stream.isatty():
        with _live(err=as_json) as view:
            yield view
    elif as_json:
        yield None
    else:
        yield PlainView()


class PlainView:
    """Lines on stdout: each log line, each change of status, progress at most once a second."""

    def __init__(self) -> None:
        self._status = ""
        self._progress: Any = None
        self._phase: Any = None
        self._at = 0.0

    def log(self, line: Row) -> None:
        typer.echo(output.log_line(line))

    def note(self, text: str) -> None:
        typer.echo(text, err=True)

    def state(self, task: Row) -> None:
        if task["status"] != self._status:
            self._status = task["status"]
            typer.echo(f"{task['id']} {self._status}")
        progress = task.get("progress")
        now = time.monotonic()
        phase = (progress or {}).get("phase")
        due = now - self._at >= PLAIN_EVERY_S or phase != self._phase or task["status"] in FINAL
        if progress and progress != self._progress and due:
            self._progress, self._phase, self._at = progress, phase, now
            typer.echo(output.progress_line(progress) or "")


@contextmanager
def _live(err: bool) -> Iterator[View]:
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.fields[status]}", markup=False, style="bold"),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[count]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("{task.fields[message]}", markup=False, style="bright_black"),
        console=output.console(err),
        transient=True,
    )
    with bar:
        yield LiveView(bar)


class LiveView:
    """A bar at the foot of the terminal, log lines above it."""

    def __init__(self, bar: Any) -> None:
        self.bar = bar
        self.row = bar.add_task("", total=None, status="", count="", message="")

    def log(self, line: Row) -> None:
        level = str(line.get("level", ""))
        self.bar.console.print(output.log_line(line), style=output.COLOURS.get(level, ""), soft_wrap=True)

    def note(self, text: str) -> None:
        self.bar.console.print(text, style="yellow", soft_wrap=True)

    def state(self, task: Row) -> None:
        progress = task.get("progress") or {}
        current, total, percentage = (progress.get(key) for key in ("current", "total", "percentage"))
        count = "" if current is None else f"{current}/{total}" if total is not None else str(current)
        if percentage is not None:
            count = f"{count} {percentage:.0f}%".strip()
        self.bar.update(
            self.row,
            description=output.one_line(progress.get("phase") or ""),
            completed=current or 0,
            total=total,
            status=task["status"],
            count=count,
            message=output.one_line(progress.get("message") or "")[:80],
        )
