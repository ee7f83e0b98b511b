"""What people and programs see: tables, single things, JSON. Colours and relative times only on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

COLOURS = {
    "completed": "green",
    "alive": "green",
    "active": "green",
    "running": "cyan",
    "queued": "blue",
    "draft": "blue",
    "pending": "yellow",
    "waiting": "yellow",
    "retrying": "yellow",
    "paused": "yellow",
    "failed": "red",
    "lost": "red",
    "revoked": "red",
    "expired": "red",
    "cancelled": "bright_black",
    "stopped": "bright_black",
    "open": "red",
    "refused": "red",
    "retried": "green",
    "replayed": "green",
    "done": "green",
    "discarded": "bright_black",
    "warn": "yellow",
    "error": "red",
    "debug": "bright_black",
}
JSON_LINES_MAX = 40
TEXT_WIDTH_MIN = 8
# A terminal obeys these; text that came from elsewhere (log lines, names, page titles) must not steer it.
_CONTROL = {code: f"\\x{code:02x}" for code in [*range(32), *range(127, 160)] if code not in (9, 10)}
_ONE_LINE = {**_CONTROL, 9: " ", 10: " "}

Row = dict[str, Any]


@dataclass(frozen=True)
class Column:
    """``get`` is a key of the row or a function of it; ``kind`` is text, id, status, time or number."""

    title: str
    get: str | Callable[[Row], Any]
    kind: str = "text"

    def value(self, row: Row) -> Any:
        return self.get(row) if callable(self.get) else row.get(self.get)


def clean(text: Any) -> str:
    """Text with nothing in it that a terminal would obey."""
    return str(text).translate(_CONTROL)


def one_line(text: Any) -> str:
    return str(text).translate(_ONE_LINE)


def on_terminal() -> bool:
    return sys.stdout.isatty()


def console(err: bool = False) -> Console:
    """A rich console. Text is printed as it is: no markup, no guessing of colours in what actions wrote."""
    from rich.console import Console

    return Console(stderr=err, markup=False, highlight=False, emoji=False, soft_wrap=False)


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=not _stdout_is_utf8()))


def _stdout_is_utf8() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def table(rows: Iterable[Row], columns: list[Column], nothing: str) -> None:
    """Rows for a person on a terminal; tab-separated values with a header line when piped."""
    if not on_terminal():
        _tab_separated(rows, columns)
        return
    listed = list(rows)
    if not listed:
        typer.echo(nothing, err=True)
        return
    _grid(listed, columns)


def _grid(rows: list[Row], columns: list[Column]) -> None:
    """Aligned columns, one line a row. Columns without a value are left out; long texts give way to the others."""
    from rich.text import Text

    screen = console()
    shown = [column for column in columns if any(_human(column, row) != "-" for row in rows)]
    widths = _widths(shown, rows, screen.width)
    lines = [[Text(column.title, style="bold") for column in shown]]
    lines += [[_styled(column, row) for column in shown] for row in rows]
    for line in lines:
        for cell, column, width in zip(line, shown, widths, strict=True):
            cell.truncate(width, overflow="ellipsis")
            cell.align("right" if column.kind == "number" else "left", width)
        joined = Text("  ").join(line)
        joined.rstrip()
        screen.print(joined, soft_wrap=True)


def _widths(columns: list[Column], rows: list[Row], room: int) -> list[int]:
    """The width of each column. Only texts shrink: ids are there to be copied, times and numbers to be read."""
    from rich.cells import cell_len

    widths = [max(len(column.title), *(cell_len(_human(column, row)) for row in rows)) for column in columns]
    texts = [index for index, column in enumerate(columns) if column.kind == "text"]
    spare = sum(widths) + 2 * (len(widths) - 1) - room
    while spare > 0 and texts:
        widest = max(texts, key=lambda index: widths[index])
        if widths[widest] <= TEXT_WIDTH_MIN:
            break
        widths[widest] -= 1
        spare -= 1
    return widths


def _tab_separated(rows: Iterable[Row], columns: list[Column]) -> None:
    rest = iter(rows)
    # The first row before the header: when the list cannot be read, nothing is printed.
    first = next(rest, None)
    typer.echo("\t".join(column.title for column in columns))
    if first is not None:
        for row in chain([first], rest):
            typer.echo("\t".join(_plain(column, row) for column in columns))


def _plain(column: Column, row: Row) -> str:
    value = column.value(row)
    if value is None:
        return ""
    return one_line(value if not isinstance(value, dict | list) else json.dumps(value, ensure_ascii=False))


def _human(column: Column, row: Row) -> str:
    value = column.value(row)
    if value is None or value == "":
        return "-"
    if column.kind == "time":
        return ago(str(value))
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    return one_line(value)


def _styled(column: Column, row: Row) -> Any:
    from rich.text import Text

    text = _human(column, row)
    style = COLOURS.get(text, "") if column.kind == "status" else "bright_black" if text == "-" else ""
    return Text(text, style=style)


def ago(moment: str, now: datetime | None = None) -> str:
    """``12s ago``, ``in 5m``; the text itself when it is no moment."""
    try:
        then = datetime.fromisoformat(moment)
    except ValueError:
        return moment
    gone = ((now or datetime.now(UTC)) - then).total_seconds()
    text = span(abs(gone))
    return f"in {text}" if gone < -1 else f"{text} ago"


def span(seconds: float) -> str:
    """A time span in its largest one or two units: 0.4s, 12s, 3m, 2h 5m, 4d 3h."""
    if seconds < 10:
        return f"{seconds:.1f}s".replace(".0s", "s")
    if seconds < 60:
        return f"{int(seconds)}s"
    if seconds < 3600:
        return f"{int(seconds // 60)}m"
    if seconds < 86_400:
        minutes = int(seconds % 3600 // 60)
        return f"{int(seconds // 3600)}h" + (f" {minutes}m" if minutes else "")
    hours = int(seconds % 86_400 // 3600)
    return f"{int(seconds // 86_400)}d" + (f" {hours}h" if hours else "")


def milliseconds(value: float | None) -> str | None:
    """A duration in milliseconds, for people."""
    return None if value is None else f"{value:.0f}ms" if value < 1000 else span(value / 1000)


def fields(pairs: list[tuple[str, Any]]) -> None:
    """Labels and values of one thing, those without a value left out."""
    shown = [(label, value) for label, value in pairs if value not in (None, "", [], {})]
    width = max((len(label) for label, _ in shown), default=0)
    for label, value in shown:
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        styled(f"{label:<{width}}  {clean(text)}", COLOURS.get(text, "") if label == "status" else "")


def styled(text: str, style: str = "", err: bool = False) -> None:
    """A line, in colour on a terminal; never wrapped."""
    if style and (sys.stderr if err else sys.stdout).isatty():
        console(err).print(text, style=style, soft_wrap=True)
    else:
        typer.echo(text, err=err)


def moment(value: str | None) -> str | None:
    """A moment for one thing: on a terminal with how long ago it was."""
    if not value:
        return None
    return f"{ago(value)} ({value})" if on_terminal() else value


def document(title: str, value: Any) -> None:
    """A JSON value under its title; a long one is cut on a terminal."""
    if value in (None, {}, []):
        return
    lines = json.dumps(value, indent=2, ensure_ascii=not _stdout_is_utf8()).splitlines()
    cut = len(lines) - JSON_LINES_MAX if on_terminal() else 0
    typer.echo(f"{title}:")
    for line in lines[:JSON_LINES_MAX] if cut > 0 else lines:
        typer.echo(f"  {clean(line)}")
    if cut > 0:
        typer.echo(f"  ... {cut} more lines; --json prints all of it")


def error_line(error: Row | None) -> str | None:
    """The error of a task, job or execution in one line."""
    return f"{error.get('code', 'ERROR')}: {clean(error.get('message', ''))}" if error else None


def progress_line(progress: Row | None) -> str | None:
    """``fetch 12/40 (30%) https://...``"""
    if not progress:
        return None
    current, total, percentage = (progress.get(key) for key in ("current", "total", "percentage"))
    parts = [
        progress.get("phase"),
        None if current is None else f"{current}/{total}" if total is not None else str(current),
        None if percentage is None else f"({percentage:.0f}%)",
        progress.get("message"),
    ]
    return " ".join(one_line(part) for part in parts if part) or None


def log_line(line: Row) -> str:
    """A log line: time of day, level, message, metadata."""
    when = str(line.get("timestamp", ""))
    metadata = line.get("metadata")
    tail = f"  {json.dumps(metadata, ensure_ascii=False)}" if metadata else ""
    return f"{when[11:19]} {line.get('level', 'info'):<5} {clean(line.get('message', ''))}{clean(tail)}"
