"""Waits: parked, woken, resumed. Events before, at the same instant, twice, late; deadlines; children; approvals."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, connections, transaction

from tasks_app.actions import registry
from tasks_app.domain import clock, ids
from tasks_app.domain.errors import Conflict, InvalidInput
from tasks_app.domain.outcomes import Waiting
from tasks_app.maintenance import probe
from tasks_app.models import Approval, DeadLetterJob, Event, Execution, Job, JobStep, Task
from tasks_app.runtime.executor import Run, execute
from tasks_app.sdk import ActionError, ActionInput, Context, Plugin, RetryPolicy, WaitTimeout, action
from tasks_app.services import approvals, events, tasks
from tasks_app.services.jobs.claim import claim
from tasks_app.services.jobs.finish import finish
from tasks_app.services.jobs.rescue import rescue_expired
from tasks_app.services.tasks import TaskSpec, submit, submit_many
from tasks_app.services.waits.check import check_due
from tests.support.waiting import until

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "runtime"])

HOUR = timedelta(hours=1)


class What(ActionInput):
    key: str = ""
    timeout_s: float = 1800.0
    times: int = 1
    fails: int = 0
    delay_s: float = 0.0


@action("test.sleeps", permission="test.run")
def sleeps(ctx: Context, input: What) -> dict:
    first = ctx.step("first", lambda: ctx.attempt)
    ctx.sleep(input.timeout_s)
    return {"first": first, "attempt": ctx.attempt, "execution": ctx.execution_id}


@action("test.listens", permission="test.run", retry=RetryPolicy(max_attempts=1))
def listens(ctx: Context, input: What) -> list:
    got = []
    for _ in range(input.times):
        try:
            event = ctx.wait_event("shop.*", key=input.key or None, timeout_s=input.timeout_s)
        except WaitTimeout as late:
            got.append(late.code)
        else:
            got.append(event.data.get("n"))
    return got


@action("test.asks", permission="test.run", retry=RetryPolicy(max_attempts=1))
def asks(ctx: Context, input: What) -> dict:
    decision = ctx.wait_approval("Deploy?", details={"version": 3}, role=input.key or "operator", timeout_s=1800)
    return {"approved": decision.approved, "by": decision.by, "comment": decision.comment}


@action("test.snoozes", permission="test.run", retry=RetryPolicy(max_attempts=1))
def snoozes(ctx: Context, input: What) -> int:
    runs = Execution.objects.filter(action_id="test.snoozes").count()
    if runs <= input.times:
        ctx.snooze(600)
    return runs


@action("test.parent", permission="test.run", retry=RetryPolicy(max_attempts=1))
def parent(ctx: Context, input: What) -> list:
    for index in range(input.times):
        ctx.spawn("test.child", {"key": str(index), "fails": input.fails}, delay_s=input.delay_s)
    try:
        outcomes = ctx.wait_children(timeout_s=input.timeout_s)
    except WaitTimeout as late:
        return [late.code]
    return [[one.status, one.output, (one.error or {}).get("code")] for one in outcomes]


@action("test.child", permission="test.run", retry=RetryPolicy(max_attempts=1))
def child(ctx: Context, input: What) -> str:
    if input.fails:
        raise ActionError("CHILD_FAILED", "no", retryable=False)
    return input.key


@action("test.swallows", permission="test.run", retry=RetryPolicy(max_attempts=1))
def swallows(ctx: Context, input: What) -> str:
    try:
        ctx.sleep(600)
    except BaseException:
        if input.key == "raise":
            raise ActionError("OTHER", "something else", retryable=False) from None
    return "done"


changed: list[str] = []


@action("test.changes", permission="test.run", retry=RetryPolicy(max_attempts=1))
def changes(ctx: Context, input: What) -> str:
    """Its code is another one in the second run: it does what ``key`` names instead of sleeping."""
    if not changed:
        changed.append(input.key)
        ctx.sleep(0.001)
        ctx.snooze(0)
    if input.key == "step":
        ctx.step("sleep", lambda: 1)
    elif input.key == "spawn":
        ctx.spawn("core.echo", {})
    elif input.key == "event":
        ctx.wait_event("shop.sold")
    elif input.key == "strangers":
        ctx.sleep(0.001)
        ctx.wait_children([ids.to_text("task", ids.new_id())])
    elif input.key == "options":
        ctx.sleep(0.001)
        ctx.spawn("core.echo", {}, colour="red")
    return "done"


@action("test.sync", permission="test.run", modes={"sync", "async"})
def in_a_request(ctx: Context, input: What) -> None:
    ctx.sleep(5)


PLUGIN = Plugin("waits", actions=[sleeps, listens, asks, snoozes, parent, child, swallows, changes, in_a_request])


@pytest.fixture(autouse=True)
def _waits():
    registry.register(PLUGIN)
    yield
    registry.unregister("waits")


def start(principal, type: str, **input: Any) -> Task:
    return Task.objects.get(id=submit(principal, TaskSpec(type=type, input=input)).task_id)


def after(delta: timedelta):
    later = clock.now() + delta
    return clock.using(lambda: later)


def state(task: Task) -> str:
    task.refresh_from_db()
    return task.status


def shop(principal, n: int, key: str = "", type: str = "shop.sold") -> Event:
    return events.emit(principal, type, data={"n": n}, key=key)


# -- sleep ------------------------------------------------------------------------------------------------------------


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


# -- children ---------------------------------------------------------------------------------------------------------


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


# -- approvals --------------------------------------------------------------------------------------------------------


def approval_of(task: Task) -> Approval:
    return Approval.objects.get(task=task)


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_a_decision_lets_the_work_go_on(principal, drain, verb):
    task = start(principal, "test.asks")
    drain()
    asked = approval_of(task)
    assert (asked.title, asked.details, asked.status) == ("Deploy?", {"version": 3}, "open")
    assert Job.objects.get().blocked_by["approval"] == asked.public_id
    getattr(approvals, verb)(principal, asked.id, "looks right")
    drain()
    said = {"approved": verb == "approve", "by": "system:test", "comment": "looks right"}
    assert (state(task), task.output) == ("completed", said)
    types = set(Event.objects.filter(resource_type="approval").values_list("type", flat=True))
    assert types == {"approval.requested", f"approval.{verb}d" if verb == "approve" else "approval.rejected"}
    with pytest.raises(Conflict, match="already, by system:test"):
        approvals.approve(principal, asked.id)


def test_of_two_decisions_at_once_one_wins(principal, drain):
    for _ in range(20):
        task = start(principal, "test.asks")
        drain()
        asked, results = approval_of(task), []
        barrier = threading.Barrier(2)

        def decide(verb: Any, asked: Approval = asked, results: list = results, barrier: Any = barrier) -> None:
            try:
                barrier.wait()
                results.append(verb(principal, asked.id).status)
            except Conflict:
                results.append("conflict")
            finally:
                connections.close_all()

        threads = [threading.Thread(target=decide, args=(verb,)) for verb in (approvals.approve, approvals.reject)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        drain()
        won = [result for result in results if result != "conflict"]
        assert len(won) == 1 and len(results) == 2
        asked.refresh_from_db()
        assert asked.status == won[0] and state(task) == "completed"
        assert task.output["approved"] == (won[0] == "approved")


def test_an_approval_expires_and_is_cancelled_with_its_task(principal, drain):
    task = start(principal, "test.asks")
    drain()
    tasks.cancel(principal, task.id)
    asked = approval_of(task)
    assert asked.status == "cancelled"
    with pytest.raises(Conflict, match="cancelled"):
        approvals.approve(principal, asked.id)
    task = start(principal, "test.asks")
    drain()
    with after(HOUR):
        with pytest.raises(Conflict, match="expired"):
            approvals.approve(principal, approval_of(task).id)
        assert check_due() >= 0
        assert approval_of(task).status == "expired"
        probe.tick()
        drain()
    assert (state(task), task.error["code"]) == ("failed", "WAIT_TIMEOUT")


def test_a_retry_by_hand_asks_again(principal, drain):
    task = start(principal, "test.asks")
    drain()
    with after(HOUR):
        while probe.tick():
            pass
        drain()
    assert state(task) == "failed"
    tasks.retry(principal, task.id)
    drain()
    assert state(task) == "waiting"
    assert sorted(Approval.objects.values_list("status", flat=True)) == ["expired", "open"]
    approvals.approve(principal, Approval.objects.get(status="open").id)
    drain()
    assert state(task) == "completed"


def test_a_job_that_was_given_up_leaves_no_open_approval(principal, loop, drain):
    task = start(principal, "test.asks")
    drain()
    Job.objects.update(status="failed", completed_at=clock.now(), blocked_by=None)
    with after(timedelta(minutes=2)):
        assert probe.tick()["waits"] == 1
    assert approval_of(task).status == "cancelled"


def test_an_admins_decision_cannot_be_made_by_an_operator(principal, drain):
    from dataclasses import replace

    from tasks_app.domain.errors import NotFound, PermissionDenied

    task = start(principal, "test.asks", key="admin")
    drain()
    asked = approval_of(task)
    for role in ("viewer", "operator"):
        with pytest.raises(PermissionDenied):
            approvals.approve(replace(principal, role=role), asked.id)
    with pytest.raises(NotFound):
        approvals.approve(replace(principal, organization_id=ids.new_id()), asked.id)
    assert approvals.approve(principal, asked.id).status == "approved"


def test_history_can_be_dropped_in_sets(principal, drain):
    task = start(principal, "test.asks")
    drain()
    tasks.cancel(principal, task.id)
    with connection.cursor() as cursor:
        cursor.execute("delete from job_steps")
        assert approval_of(task).step_id is None
        cursor.execute("delete from jobs")
        cursor.execute("delete from tasks")
    assert not Approval.objects.exists() and isinstance(task.id, UUID)
