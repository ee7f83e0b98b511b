"""DEVOS_HOME/run.json: what runs, for scripts and commands; and what an earlier run left behind."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from devos.stack import paths, process

NAME = "run.json"
_ORPHAN_STOP = ((signal.SIGTERM, 5.0),)


def read(home: Path) -> dict[str, Any]:
    """The run.json of ``home``; empty when there is none that can be read."""
    try:
        found = json.loads((home / NAME).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write(home: Path, facts: Mapping[str, Any]) -> None:
    """Write run.json, whole or not at all; it holds the passwords of the servers, so 0600."""
    paths.write_private(home / NAME, json.dumps({**facts, "pid": os.getpid()}, indent=1) + "\n")


def remove(home: Path) -> None:
    """Take run.json away: nothing runs any more."""
    (home / NAME).unlink(missing_ok=True)


def clear_leftovers(home: Path) -> list[str]:
    """After a supervisor that was killed: end its children that still live. Call it with the lock of ``home`` held.

    Returns the names of what was ended. PostgreSQL and Valkey are left to their own launchers, which know their data.
    """
    children = read(home).get("children")
    remove(home)
    ended = []
    for name, pid in (children if isinstance(children, dict) else {}).items():
        if name in ("postgres", "valkey") or not isinstance(pid, int):
            continue
        if process.is_ours(pid, f"DEVOS_HOME={home}"):
            process.end_orphan(pid, _ORPHAN_STOP)
            ended.append(str(name))
    return ended
