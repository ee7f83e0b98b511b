"""Workers come and go: their rows say which are alive. A job's lease never depends on them."""

from __future__ import annotations

from uuid import UUID

from tasks_app.services import sql

_REGISTER = """
insert into workers (id, hostname, pid, queues, concurrency, started_at, last_seen_at, restarted_processes)
values (%(id)s, %(hostname)s, %(pid)s, %(queues)s, %(concurrency)s, now(), now(), 0)
"""
_STOPPED = "update workers set stopped_at = now() where id = %(id)s"


def register(worker_id: UUID, hostname: str, pid: int, queues: list[str], concurrency: int) -> None:
    """Write the row of a worker that has just started."""
    parameters = {"id": worker_id, "hostname": hostname, "pid": pid, "queues": queues, "concurrency": concurrency}
    sql.run(_REGISTER, parameters, sql.RUNTIME)


def stopped(worker_id: UUID) -> None:
    """Note that a worker has shut down by itself."""
    sql.run(_STOPPED, {"id": worker_id}, sql.RUNTIME)
