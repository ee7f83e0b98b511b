"""Watching tasks: plain lines, a live bar on a real terminal, JSON, Ctrl-C, a server that goes away."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from devos.cli import follow
from tests.unit.cli.conftest import Run
from tests.unit.cli.loopback import KEY, TASK, Platform, error, line, progress, task

LOGS = f"GET /api/tasks/{TASK}/logs"
STATE = f"GET /api/tasks/{TASK}"
SCAN = ["action", "seo.website.scan", "-i", "url=x", "--follow"]
ENDED = {"started_at": "2026-11-30T20:00:00+00:00", "completed_at": "2026-11-30T20:00:02.5+00:00"}
DEADLINE_S = 30


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "POLL_MIN_S", 0.01)
    monkeypatch.setattr(follow, "POLL_MAX_S", 0.02)


def _page(*rows: dict[str, Any]) -> tuple[int, Any]:
    return 200, {"results": list(rows), "next": None}


def _life(server: Platform, *end: dict[str, Any]) -> None:
    """A task that is queued, runs and ends."""
    server.sequence(
        STATE,
        (200, task()),
        (200, task("running", progress=progress(1))),
        *((200, state) for state in end),
    )
    server.sequence(LOGS, _page(), _page(line(1, "first")), _page(line(1, "first"), line(2, "last", "error")))


def test_plain_lines_when_piped(run: Run, server: Platform) -> None:
    _life(server, task("completed", progress=progress(4), output={"pages": 4}, **ENDED))
    ran = run(*SCAN)
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert [text for text in lines if text.startswith(TASK)] == [
        f"{TASK} queued",
        f"{TASK} running",
        f"{TASK} completed",
        f"{TASK} completed after 2.5s",
    ]
    assert [text for text in lines if "first" in text or "last" in text] == [
        "20:00:01 info  first",
        "20:00:01 error last",
    ]
    assert "fetch 1/4 (25%)" in lines
    assert "fetch 4/4 (100%)" in lines
    assert '    "pages": 4' in lines


def test_json_is_one_document_and_nothing_else(run: Run, server: Platform) -> None:
    done = task("completed", output={"pages": 4}, **ENDED)
    _life(server, done)
    ran = run(*SCAN, "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json == done


@pytest.mark.parametrize(
    ("end", "says"),
    [
        (task("failed", error={"code": "BOOM", "message": "It broke."}, **ENDED), "BOOM: It broke."),
        (task("cancelled", cancel_reason="enough", **ENDED), "It was cancelled: enough."),
    ],
)
def test_work_that_failed_exits_1(run: Run, server: Platform, end: dict[str, Any], says: str) -> None:
    _life(server, end)
    ran = run(*SCAN)
    assert ran.code == 1
    assert says in ran.err
    _life(server, end)
    ran = run(*SCAN, "--json")
    assert (ran.code, ran.json, ran.err) == (1, end, "")


def test_waiting_says_nothing_until_the_end(run: Run, server: Platform) -> None:
    _life(server, task("completed", **ENDED))
    assert run("task", "wait", TASK).out == f"{TASK} completed after 2.5s\n"
    assert LOGS not in [name for name, *_ in server.calls]


def test_waiting_gives_up_after_its_timeout(run: Run, server: Platform) -> None:
    server.routes[STATE] = (200, task("running"))
    ran = run("task", "wait", TASK, "--timeout", "0.1s")
    assert ran.code == 124
    assert "goes on" in ran.err


def test_a_restart_of_the_server_is_sat_out(run: Run, server: Platform) -> None:
    away = error("UNAVAILABLE", "Starting.")
    server.routes[LOGS] = _page()
    server.sequence(STATE, (200, task("running")), (0, None), (503, away), (429, away), (200, task("completed")))
    ran = run("task", "wait", TASK, "--follow")
    assert ran.code == 0
    assert ran.err.count("Trying again") == 1


def test_a_server_that_stays_away_ends_it(run: Run, server: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "AWAY_MAX_S", 0.05)
    server.sequence(STATE, (200, task("running")), (0, None))
    ran = run("task", "wait", TASK)
    assert ran.code == 3


def test_a_task_that_is_not_there_ends_it_at_once(run: Run) -> None:
    assert run("task", "wait", "task_other").code == 2


def test_logs_are_followed_to_the_end(run: Run, server: Platform) -> None:
    _life(server, task("completed", **ENDED))
    assert run("task", "logs", TASK, "--follow").out == "20:00:01 info  first\n20:00:01 error last\n"
    _life(server, task("failed", **ENDED))
    ran = run("task", "logs", TASK, "--follow", "--json")
    assert [json.loads(text)["id"] for text in ran.out.splitlines()] == [1, 2]


def test_lines_that_turn_up_late_are_shown(server: Platform) -> None:
    """A batch written later may belong before the end of a page that was read already."""
    from devos.cli.client import remote

    pages: dict[str, tuple[list[Any], str | None]] = {"": ([line(1, "a"), line(3, "c")], None)}
    server.routes[LOGS] = lambda query, _: (
        200,
        dict(zip(("results", "next"), pages[query.get("cursor", [""])[0]], strict=True)),
    )
    tail = follow.LogTail(remote(server.url, KEY), "tasks", TASK, "logs")
    assert [found["id"] for found in tail.new()] == [1, 3]
    pages[""] = ([line(1, "a"), line(2, "b"), line(3, "c")], "c1")
    pages["c1"] = ([line(5, "e")], None)
    assert [found["id"] for found in tail.new()] == [2, 5]
    pages["c1"] = ([line(4, "d"), line(5, "e")], "c2")
    pages["c2"] = ([line(6, "f")], None)
    assert [found["id"] for found in tail.new()] == [4, 6]
    assert list(tail.new()) == []


# --- real terminals and signals ---


def _environment(server: Platform) -> dict[str, str]:
    return {**os.environ, "DEVOS_SERVER": server.url, "DEVOS_KEY": KEY, "TERM": "xterm-256color", "COLUMNS": "120"}


class Terminal:
    """The command on a pseudo terminal."""

    def __init__(self, server: Platform, *arguments: str, **environment: str) -> None:
        ours, theirs = pty.openpty()
        self.screen = ours
        self.text = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "devos.cli", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**_environment(server), **environment},
            start_new_session=True,
        )
        os.close(theirs)

    def read_until(self, wanted: str) -> None:
        end = time.monotonic() + DEADLINE_S
        while wanted not in self.text:
            left = end - time.monotonic()
            assert left > 0, f"{wanted!r} did not appear in {self.text!r}"
            if not self._read(left):
                break
        assert wanted in self.text

    def _read(self, timeout: float) -> bool:
        if not select.select([self.screen], [], [], timeout)[0]:
            return True
        try:
            data = os.read(self.screen, 65_536)
        except OSError:
            return False
        self.text += data.decode()
        return bool(data)

    def ended(self) -> int:
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end and self._read(0.1):
            pass
        return self.process.wait(DEADLINE_S)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.screen)


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


def test_a_live_bar_on_a_terminal(server: Platform, terminals: list[Terminal]) -> None:
    _life(server, task("running", progress=progress(2)), task("completed", output={"pages": 4}, **ENDED))
    terminal = Terminal(server, *SCAN)
    terminals.append(terminal)
    assert terminal.ended() == 0
    assert "2/4 50%" in terminal.text
    assert "\x1b[" in terminal.text
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.text)
    assert "20:00:01 info  first" in plain
    assert f"{TASK} completed after 2.5s" in plain


def test_no_color_is_honoured(server: Platform, terminals: list[Terminal]) -> None:
    server.routes["GET /api/tasks"] = _page(task("failed", name="x" * 300))
    for environment, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        terminal = Terminal(server, "task", "list", **environment)
        terminals.append(terminal)
        assert terminal.ended() == 0
        assert ("\x1b[31m" in terminal.text) is coloured
        # The id is whole, and a row is a row.
        assert TASK in terminal.text
        assert len(terminal.text.strip().splitlines()) == 2


def test_ctrl_c_says_that_the_task_goes_on(server: Platform, terminals: list[Terminal]) -> None:
    server.routes[LOGS] = _page(line(1, "working"))
    server.routes[STATE] = (200, task("running", progress=progress(1)))
    terminal = Terminal(server, *SCAN)
    terminals.append(terminal)
    terminal.read_until("working")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.ended() == 130
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.text).replace("\r\n", "")
    assert "goes on" in plain
    assert f"devos task cancel {TASK}" in plain
