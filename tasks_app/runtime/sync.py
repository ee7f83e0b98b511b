"""Sync mode: a short action inside the request, with a time limit, an execution row and an audit entry all the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction

from tasks_app.actions import registry
from tasks_app.actions.definition import ActionDefinition
from tasks_app.domain import clock, ids
from tasks_app.domain.costs import Cost
from tasks_app.domain.errors import ActionError, InvalidInput
from tasks_app.domain.outcomes import Cancelled, ErrorInfo, Failed, Outcome, Succeeded
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import ExecutionStatus
from tasks_app.domain.waits import Standing, WaitRequest
from tasks_app.models import Execution, ExecutionLog
from tasks_app.runtime.context import Context, Identity
from tasks_app.runtime.executor import Run, execute, since
from tasks_app.runtime.slots import Signal
from tasks_app.services import audit, costs, events
from tasks_app.services.tasks.prepare import checked_input

_SECOND = timedelta(seconds=1)


class SyncReporter:
    """A context's reporter without a job: logs are kept until the end, the only signal is the deadline."""

    def __init__(self, principal: Principal, execution: Execution, deadline: float) -> None:
        self.principal, self.execution, self.deadline = principal, execution, deadline
        self.logs: list[dict[str, Any]] = []

    def report(self, progress: dict[str, Any] | None, logs: list[dict[str, Any]]) -> None:
        self.logs += logs

    def signal(self) -> Signal | None:
        return Signal.CANCEL if time.monotonic() >= self.deadline else None

    def stopping(self) -> bool:
        return False

    def publish(self, type: str, data: Any, resource: tuple[str, str] | None, key: str) -> None:
        _publish(self.principal, self.execution, type, data=data, resource=resource, key=key)

    def spend(self, spent: list[Cost]) -> bool:
        try:
            costs.record(self.execution.id, spent, using="default")
        except (OperationalError, InterfaceError):
            return False
        return True

    def step(self, ordinal: int, name: str, work: Callable[[], Any]) -> tuple[Any, bool]:
        return work(), False

    def spawn(self, ordinal: int, type: str, input: Any, options: dict[str, Any]) -> tuple[str, bool]:
        raise _needs_a_job("ctx.spawn")

    def wait(self, ordinal: int, request: WaitRequest) -> Standing:
        raise _needs_a_job("a wait")


def _needs_a_job(what: str) -> ActionError:
    message = f"{what} needs a task, and sync mode makes none: run this action in mode async."
    return ActionError("NOT_IN_SYNC_MODE", message, retryable=False)


def run(principal: Principal, action_id: str, value: Any) -> Execution:
    """Run an action now and answer its sealed execution row, failed or not.

    Raises `ActionNotRegistered`, `PermissionDenied`, `InvalidInput` (also when the action does not offer sync mode).
    """
    action = registry.get(action_id)
    if "sync" not in action.modes:
        raise InvalidInput(
            f"{action_id} does not run in sync mode; use mode async and follow the task.",
            [{"field": "mode", "problem": "not offered by this action"}],
        )
    principal.require("tasks.write")
    principal.require(action.permission, dangerous=action.dangerous)
    execution = _start(principal, action, checked_input(action, value))
    limit_s = min(action.timeout_s, settings.DEVOS.sync_timeout_s)
    started = time.monotonic()
    reporter = SyncReporter(principal, execution, started + limit_s)
    context = _context(principal, execution, reporter)
    outcome = _within(limit_s, Run(context, action_id, execution.input, principal.organization_id))
    reporter.logs += context.pending_logs
    context.flush_costs()
    _seal(principal, execution, outcome, since(started), context, reporter.logs)
    return execution


def _context(principal: Principal, execution: Execution, reporter: SyncReporter) -> Context:
    identity = Identity(
        principal.organization_id,
        principal.actor,
        execution.correlation_id,
        1,
        1,
        execution.id,
        request_id=principal.request_id,
    )
    knobs = settings.DEVOS
    return Context(identity, reporter, log_lines_max=knobs.log_lines_max, wait_timeout_s=knobs.wait_timeout_s)


@transaction.atomic
def _start(principal: Principal, action: ActionDefinition, value: Any) -> Execution:
    execution_id = ids.new_id()
    execution = Execution.objects.create(
        id=execution_id,
        action_id=action.id,
        action_version=action.version,
        organization_id=principal.organization_id,
        status=ExecutionStatus.RUNNING,
        mode="sync",
        actor_type=principal.actor.type,
        actor_id=principal.actor.id,
        attempt=1,
        max_attempts=1,
        input=value,
        started_at=clock.now(),
        correlation_id=principal.correlation_id or ids.to_text("execution", execution_id),
    )
    _publish(principal, execution, "execution.started", data={"action": action.id, "mode": "sync"})
    return execution


def _within(limit_s: float, run: Run) -> Outcome:
    """The outcome, or TIMEOUT: the action runs in a thread of its own, which is left behind when it does not stop."""
    outcomes: list[Outcome] = []

    def work() -> None:
        try:
            outcomes.append(execute(run))
        finally:
            connection.close()

    thread = threading.Thread(target=work, name=f"sync-{run.action_id}", daemon=True)
    thread.start()
    thread.join(limit_s + 0.5)
    if not outcomes or isinstance(outcomes[0], Cancelled):
        return Failed(ErrorInfo("TIMEOUT", f"Ran longer than the {limit_s:g} s a sync call may take; use mode async."))
    return outcomes[0]


@transaction.atomic
def _seal(
    principal: Principal,
    execution: Execution,
    outcome: Outcome,
    duration_ms: float,
    context: Context,
    lines: list[dict[str, Any]],
) -> None:
    succeeded = isinstance(outcome, Succeeded)
    execution.status = ExecutionStatus.COMPLETED if succeeded else ExecutionStatus.FAILED
    execution.output = outcome.output if isinstance(outcome, Succeeded) else None
    execution.error = outcome.error.as_json() if isinstance(outcome, Failed) else None
    execution.completed_at = clock.now()
    execution.duration_ms = duration_ms
    execution.progress = context.last_progress
    execution.log_lines_dropped = context.dropped
    execution.save()
    now, wall = time.monotonic(), clock.now()
    ExecutionLog.objects.bulk_create(
        ExecutionLog(
            execution_id=execution.id,
            level=line["level"],
            message=line["message"],
            metadata=line["metadata"],
            timestamp=wall + (line["at"] - now) * _SECOND,
        )
        for line in lines
    )
    _publish(principal, execution, f"execution.{execution.status}", causation_id=execution.id)
    audit.record(
        principal, "action.run", "execution", execution.public_id, after={"action": execution.action_id, "mode": "sync"}
    )


def _publish(principal: Principal, execution: Execution, type: str, **more: Any) -> None:
    events.publish(
        type,
        organization_id=principal.organization_id,
        actor=principal.actor,
        correlation_id=execution.correlation_id,
        execution_id=execution.id,
        **more,
    )
