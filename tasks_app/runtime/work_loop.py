"""The work loop of one pool process: claim a batch, run each job, finish in groups, ring on, hand back in time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any, Protocol
from uuid import UUID

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, connections
from psycopg.pq import TransactionStatus

from tasks_app.actions import registry
from tasks_app.domain import ids
from tasks_app.domain.costs import Cost
from tasks_app.domain.outcomes import Cancelled, HandedBack
from tasks_app.domain.waits import Standing, StepKind, WaitRequest
from tasks_app.runtime.context import Context, Identity
from tasks_app.runtime.executor import Run, execute, since
from tasks_app.runtime.slots import Signal, SlotTable
from tasks_app.services import costs, events, principals, sql
from tasks_app.services.bells import bells
from tasks_app.services.jobs import steps
from tasks_app.services.jobs.claim import Claimed
from tasks_app.services.jobs.finish import Finished, finish, finish_and_claim
from tasks_app.services.jobs.report import report
from tasks_app.services.jobs.steps import Past
from tasks_app.services.tasks.spec import TaskSpec
from tasks_app.services.waits.enter import enter

log = structlog.get_logger()


class Watcher(Protocol):
    """Who is told about every job, for Flower; see `queue_celery.JobEvents`."""

    def started(self, job: Claimed) -> None: ...

    def ended(self, job: Claimed, finished: Finished) -> None: ...

    def flush(self) -> None: ...


@dataclass
class JobReporter:
    """Ties the context of a running job to the database and to the worker's shared memory."""

    job: Claimed
    worker_id: UUID
    slots: SlotTable
    slot: int
    _past: dict[int, Past] | None = None

    def report(self, progress: dict[str, Any] | None, logs: list[dict[str, Any]]) -> None:
        report(self.job.attempt, self.worker_id, progress, logs)

    def signal(self) -> Signal | None:
        return self.slots.signalled(self.slot, self.job.attempt.execution_id)

    def stopping(self) -> bool:
        return self.slots.stopping

    def publish(self, type: str, data: Any, resource: tuple[str, str] | None, key: str) -> None:
        events.publish(
            type,
            organization_id=self.job.organization_id,
            actor=self.job.actor,
            correlation_id=self.job.correlation_id,
            data=data,
            causation_id=self.job.attempt.execution_id,
            resource=resource,
            task_id=self.job.attempt.task_id,
            job_id=self.job.attempt.job_id,
            execution_id=self.job.attempt.execution_id,
            key=key,
        )

    def spend(self, spent: list[Cost]) -> bool:
        try:
            costs.record(self.job.attempt.execution_id, spent)
        except (OperationalError, InterfaceError) as error:
            log.warning("costs.database_away", costs=len(spent), error=str(error))
            connections[sql.RUNTIME].close()
            return False
        return True

    def step(self, ordinal: int, name: str, work: Any) -> tuple[Any, bool]:
        if past := self._before(ordinal, StepKind.STEP, name):
            return past.output, True
        return steps.store(self.job.attempt.job_id, ordinal, name, work()), False

    def spawn(self, ordinal: int, type: str, input: Any, options: dict[str, Any]) -> tuple[str, bool]:
        if past := self._before(ordinal, StepKind.SPAWN, type):
            return past.output, True
        job = self.job
        parent = ids.to_text("task", job.attempt.task_id)
        spec = TaskSpec.model_validate({"type": type, "input": input, "parent_task": parent, **options})
        principal = replace(
            principals.of_actor(job.actor, job.organization_id),
            request_id=job.request_id,
            correlation_id=job.correlation_id,
        )
        return steps.spawn(principal, job.attempt.job_id, ordinal, spec, job.attempt.execution_id), False

    def wait(self, ordinal: int, request: WaitRequest) -> Standing:
        past = self._before(ordinal, request.kind, request.name)
        return enter(self.job, self.worker_id, ordinal, request, past)

    def _before(self, ordinal: int, kind: StepKind, name: str) -> Past | None:
        """What an earlier attempt did at this place, if it came here. Raises NON_DETERMINISTIC for something else."""
        if self._past is None:
            self._past = steps.stored(self.job.attempt.job_id)
        if past := self._past.get(ordinal):
            steps.check(ordinal, past, kind, name)
        return past


