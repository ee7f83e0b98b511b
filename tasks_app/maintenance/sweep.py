"""What all sweeps share: they do bounded work, are safe to run from anywhere at once, and never stop each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog
from django.db import connections

from tasks_app.services import sql

log = structlog.get_logger()


@dataclass(frozen=True)
class Sweep:
    """``run`` does one bounded batch and returns how many rows it changed."""

    name: str
    run: Callable[[], int]


def run_all(sweeps: list[Sweep]) -> dict[str, int]:
    """Run sweeps one after the other; one that fails is logged and the others go on. Returns rows changed by name."""
    counts = {}
    for sweep in sweeps:
        try:
            counts[sweep.name] = sweep.run()
        except Exception:
            log.exception("sweep.failed", sweep=sweep.name)
            connections[sql.RUNTIME].close()
            connections["default"].close()
        else:
            if counts[sweep.name]:
                log.info("sweep.done", sweep=sweep.name, rows=counts[sweep.name])
    return counts
