"""Supervised children: restart with a pause, stop in steps, nothing left, no reader needed."""

from __future__ import annotations

import io
import os
import signal
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from devos.stack import process
from devos.stack.child import Child, stop_all
from devos.stack.console import Console
from devos.stack.process import Command
from tests.support.waiting import until

Make = Callable[..., Child]


class Screen(io.StringIO):
    """Where a console writes in these tests."""


@pytest.fixture
def screen() -> Screen:
    return Screen()


@pytest.fixture
def make(screen: Screen) -> Generator[Make]:
    """A child that runs a piece of Python."""
    console = Console(screen)
    made: list[Child] = []

    def child(code: str, stop: tuple[tuple[signal.Signals, float], ...] = ((signal.SIGTERM, 5.0),)) -> Child:
        command = Command("worker", [sys.executable, "-u", "-c", code], dict(os.environ), stop)
        made.append(Child("worker", lambda: command, console))
        made[-1].start()
        return made[-1]

    yield child
    for one in made:
        one.end_now()
        one.process.wait()
        one.close()


SLEEPS = "import time; print('up'); time.sleep(600)"
STUBBORN = "import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (15, 3)]; print('up'); time.sleep(600)"


def shows(screen: Screen, text: str) -> None:
    until(lambda: text in screen.getvalue(), 10, f"{text!r} is shown")


def test_lines_carry_the_name(make: Make, screen: Screen) -> None:
    child = make("print('one'); print('two \\udc80 \\xff'.encode('utf-8', 'replace').decode())")
    child.process.wait(10)
    child.close()
    assert "worker  | one\n" in screen.getvalue()
    assert child.last_lines[0] == "one"


def test_comes_back_after_a_growing_pause(make: Make, screen: Screen) -> None:
    child = make("import sys; sys.exit(3)")
    began = time.monotonic()

    def third_start() -> bool:
        child.tend()
        return child.ends == 3

    until(third_start, 20, "it has ended three times")
    assert time.monotonic() - began >= 3  # one second, then two
    shown = screen.getvalue()
    assert "exit code 3; starting again in 1 s" in shown
    assert "starting again in 2 s" in shown
    assert "starting again in 4 s" in shown


def test_killed_child_leaves_nothing_of_its_group(make: Make, screen: Screen) -> None:
    child = make(
        "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
        "print('pid', p.pid); time.sleep(600)"
    )
    shows(screen, "pid ")
    grandchild = int(screen.getvalue().split("pid ")[1].split()[0])
    child.process.kill()
    child.process.wait()
    child.tend()
    until(lambda: not process.alive(grandchild), 10, "the grandchild is gone")


def test_stop_is_polite_first_and_firm_then(make: Make, screen: Screen) -> None:
    polite = make(SLEEPS)
    stubborn = make(STUBBORN, ((signal.SIGTERM, 0.3), (signal.SIGQUIT, 0.3)))
    until(lambda: screen.getvalue().count("up") == 2, 10, "both are up")
    stop_all([polite, stubborn], lambda: False)
    assert polite.process.returncode == -signal.SIGTERM
    assert stubborn.process.returncode == -signal.SIGKILL


def test_second_signal_hurries_the_stop(make: Make, screen: Screen) -> None:
    stubborn = make(STUBBORN, ((signal.SIGTERM, 600.0),))
    shows(screen, "up")
    began = time.monotonic()
    stop_all([stubborn], lambda: True)
    assert time.monotonic() - began < 10


def test_reader_that_went_away_stops_nothing(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = tmp_path / "done"
    with os.fdopen(write_end, "w") as broken:
        code = f"[print('x' * 1000) for _ in range(1000)]; open({str(done)!r}, 'w').close()"
        command = Command("worker", [sys.executable, "-c", code], dict(os.environ))
        child = Child("worker", lambda: command, Console(broken))
        child.start()
        assert child.process.wait(20) == 0
        child.close()
        assert done.exists()
        os.dup2(os.open(os.devnull, os.O_WRONLY), broken.fileno())
