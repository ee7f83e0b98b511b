"""A parent waits for its children, whatever becomes of them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connections

from tasks_app.domain import clock
from tasks_app.maintenance import probe
from tasks_app.models import DeadLetterJob, Event, Job, JobStep, Task
from tasks_app.services import tasks
from tasks_app.services.jobs.claim import claim
from tasks_app.services.jobs.finish import finish
from tasks_app.services.jobs.rescue import rescue_expired
from tasks_app.services.tasks import submit
from tests.integration.runtime.waiting import (
    after,
    start,
    state,
)

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "runtime"])


def test_f62_a_parent_gets_the_outcomes_of_its_children(principal, drain):
    task = start(principal, "test.parent", times=3)
    drain()
    assert (state(task), task.output) == ("completed", [["completed", str(n), None] for n in range(3)])
    assert Task.objects.filter(parent_task=task).count() == 3
    made = Event.objects.get(type="task.created", task_id=Task.objects.filter(parent_task=task).first().id)
    assert made.correlation_id == task.correlation_id


def test_f62_failed_children_end_the_wait_too(principal, drain):
    task = start(principal, "test.parent", times=2, fails=1)
    drain()
    assert (state(task), task.output) == ("completed", [["failed", None, "CHILD_FAILED"]] * 2)
    assert DeadLetterJob.objects.count() == 2


def parked_parent(principal, loop, children: int = 1) -> Task:
    """A parent that waits for children that may not run yet."""
    task = start(principal, "test.parent", times=children, delay_s=86_400.0)
    loop.turn("default")
    assert state(task) == "waiting"
    return task


def test_f62_cancelled_children_end_the_wait_too(principal, loop, drain):
    task = parked_parent(principal, loop)
    tasks.cancel(principal, Task.objects.get(parent_task=task).id)
    drain()
    assert (state(task), task.output) == ("completed", [["cancelled", None, "CANCELLED"]])


def test_f62_a_child_whose_worker_always_dies_ends_the_wait_too(principal, loop, drain):
    task = parked_parent(principal, loop)
    Job.objects.filter(task__parent_task=task).update(available_at=clock.now())
    probe.tick()
    for _ in range(6):
        assert len(claim("default", loop.worker_id, 1)) == 1
        Job.objects.filter(status="running").update(lease_expires_at="2020-01-01T00:00:00Z")
        rescue_expired(0)
    drain()
    assert (state(task), task.output) == ("completed", [["failed", None, "WORKER_LOST"]])


def test_f62_a_deleted_child_counts_as_missing(principal, loop, drain):
    task = parked_parent(principal, loop)
    Job.objects.filter(task__parent_task=task).delete()
    Task.objects.filter(parent_task=task).delete()
    with after(timedelta(seconds=30)):
        assert probe.tick()["waits"] == 1
        drain()
    assert (state(task), task.output) == ("completed", [["missing", None, None]])


def test_f62_a_child_that_never_ends_is_given_up_at_the_deadline(principal, loop, drain):
    task = parked_parent(principal, loop)
    with after(timedelta(minutes=40)):
        while probe.tick():
            pass
        drain()
    assert (state(task), task.output) == ("completed", ["WAIT_TIMEOUT"])


def test_cancelling_a_parent_cancels_its_children_and_its_wait(principal, loop):
    task = parked_parent(principal, loop, 2)
    tasks.cancel(principal, task.id)
    assert set(Task.objects.values_list("status", flat=True)) == {"cancelled"}
    wait = JobStep.objects.get(kind="children")
    assert (wait.state, wait.check_at) == ("cancelled", None)


def test_children_are_spawned_once_however_often_the_parent_runs(principal, loop, drain):
    task = parked_parent(principal, loop, 3)
    for _ in range(2):
        Job.objects.filter(task=task).update(available_at=clock.now())
        probe.tick()
        loop.turn("default")
    assert Task.objects.filter(parent_task=task).count() == 3


def test_a_task_without_a_parent_costs_its_finish_nothing(principal, drain, loop, django_assert_num_queries):
    from tests.integration.runtime.test_work import echo, finished

    submit(principal, echo())
    [one] = claim("default", loop.worker_id, 1)
    # Django counts what is done beside the statement of the finish itself.
    with django_assert_num_queries(0, connection=connections["runtime"]):
        finish([finished(one, loop)])
