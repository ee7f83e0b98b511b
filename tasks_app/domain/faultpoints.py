"""Named places where a test can make a process die or raise. Inert unless ``DEVOS_FAULT`` names one.

``DEVOS_FAULT=claim.after_commit:kill`` kills the process (SIGKILL) at that place, ``:raise`` raises there; ``:kill@3``
waits for the third visit. Several are separated by commas. The names are listed in `POINTS` and nowhere else.
"""

from __future__ import annotations

import os
import signal

POINTS = frozenset(
    {
        "submit.after_commit",
        "ring.after_publish",
        "claim.after_commit",
        "action.running",
        "action.after_effect",
        "finish.before_commit",
        "finish.after_commit",
        "probe.running",
        "retention.before_commit",
    }
)


class InjectedFault(Exception):
    """Raised at a fault point in mode ``raise``."""


def _parse(text: str) -> dict[str, tuple[str, int]]:
    plan: dict[str, tuple[str, int]] = {}
    for item in filter(None, text.split(",")):
        name, _, how = item.partition(":")
        mode, _, visit = how.partition("@")
        if name not in POINTS or mode not in {"kill", "raise"}:
            raise ValueError(f"DEVOS_FAULT: {item!r} is not a fault point; known: {', '.join(sorted(POINTS))}")
        plan[name] = (mode, int(visit or 1))
    return plan


_plan = _parse(os.environ.get("DEVOS_FAULT", ""))
_visits: dict[str, int] = {}


def reach(name: str) -> None:
    """Say that the process is at the named place; dies or raises there when the plan says so."""
    if not _plan or name not in _plan:
        return
    mode, visit = _plan[name]
    _visits[name] = _visits.get(name, 0) + 1
    if _visits[name] != visit:
        return
    if mode == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    raise InjectedFault(f"fault point {name}")
