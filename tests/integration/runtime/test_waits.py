"""Waits: parked, woken, resumed. Events before, at the same instant, twice, late; deadlines."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections, transaction

from tasks_app.domain import clock
from tasks_app.domain.errors import InvalidInput
from tasks_app.domain.outcomes import Waiting
from tasks_app.maintenance import probe
from tasks_app.models import Event, Execution, Job, JobStep, Task
from tasks_app.queries.explain import explain
from tasks_app.runtime.executor import Run, execute
from tasks_app.services import approvals, events, tasks
from tasks_app.services.jobs.claim import claim
from tasks_app.services.jobs.finish import finish
from tasks_app.services.jobs.rescue import rescue_expired
from tasks_app.services.tasks import TaskSpec, submit, submit_many
from tasks_app.services.waits.check import check_due
from tests.integration.runtime.waiting import (
    HOUR,
    after,
    approval_of,
    changed,
    shop,
    start,
    state,
)
from tests.support.waiting import until

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "runtime"])


def test_a_sleep_gives_the_worker_back_and_goes_on_from_its_steps(principal, drain):
    task = start(principal, "test.sleeps")
    drain()
    job = Job.objects.get()
    assert (state(task), job.status, job.attempt, job.counted_attempts) == ("waiting", "pending", 1, 0)
    assert job.worker_id is None and job.blocked_by["reason"] == "sleep" and job.blocked_by["wait"] == 2
    assert Execution.objects.get().status == "paused"
    assert abs((job.available_at - JobStep.objects.get(kind="sleep").deadline_at).total_seconds()) < 1
    assert probe.tick() == {}
    with after(HOUR):
        assert probe.tick()["timers"] == 1
        drain()
    assert state(task) == "completed"
    assert (task.output["first"], task.output["attempt"]) == (1, 1)
    assert Execution.objects.get(status="completed").steps_reused == 2
    assert JobStep.objects.filter(check_at__isnull=False).count() == 0


def test_f67_a_wait_ends_at_the_instant_counted_from_its_first_start(principal, loop, drain):
    task = start(principal, "test.sleeps")
    drain()
    deadline = JobStep.objects.get(kind="sleep").deadline_at
    for _ in range(3):  # the worker dies each time the job has just gone on
        Job.objects.update(available_at=clock.now())
        probe.tick()
        assert len(claim("default", loop.worker_id, 1)) == 1
        Job.objects.update(lease_expires_at="2020-01-01T00:00:00Z")
        rescue_expired(0)
        drain()
        assert state(task) == "waiting"
        assert JobStep.objects.get(kind="sleep").deadline_at == deadline
        assert abs((Job.objects.get().available_at - deadline).total_seconds()) < 1
    with after(HOUR):
        probe.tick()
        drain()
    assert state(task) == "completed" and Job.objects.get().interruptions == 3


def test_f67_a_thousand_waits_due_at_once_and_one_that_breaks(principal, loop, drain):
    submit_many(principal, [TaskSpec(type="test.sleeps", input={"timeout_s": 1800})] * 1_000)
    drain(120)
    assert Job.objects.filter(status="pending").count() == 1_000
    broken = JobStep.objects.filter(kind="sleep").first()
    JobStep.objects.filter(id=broken.id).update(name="something else")
    with after(HOUR):
        while probe.tick().get("timers"):
            pass
        drain(120)
    assert Task.objects.filter(status="completed").count() == 999
    assert Task.objects.get(status="failed").error["code"] == "NON_DETERMINISTIC"
    assert Job.objects.filter(worker_id__isnull=False).count() == 0


@pytest.mark.parametrize("key", ["", "raise"])
def test_an_action_that_catches_everything_still_waits(principal, drain, key):
    task = start(principal, "test.swallows", key=key)
    drain()
    assert (state(task), Job.objects.get().blocked_by["reason"]) == ("waiting", "sleep")


def test_a_snooze_runs_again_from_the_top_and_costs_no_attempt(principal, drain):
    task = start(principal, "test.snoozes", times=3)
    for _ in range(3):
        drain()
        assert (state(task), Job.objects.get().blocked_by["reason"]) == ("waiting", "snooze")
        Job.objects.update(available_at=clock.now())
        probe.tick()
    drain()
    assert (state(task), task.output) == ("completed", 4)
    assert Job.objects.get().counted_attempts == 1


@pytest.mark.parametrize(
    ("key", "code", "says"),
    [
        ("step", "NON_DETERMINISTIC", "Step 1 was sleep 'sleep' in an earlier attempt and is step 'sleep' now"),
        ("spawn", "NON_DETERMINISTIC", "is spawn 'core.echo' now"),
        ("event", "NON_DETERMINISTIC", "is event 'shop.sold' now"),
        ("strangers", "INVALID_WAIT", "another id was among them"),
        ("options", "INVALID_INPUT", "colour"),
        ("", None, ""),
    ],
)
def test_a_changed_path_is_refused_and_says_what_was_expected(principal, drain, key, code, says):
    changed.clear()
    task = start(principal, "test.changes", key=key)
    for _ in range(4):
        drain()
        Job.objects.filter(status="pending").update(available_at=clock.now())
        probe.tick()
    drain()
    assert (state(task), (task.error or {}).get("code")) == ("failed" if code else "completed", code)
    assert says in (task.error or {}).get("message", "")
    assert Task.objects.count() == 1


def test_sync_mode_cannot_wait_and_says_so(principal):
    from tasks_app.runtime import sync

    assert sync.run(principal, "test.sync", {}).error["code"] == "NOT_IN_SYNC_MODE"


# -- events -----------------------------------------------------------------------------------------------------------


def test_an_event_wakes_the_one_that_waits_for_its_key(principal, drain):
    one, other = start(principal, "test.listens", key="a"), start(principal, "test.listens", key="b")
    drain()
    assert Job.objects.get(task=one).blocked_by["event"] == "shop.*"
    shop(principal, 7, key="b")
    drain()
    assert (state(one), state(other), other.output) == ("waiting", "completed", [7])


def test_f65_an_event_before_the_wait_is_given_once_and_in_order(principal, drain):
    shop(principal, 0)  # before the task was created: outside the look-back
    task = start(principal, "test.listens", times=3)
    shop(principal, 1)
    shop(principal, 2, type="shop.returned")
    shop(principal, 9, type="other.sold")
    drain()
    assert state(task) == "waiting"
    shop(principal, 3)
    drain()
    assert (state(task), task.output) == ("completed", [1, 2, 3])


def test_f65_the_same_event_twice_ends_one_wait(principal, drain):
    task = start(principal, "test.listens", times=2)
    drain()
    shop(principal, 1)
    drain()
    assert state(task) == "waiting"
    shop(principal, 1)
    drain()
    assert task.output is None or state(task) == "completed"
    assert len(set(JobStep.objects.values_list("event_id", flat=True))) == 2


def test_f65_an_event_after_the_deadline_changes_nothing_and_stays_visible(principal, drain):
    task = start(principal, "test.listens", timeout_s=1800.0)
    drain()
    with after(HOUR):
        late = shop(principal, 1)
        assert state(task) == "waiting"
        while probe.tick():
            pass
        drain()
    assert (state(task), task.output) == ("completed", ["WAIT_TIMEOUT"])
    assert JobStep.objects.get().state == "timed_out"
    assert Event.objects.filter(id=late.id).exists() and not JobStep.objects.filter(event_id=late.id).exists()


def test_f65_an_event_at_the_instant_of_parking_is_never_lost(principal, loop, drain):
    for round in range(200):
        submit(principal, TaskSpec(type="test.listens", input={"key": f"k{round}"}))
        barrier = threading.Barrier(2)

        def publish(barrier=barrier, round=round) -> None:
            try:
                barrier.wait()
                if round % 4 > 1:  # into the gap between the begin of the wait and the parking of its job
                    until(JobStep.objects.filter(key=f"k{round}").exists, 20, "the wait is begun", every_s=0.0)
                if round % 2:
                    with transaction.atomic():
                        shop(principal, round, key=f"k{round}")
                else:
                    shop(principal, round, key=f"k{round}")
            finally:
                connections.close_all()

        thread = threading.Thread(target=publish)
        thread.start()
        barrier.wait()
        drain()
        thread.join()
        drain()
    assert Task.objects.filter(status="completed").count() == 200
    assert sorted(output[0] for output in Task.objects.values_list("output", flat=True)) == list(range(200))
    consumed = list(JobStep.objects.values_list("event_id", flat=True))
    assert len(set(consumed)) == 200


def run_to_its_wait(loop) -> Any:
    """The one queued job, run until it waits, and not yet parked; the end of its attempt, to be finished."""
    [job] = claim("default", loop.worker_id, 1)
    context = loop._context(job)
    outcome = execute(Run(context, job.attempt.action_id, job.input, job.organization_id))
    assert isinstance(outcome, Waiting)
    return loop._finished(job, context, outcome, 1.0)


def test_f65_what_comes_between_the_begin_of_a_wait_and_the_parking_wakes_the_job(principal, loop, drain):
    listening = start(principal, "test.listens")
    ended = run_to_its_wait(loop)
    shop(principal, 5)
    assert Job.objects.get(task=listening).status == "running"
    finish([ended])
    assert (state(listening), Job.objects.get(task=listening).status) == ("queued", "queued")
    asking = start(principal, "test.asks")
    Job.objects.filter(task=asking).update(priority=5)
    ended = run_to_its_wait(loop)
    approvals.approve(principal, approval_of(asking).id)
    finish([ended])
    parents = start(principal, "test.parent", delay_s=3600.0)
    Job.objects.filter(task=parents).update(priority=9)
    ended = run_to_its_wait(loop)
    tasks.cancel(principal, Task.objects.get(parent_task=parents).id)
    finish([ended])
    assert set(Job.objects.exclude(task__parent_task=parents).values_list("status", flat=True)) == {"queued"}
    drain()
    assert [state(task) for task in (listening, asking, parents)] == ["completed"] * 3


def test_an_event_of_a_transaction_that_is_rolled_back_ends_nothing(principal, drain):
    task = start(principal, "test.listens")
    drain()
    with pytest.raises(RuntimeError), transaction.atomic():
        shop(principal, 1)
        raise RuntimeError
    drain()
    assert state(task) == "waiting" and JobStep.objects.get().state == "open"


def test_a_wait_begun_while_the_events_transaction_is_open_is_ended_after_its_commit(principal, drain):
    started, parked = threading.Event(), threading.Event()

    def publish() -> None:
        try:
            with transaction.atomic():
                shop(principal, 5)
                started.set()
                parked.wait(20)
        finally:
            connections.close_all()

    task = start(principal, "test.listens")
    thread = threading.Thread(target=publish)
    thread.start()
    assert started.wait(20)
    drain()
    assert state(task) == "waiting"
    parked.set()
    thread.join()
    drain()
    assert (state(task), task.output) == ("completed", [5])


def test_the_sweep_wakes_what_a_dead_process_left(principal, drain):
    task = start(principal, "test.listens")
    drain()
    # As if the publisher died between its commit and its second look: the wait is open, the event is there.
    shop(principal, 5)
    JobStep.objects.update(state="open", event_id=None, output=None, resolved_at=None, check_at=clock.now())
    Job.objects.update(status="pending", blocked_by={"reason": "event", "wait": 1}, available_at=clock.now() + HOUR)
    Task.objects.update(status="waiting")
    assert probe.tick()["waits"] == 1
    drain()
    assert (state(task), task.output) == ("completed", [5])


def test_the_sweep_looks_later_and_later(principal, drain):
    start(principal, "test.listens")
    drain()
    with after(timedelta(seconds=6)):
        assert check_due() == 0
    assert probe.tick() == {}, "nothing is due again at once"


def test_events_of_the_runtime_cannot_be_waited_for_or_forged(principal):
    with pytest.raises(InvalidInput, match="runtime itself"):
        events.emit(principal, "task.completed")


def test_explain_says_which_event_a_job_waits_for_and_since_when(principal, drain):
    before = clock.now()
    task = start(principal, "test.listens", key="order-7")
    drain()
    [found] = [one for one in explain(principal, task.id).reasons if one.code == "EVENT"]
    assert "with the key order-7" in found.message
    assert before <= found.since <= clock.now() < found.until


def test_explain_says_until_when_a_job_sleeps(principal, drain):
    task = start(principal, "test.sleeps")
    drain()
    [found] = [one for one in explain(principal, task.id).reasons if one.code == "TIME"]
    assert found.message.startswith("It sleeps") and found.until > clock.now()
