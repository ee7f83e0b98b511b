"""Whatever happens to the process of a durable action, and whenever: each step is done once, in order."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks_app.actions import registry
from tasks_app.domain import clock
from tasks_app.domain.outcomes import Failed
from tasks_app.maintenance import probe
from tasks_app.models import Job, JobStep, Task
from tasks_app.runtime.context import HandBack
from tasks_app.runtime.executor import Run, execute
from tasks_app.sdk import ActionInput, Context, Plugin, action
from tasks_app.services import events
from tasks_app.services.jobs.claim import claim
from tasks_app.services.jobs.finish import finish
from tasks_app.services.jobs.rescue import rescue_expired
from tasks_app.services.tasks import TaskSpec, submit

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "runtime"])

OPERATIONS = st.lists(st.sampled_from(["step", "sleep", "event", "child", "children"]), min_size=1, max_size=7)
# For each attempt: the operation before which it ends, and how. "lose": it runs as far as it can, and the process dies
# before that is recorded.
ACCIDENTS = st.lists(st.tuples(st.integers(0, 7), st.sampled_from(["kill", "hand_back", "lose", "none"])), max_size=5)

effects: list[int] = []
accident: tuple[int, str] = (99, "none")


class Killed(BaseException):
    """The process is gone."""


class Program(ActionInput):
    operations: list[str] = []


@action("test.program", permission="test.run")
def program(ctx: Context, input: Program) -> list:
    seen: list[Any] = []
    spawned = 0
    for index, operation in enumerate(input.operations):
        _maybe_die(index)
        if operation == "step":
            seen.append(ctx.step(f"step {index}", lambda index=index: effects.append(index) or index))
        elif operation == "sleep":
            ctx.sleep(600)
        elif operation == "event":
            seen.append(ctx.wait_event("program.go").data["n"])
        elif operation == "child":
            ctx.spawn("core.echo", {"value": index})
            spawned += 1
        elif spawned:
            seen.append([one.status for one in ctx.wait_children()])
    _maybe_die(7)
    return seen


def _maybe_die(index: int) -> None:
    at, how = accident
    if index == at and how == "kill":
        raise Killed
    if index == at and how == "hand_back":
        raise HandBack({})


@pytest.fixture(autouse=True)
def _program():
    registry.register(Plugin("program", actions=[program]))
    yield
    registry.unregister("program")


def attempt(loop: Any) -> bool:
    """One claimed job through the real executor and finish; a kill leaves it to rescue. False when none was queued."""
    jobs = claim("default", loop.worker_id, 1)
    for job in jobs:
        context = loop._context(job)
        started = time.monotonic()
        outcome = execute(Run(context, job.attempt.action_id, job.input, job.organization_id))
        died = isinstance(outcome, Failed) and "Killed" in (outcome.error.traceback or "")
        if job.attempt.action_id == "test.program" and (died or accident[1] == "lose"):
            Job.objects.filter(id=job.attempt.job_id).update(lease_expires_at="2020-01-01T00:00:00Z")
            rescue_expired(0)
        else:
            finish([loop._finished(job, context, outcome, time.monotonic() - started)])
    return bool(jobs)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(operations=OPERATIONS, accidents=ACCIDENTS)
def test_steps_are_done_once_and_in_order(principal, loop, operations, accidents):
    global accident
    effects.clear()
    plan = list(accidents)
    task_id = submit(principal, TaskSpec(type="test.program", input={"operations": operations})).task_id
    published, shift = 0, timedelta()
    for _ in range(200):
        accident = plan.pop(0) if plan else (99, "none")
        if not attempt(loop):
            if Task.objects.get(id=task_id).status == "completed":
                break
            if JobStep.objects.filter(job__task_id=task_id, kind="event", state="open").exists():
                published += 1
                events.emit(principal, "program.go", data={"n": published})
            shift += timedelta(minutes=11)
            later = clock.now() + shift
            with clock.using(lambda later=later: later):
                probe.tick()
    task = Task.objects.get(id=task_id)
    assert task.status == "completed", task.error
    assert effects == [index for index, operation in enumerate(operations) if operation == "step"]
    assert Task.objects.filter(parent_task=task).count() == operations.count("child")
    assert [n for n in task.output if isinstance(n, int)].count(1) >= (1 if "event" in operations else 0)
    assert published == operations.count("event")
    job = Job.objects.get(task=task)
    assert job.counted_attempts == 1 and job.interruptions <= 5
    assert not JobStep.objects.filter(job=job).exclude(check_at=None).exists()
