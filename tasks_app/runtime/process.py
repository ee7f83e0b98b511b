"""Small facts about processes: whether a child lives, how much memory it takes, and dying with one's parent."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Be killed when the parent dies, however it dies: an orphan would run jobs whose lease nobody renews."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        threading.Thread(target=_watch_parent, args=(os.getppid(),), daemon=True).start()


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGKILL)


def child_is_gone(pid: int) -> bool:
    """Whether a child of this process has ended; it is not reaped by asking."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def kill_group(pid: int) -> None:
    """SIGKILL a pool process and what it started (it leads its own group)."""
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


def rss_mb(pids: list[int]) -> float | None:
    """Resident memory of these processes together, in MB; None where /proc is missing."""
    total = 0
    for pid in pids:
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
    return round(total * os.sysconf("SC_PAGE_SIZE") / 1e6, 1) if total else None


def children(pid: int) -> list[int]:
    """Direct children of a process; empty where /proc is missing."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (OSError, ValueError):
        return []
