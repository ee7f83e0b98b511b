"""Report: progress and log lines of a running attempt, written while it runs."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

from tasks_app.domain.outcomes import Attempt
from tasks_app.services import sql
from tasks_app.services.bells import bells
from tasks_app.services.jobs.finish import log_row

_REPORT = """
with l as (
  insert into execution_logs (execution_id, level, message, metadata, timestamp)
  select execution, level, message, metadata, now() - ago_s * interval '1 s'
  from jsonb_to_recordset(%(logs)s::jsonb) as l(execution uuid, level text, message text, metadata jsonb, ago_s float8))
update jobs set progress = coalesce(%(progress)s::jsonb, progress)
where id = %(job)s and attempt = %(attempt)s and worker_id = %(worker)s and status = 'running'
"""


def report(attempt: Attempt, worker_id: UUID, progress: dict[str, Any] | None, logs: list[dict[str, Any]]) -> None:
    """Write what an attempt has to say so far. An attempt that is over writes no progress any more."""
    now = time.monotonic()
    sql.run(
        _REPORT,
        {
            "logs": sql.document([log_row(attempt.execution_id, line, now) for line in logs]),
            "progress": sql.document([progress])[1:-1] if progress else None,
            "job": attempt.job_id,
            "attempt": attempt.attempt,
            "worker": worker_id,
        },
        sql.RUNTIME,
    )
    bells().tell(str(attempt.task_id), "progress" if progress else "log")
