"""Runs one program as a child that cannot outlive its parent, under the identity it needs.

A script of its own, run as ``python -I -S launch.py PARENT_PID DEATH_SIGNAL IDENTITY PROGRAM ARGS...``: what it does
(namespace, user, death signal) has to happen in the child before exec, and doing it in a forked copy of a threaded
parent is not safe. Only the standard library, so that it starts in a few milliseconds.

IDENTITY is ``same``, ``namespace:UID:GID`` (root maps itself to that user in a user namespace) or ``setuid:UID:GID``.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

CLONE_NEWUSER = 0x10000000
PR_SET_PDEATHSIG = 1
WATCH_EVERY_S = 0.5


def take_identity(identity: str) -> None:
    """Become the user that ``identity`` names. Raises OSError where the kernel refuses."""
    kind, _, rest = identity.partition(":")
    if kind == "same":
        return
    uid, gid = (int(part) for part in rest.split(":"))
    if kind == "setuid":
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    outer_uid, outer_gid = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare(CLONE_NEWUSER) was refused")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {outer_uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {outer_gid} 1")


def die_with_parent(parent: int, death_signal: int) -> None:
    """Ask Linux to send ``death_signal`` when the parent ends (after any change of identity, which clears it)."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, death_signal)
    if os.getppid() != parent:  # it ended before the request was made
        sys.exit(f"the parent process {parent} is gone")


def run_watched(parent: int, death_signal: int, program: list[str]) -> int:
    """Where there is no death signal (macOS): stay as the parent of the program and watch our own parent."""
    child = os.spawnvp(os.P_NOWAIT, program[0], program)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: os.kill(child, received))
    told = False
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if not told and os.getppid() != parent:
            os.kill(child, death_signal)
            told = True
        time.sleep(WATCH_EVERY_S)


def main(argv: list[str]) -> None:
    parent, death_signal, identity, *program = argv
    take_identity(identity)
    if sys.platform == "linux":
        die_with_parent(int(parent), int(death_signal))
        os.execv(program[0], program)
    code = run_watched(int(parent), int(death_signal), program)
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main(sys.argv[1:])
