"""Real workers for a bench run: the very processes the platform runs, without Celery events."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from tasks_app.models import Worker
from tasks_app.runtime.process import children


@dataclass
class Pool:
    """One worker: its parent process and its pool processes."""

    parent: subprocess.Popen[bytes]

    def pids(self) -> list[int]:
        """Pool processes first, then the parent."""
        return [*children(self.parent.pid), self.parent.pid]

    def hold(self) -> None:
        """Stop the worker where it is, so that a backlog can be built."""
        for pid in self.pids():
            os.kill(pid, signal.SIGSTOP)

    def go(self) -> None:
        """Let it run on."""
        for pid in self.pids():
            os.kill(pid, signal.SIGCONT)


# Messages are fetched ahead, as Celery does unless told otherwise; our bells are not, to the cost of plain tasks.
PLAIN_CELERY = {"DEVOS_BENCH_PREFETCH": "4"}


@contextmanager
def pool(
    queue: str, concurrency: int, *, each: bool = False, settings: Mapping[str, str] | None = None
) -> Iterator[Pool]:
    """A worker on ``queue`` that is ready for work. ``each``: every job is claimed and finished alone."""
    argv = [sys.executable, "-m", "celery", "-A", "devos.celery:app", "worker", "-Q", queue, "-l", "WARNING"]
    argv += ["-c", str(concurrency), "-n", f"bench-{queue}-{os.getpid()}@%h", "--without-mingle", "--without-gossip"]
    env = {**os.environ, **(settings or {}), **({"DEVOS_CLAIM_EACH": "1"} if each else {})}
    known = set(Worker.objects.values_list("id", flat=True))
    parent = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 120
        while not Worker.objects.exclude(id__in=known).exists():
            if parent.poll() is not None or time.monotonic() > until:
                raise RuntimeError("The bench worker did not start; `devos doctor` says what is wrong.")
            time.sleep(0.1)
        yield Pool(parent)
    finally:
        parent.send_signal(signal.SIGCONT)
        parent.terminate()
        try:
            parent.wait(30)
        except subprocess.TimeoutExpired:
            parent.kill()