@dataclass
class WorkLoop:
    """One per pool process. ``each`` claims and finishes every job alone (for comparison, and for careful queues)."""

    worker_id: UUID
    slots: SlotTable
    slot: int
    watcher: Watcher | None = None
    each: bool = False
    busy: bool = False
    _average_ms: dict[str, float] = field(default_factory=dict)
    _batch: dict[str, int] = field(default_factory=dict)
    _group: list[Finished] = field(default_factory=list)
    _group_since: float = 0.0

    def turn(self, queue: str) -> int:
        """Work on ``queue`` for a while; returns how many jobs were run. Rings before it ends when work may remain."""
        ends_at = time.monotonic() + settings.DEVOS.turn_s
        done, rung, self.busy = 0, False, True
        # The database may have been away since the last turn: a dead connection must not cost a job an attempt.
        connections["default"].close_if_unusable_or_obsolete()
        try:
            while not self.slots.stopping:
                limit = 1 if self.each else self._batch.get(queue, 1)
                jobs = self._write_and_claim(queue, limit)
                if not jobs:
                    return done
                # A full claim means there may be more: wake the next process. Not for a first light job: it is over
                # before another process is awake.
                if len(jobs) == limit and not rung and (done or limit > 1 or not self._is_light(jobs[0])):
                    bells().ring(queue)
                    rung = True
                done += self._run_all(queue, jobs)
                if time.monotonic() >= ends_at:
                    break
            self._flush()
            bells().ring(queue)
        except (OperationalError, InterfaceError) as error:
            # The database is away. Nothing is lost: what was claimed is rescued, bells are rung again by the relay.
            log.warning("work.database_away", queue=queue, error=str(error))
            connections[sql.RUNTIME].close()
        finally:
            self.busy = False
            self.slots.release(self.slot)
            if self.watcher:
                self.watcher.flush()
        return done

    def _light_actions(self) -> list[str]:
        return [action for action, ms in self._average_ms.items() if ms < settings.DEVOS.light_job_ms]

    def _run_all(self, queue: str, jobs: list[Claimed]) -> int:
        self.slots.hold(self.slot, [job.attempt.execution_id for job in jobs])
        total_ms, done = 0.0, 0
        for index, job in enumerate(jobs):
            if self._group and (job.attempt.interruptions or not self._is_light(job)):
                self._flush()  # before work that may take long, or its process down
            limit_s = self._hard_limit(job)
            if self.slots.stopping or not self.slots.run(self.slot, index, time.monotonic() + limit_s):
                self._hand_back(jobs[index:])
                break
            total_ms += self._run_one(job)
            done += 1
            # The last of a batch is written with the next claim, which comes at once.
            if index < len(jobs) - 1 and self._is_due():
                self._flush()
        self._adapt(queue, total_ms / max(done, 1))
        return done

    def _run_one(self, job: Claimed) -> float:
        if self.watcher and not self._is_light(job):
            self.watcher.started(job)
        if connections["default"].errors_occurred:
            connections["default"].close_if_unusable_or_obsolete()
        started = time.monotonic()
        context = self._context(job)
        if job.cancel_requested:
            outcome: Any = Cancelled("Cancelled before it began.")
        else:
            outcome = execute(Run(context, job.attempt.action_id, job.input, job.organization_id))
            _drop_interrupted_bookkeeping()
            _write_costs(context)
        duration = since(started)
        self._add(job, self._finished(job, context, outcome, duration))
        known = self._average_ms.get(job.attempt.action_id, duration)
        self._average_ms[job.attempt.action_id] = 0.7 * known + 0.3 * duration
        return duration

    def _finished(self, job: Claimed, context: Context, outcome: Any, duration_ms: float) -> Finished:
        version = None
        if not isinstance(outcome, HandedBack):
            try:
                version = registry.get(job.attempt.action_id).version
            except registry.ActionNotRegistered:
                version = None
        return Finished(
            job.attempt,
            self.worker_id,
            outcome,
            time.monotonic(),
            duration_ms,
            version,
            context.last_progress,
            context.pending_logs,
            context.dropped,
            context.steps_reused,
        )

    def _context(self, job: Claimed) -> Context:
        attempt = job.attempt
        identity = Identity(
            job.organization_id,
            job.actor,
            job.correlation_id,
            attempt.counted,
            attempt.max_attempts,
            attempt.execution_id,
            attempt.task_id,
            attempt.job_id,
            job.request_id,
        )
        reporter = JobReporter(job, self.worker_id, self.slots, self.slot)
        return Context(
            identity,
            reporter,
            checkpoint=job.checkpoint,
            log_lines_max=settings.DEVOS.log_lines_max,
            wait_timeout_s=settings.DEVOS.wait_timeout_s,
        )

    def _hard_limit(self, job: Claimed) -> float:
        try:
            limit = registry.get(job.attempt.action_id).timeout_s
        except registry.ActionNotRegistered:
            limit = 1.0
        return min(limit, settings.DEVOS.timeout_s_max) + settings.DEVOS.kill_grace_s

    def _is_light(self, job: Claimed) -> bool:
        return self._average_ms.get(job.attempt.action_id, 1e9) < settings.DEVOS.light_job_ms

    def _adapt(self, queue: str, average_ms: float) -> None:
        grown = min(self._batch.get(queue, 1) * 4, settings.DEVOS.claim_batch_max)
        self._batch[queue] = grown if average_ms < settings.DEVOS.light_job_ms else 1

    # -- finishing in groups ------------------------------------------------------------------------------------------

    def _add(self, job: Claimed, finished: Finished) -> None:
        if not self._group:
            self._group_since = time.monotonic()
        self._group.append(finished)
        if self.watcher:
            self.watcher.ended(job, finished)

    def _is_due(self) -> bool:
        waited_ms = (time.monotonic() - self._group_since) * 1000
        longest_ms = self._group[-1].duration_ms
        return waited_ms >= settings.DEVOS.flush_after_ms or longest_ms >= settings.DEVOS.light_job_ms

    def _write_and_claim(self, queue: str, limit: int) -> list[Claimed]:
        group, self._group = self._group, []
        try:
            return finish_and_claim(group, queue, self.worker_id, limit, self._light_actions())
        except (OperationalError, InterfaceError):
            self._group = group
            self._flush()  # keeps trying while the lease can still be ours
            raise

    def _flush(self) -> None:
        group, self._group = self._group, []
        if not group:
            return
        gives_up_at = time.monotonic() + settings.DEVOS.lease_s
        while True:
            try:
                finish(group)
                return
            except (OperationalError, InterfaceError) as error:
                # Results are kept for as long as the lease can still be ours; after that rescue has the jobs.
                if time.monotonic() >= gives_up_at:
                    raise
                log.warning("finish.database_away", jobs=len(group), error=str(error))
                connections[sql.RUNTIME].close()
                time.sleep(0.5)

    def _hand_back(self, jobs: list[Claimed]) -> None:
        for job in jobs:
            self._group.append(Finished(job.attempt, self.worker_id, HandedBack(), time.monotonic(), 0.0))
        self._flush()


def _write_costs(context: Context) -> None:
    """What could not be written when it was spent is written before the end is; as patiently as the end itself."""
    gives_up_at = time.monotonic() + settings.DEVOS.lease_s
    while not context.flush_costs():
        if time.monotonic() >= gives_up_at:
            log.error(
                "costs.not_written", execution=context.execution_id, costs=[str(c) for c in context.pending_costs]
            )
            return
        time.sleep(0.5)


def _drop_interrupted_bookkeeping() -> None:
    """A time limit may strike while progress is being written: a connection left in mid-statement is of no more use."""
    wrapper = connections[sql.RUNTIME]
    if wrapper.connection and wrapper.connection.info.transaction_status is not TransactionStatus.IDLE:
        wrapper.close()
