"""One supervised program: started, restarted with a growing pause when it ends by itself, stopped in steps."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence

from devos.stack import process
from devos.stack.console import Console
from devos.stack.process import Command

BACKOFF_MIN_S = 1.0
BACKOFF_MAX_S = 30.0
# A program that ran this long is taken as healthy: its next pause is the short one again.
STEADY_S = 60.0


class Child:
    """``make`` gives the command anew at each start, so that a port may change or leftovers be cleared before it."""

    def __init__(self, name: str, make: Callable[[], Command], console: Console) -> None:
        self.name = name
        self.ends = 0
        self.last_lines: list[str] = []
        self._make = make
        self._console = console
        self._process: subprocess.Popen[bytes] | None = None
        self._pump: threading.Thread | None = None
        self._command: Command | None = None
        self._started_at = 0.0
        self._again_at: float | None = None
        self._pause_s = BACKOFF_MIN_S

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process started last."""
        if self._process is None:
            raise RuntimeError(f"{self.name} was not started")
        return self._process

    def start(self) -> None:
        """Start it now (main thread only, see `process.start`)."""
        self._command = self._make()
        self._process = process.start(self._command, subprocess.PIPE)
        self._started_at = time.monotonic()
        self._again_at = None
        if self._process.stdout is None:
            raise RuntimeError("a pipe was asked for")
        self.last_lines = []
        self._pump = self._console.pump(self.name, self._process.stdout, self.last_lines)

    def tend(self) -> bool:
        """Note an end, and start again when its time has come. True when the process id changed."""
        now = time.monotonic()
        if self._process is None or self._process.poll() is None:
            return False
        if self._again_at is None:
            self.ends += 1
            if now - self._started_at > STEADY_S:
                self._pause_s = BACKOFF_MIN_S
            self._again_at = now + self._pause_s
            code = self._process.returncode
            how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            self._console.line(self.name, f"{how}; starting again in {self._pause_s:.0f} s")
            self._pause_s = min(self._pause_s * 2, BACKOFF_MAX_S)
            # What it left of its group would hold ports and leases.
            process.kill_group(self._process.pid)
            return False
        if now < self._again_at:
            return False
        try:
            self.start()
        except OSError as error:  # no memory, no process ids left: that may pass
            self._again_at = now + self._pause_s
            self._console.line(self.name, f"could not be started: {error}; trying again in {self._pause_s:.0f} s")
            return False
        return True

    def end_now(self) -> None:
        """Kill it; `tend` starts it again."""
        if self._process is not None:
            process.kill_group(self._process.pid)

    def close(self) -> None:
        """Wait for its last lines after it was stopped."""
        if self._pump is not None:
            self._pump.join(timeout=2)

    def stop_steps(self) -> Sequence[tuple[signal.Signals, float]]:
        """How it wants to be stopped (see `Command.stop`)."""
        return self._command.stop if self._command else ()


def stop_all(children: Sequence[Child], hurry: Callable[[], bool]) -> None:
    """Stop the children side by side, each by its own steps; ``hurry`` (a second Ctrl-C) cuts every wait short."""
    steps = {child: list(child.stop_steps()) for child in children if child.pid}
    deadline = dict.fromkeys(steps, 0.0)
    while running := [child for child in steps if child.pid]:
        for child in running:
            if time.monotonic() < deadline[child] and not (hurry() and deadline[child] - time.monotonic() > 1):
                continue
            if not steps[child]:
                child.end_now()
                deadline[child] = time.monotonic() + 5
                continue
            number, patience_s = steps[child].pop(0)
            process.send(child.process.pid, number)
            deadline[child] = time.monotonic() + (min(patience_s, 1) if hurry() else patience_s)
        time.sleep(process.POLL_S)
    for child in steps:
        process.kill_group(child.process.pid)
        child.close()
