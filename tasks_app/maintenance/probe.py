"""The probe: one statement a second asks what is due and wakes only the sweeps that have work."""

from __future__ import annotations

from django.conf import settings

from tasks_app.domain import clock, faultpoints
from tasks_app.maintenance.sweep import Sweep, run_all
from tasks_app.services import sql
from tasks_app.services.bells import bells
from tasks_app.services.jobs.ready import ready_due
from tasks_app.services.jobs.rescue import rescue_expired
from tasks_app.services.queues.resume import resume_due
from tasks_app.services.waits.check import check_due

_DUE = """
select
  (select array_agg(name) from queues q where paused_at is null
     and exists (select 1 from jobs where queue = q.name and status = 'queued')),
  exists (select 1 from jobs where status in ('pending', 'retrying')
     and available_at <= now() + %(shift_s)s * interval '1 s'),
  exists (select 1 from jobs where lease_expires_at < now()),
  exists (select 1 from queues where paused_until <= now() + %(shift_s)s * interval '1 s'),
  exists (select 1 from job_steps where check_at <= now() + %(shift_s)s * interval '1 s')
"""


def tick() -> dict[str, int]:
    """Ask, ring for queues that hold work (the relay), run the sweeps that are due. Returns rows changed by sweep."""
    [(waiting, timers, leases, pauses, waits)] = sql.run(_DUE, {"shift_s": clock.shift_s()}, sql.RUNTIME)
    faultpoints.reach("probe.running")
    for queue in waiting or ():
        bells().ring(queue)
    due = [
        Sweep("timers", ready_due) if timers else None,
        Sweep("rescue", lambda: rescue_expired(settings.DEVOS.lease_s)) if leases else None,
        Sweep("queue_pauses", resume_due) if pauses else None,
        Sweep("waits", check_due) if waits else None,
    ]
    return run_all([sweep for sweep in due if sweep])
