"""Children of the stack: started so that they end with us, ended so that nothing of them stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from devos.stack.errors import StackError
from devos.stack.identity import LAUNCH, SAME, Identity

POLL_S = 0.02


@dataclass(frozen=True)
class Command:
    """A program of the stack.

    ``stop`` is the polite way to end it: pairs of a signal for its main process and the seconds to wait after it;
    whatever is left of its process group is killed then. ``death_signal`` is what it gets when we die.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    stop: tuple[tuple[signal.Signals, float], ...] = ((signal.SIGTERM, 10.0),)
    death_signal: signal.Signals = signal.SIGTERM
    identity: Identity = SAME
    cwd: Path | None = field(default=None)


def launched(command: Command) -> list[str]:
    """The command line that runs ``command`` through the launcher (see `devos.stack.launch`)."""
    head = [sys.executable, "-I", "-S", str(LAUNCH), str(os.getpid()), str(int(command.death_signal))]
    return [*head, str(command.identity), *command.argv]


def start(command: Command, output: IO[Any] | int) -> subprocess.Popen[bytes]:
    """Start ``command`` in a process group of its own. Call it from the main thread: the death signal follows the
    thread that made the child, not the process."""
    return subprocess.Popen(
        launched(command),
        env=dict(command.env),
        cwd=command.cwd,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        process_group=0,
    )


def run(command: Command, timeout_s: float) -> str:
    """Run ``command`` to its end and return its output. Raises StackError with that output when it fails."""
    try:
        done = subprocess.run(
            launched(command),
            env=dict(command.env),
            cwd=command.cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise StackError(f"{command.name} did not end within {timeout_s:.0f} s") from error
    text = done.stdout.decode(errors="replace").strip()
    if done.returncode != 0:
        raise StackError(f"{command.name} failed (exit {done.returncode}):\n{text}")
    return text


def stop(process: subprocess.Popen[bytes], steps: Sequence[tuple[signal.Signals, float]]) -> None:
    """End a child: each signal in turn to its main process, then SIGKILL to what is left of its group."""
    for number, patience_s in steps:
        if process.poll() is not None:
            break
        send(process.pid, number)
        wait_until(lambda: process.poll() is not None, patience_s)
    kill_group(process.pid)
    process.wait()


def end_orphan(pid: int, steps: Sequence[tuple[signal.Signals, float]]) -> None:
    """End a process left by an earlier run, which is not our child."""
    for number, patience_s in (*steps, (signal.SIGKILL, 5.0)):
        if not alive(pid):
            break
        send(pid, number)
        wait_until(lambda: not alive(pid), patience_s)
    kill_group(pid)


def alive(pid: int) -> bool:
    """Whether a process with this id exists and is more than a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (OSError, IndexError):
        return sys.platform != "linux"


def is_ours(pid: int, *words: str) -> bool:
    """Whether ``pid`` is a living process with these consecutive words in its command line or environment."""
    if pid <= 1 or not alive(pid):
        return False
    if sys.platform == "linux":
        sought = "\0".join(words).encode()
        return any(sought in _proc(pid, name) for name in ("cmdline", "environ"))
    shown = subprocess.run(["ps", "-E", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, check=False)
    return " ".join(words).encode() in shown.stdout


def wait_until(condition: Callable[[], bool], timeout_s: float, every_s: float = POLL_S) -> bool:
    """Poll ``condition`` until it holds or the time is over; the last answer."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(every_s)
    return True


def _proc(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def send(pid: int, number: int) -> None:
    """Send a signal; a process that is gone is fine."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def kill_group(pid: int) -> None:
    """SIGKILL to whatever is left of the process group of ``pid``."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def works_in(pid: int, folder: Path) -> bool:
    """Whether ``pid`` is a living process whose working directory is ``folder``."""
    if pid <= 1 or not alive(pid):
        return False
    if sys.platform == "linux":
        try:
            return Path(f"/proc/{pid}/cwd").readlink() == folder
        except OSError:
            return False
    shown = subprocess.run(["lsof", "-a", "-d", "cwd", "-Fn", "-p", str(pid)], capture_output=True, check=False)
    return f"n{folder}\n".encode() in shown.stdout
