"""Check: the sweep that looks after waits, the net under everything that ends or wakes them at once."""

from __future__ import annotations

from tasks_app.domain import clock
from tasks_app.domain.states import JOB_FINAL
from tasks_app.domain.waits import StepKind, StepState
from tasks_app.services import sql
from tasks_app.services.waits import ends
from tasks_app.services.waits.wake import wake

# Later and later for what has waited long: only an event that was published while the wait began can have been missed.
# Children and approvals may end at any time, and what is over must not stay unknown to its job.
_DUE = sql.statement("""
with c as materialized (
  select id from job_steps where check_at <= now() + %(shift_s)s * interval '1 s'
  order by check_at limit %(limit)s for update skip locked),
s as (
  update job_steps s set check_at = greatest(now(), check_at) + least(
    greatest(now() - coalesce(resolved_at, created_at), interval '5 s'),
    case when state <> 'open' or kind in ('children', 'approval') then interval '15 s' else interval '1 hour' end)
  from c where s.id = c.id returning s.id, s.job_id, s.kind, s.state)
select s.id, s.job_id, s.kind, s.state, j.status from s join jobs j on j.id = s.job_id
""")


def check_due(limit: int = 500) -> int:
    """Look after waits whose time to be looked at has come (at most ``limit``); returns how many changed something."""
    rows = sql.run(_DUE, {"shift_s": clock.shift_s(), "limit": limit}, sql.RUNTIME)
    over = sorted({job for _, job, _, _, status in rows if status in JOB_FINAL})
    if over:
        ends.with_jobs(over, sql.RUNTIME)
    live = [row for row in rows if row[4] not in JOB_FINAL]
    ended = {job for _, job, _, state, _ in live if state != StepState.OPEN}
    if waiting := {step: kind for step, _, kind, state, _ in live if state == StepState.OPEN}:
        if of_events := [step for step, kind in waiting.items() if kind == StepKind.EVENT]:
            ended.update(ends.by_early_events(of_events))
        if of_children := [step for step, kind in waiting.items() if kind == StepKind.CHILDREN]:
            ended.update(ends.by_children(of_children))
        ended.update(ends.by_deadline(list(waiting)))
    return len(over) + wake(sorted(ended))
