"""Claim, run, finish: order, guards, outcomes, and that broken results lose nothing."""

import time

import pytest
from django.db import connection

from tasks_app.domain.outcomes import Succeeded
from tasks_app.models import DeadLetterJob, Event, Execution, ExecutionLog, Job, Organization, Queue, Task, TaskLog
from tasks_app.services import jobs, queues, sql, tasks
from tasks_app.services.jobs.claim import claim
from tasks_app.services.jobs.finish import Finished, finish, finish_and_claim
from tasks_app.services.jobs.ready import ready_due
from tasks_app.services.jobs.rescue import rescue_expired
from tasks_app.services.tasks import TaskSpec, submit, submit_many

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "runtime"])


def echo(value=1, **more):
    return TaskSpec(type="core.echo", input={"value": value}, **more)


def finished(job, loop, outcome=None):
    return Finished(job.attempt, loop.worker_id, outcome or Succeeded({"ok": True}), time.monotonic(), 1.0)


def test_a_job_goes_all_the_way(principal, drain):
    done = submit(principal, TaskSpec(type="test.talk", input={"what": "x"}))
    drain()
    task, job = Task.objects.get(id=done.task_id), Job.objects.get(id=done.job_id)
    execution = Execution.objects.get(job=job)
    assert (task.status, job.status, execution.status) == ("completed", "completed", "completed")
    assert task.output["ids"] == [task.public_id, job.public_id, execution.public_id]
    assert task.output["text"] == "a\ufffdb \ufffd"
    assert execution.duration_ms > 0 and execution.started_at <= execution.completed_at
    assert execution.action_version == 1 and job.attempt == 1
    assert execution.progress["percentage"] == 75.0 == job.progress["percentage"]
    [line] = ExecutionLog.objects.filter(execution_id=execution.id)
    assert (line.message, line.metadata) == ("hello \ufffd", {"number": 1, "odd": "nan"})
    types = list(Event.objects.filter(task_id=task.id).order_by("sequence").values_list("type", flat=True))
    assert types == [
        "task.created",
        "job.queued",
        "execution.started",
        "job.started",
        "task.started",
        "test.talked",
        "execution.completed",
        "job.completed",
        "task.completed",
    ]
    causes = set(Event.objects.filter(execution_id=execution.id).values_list("causation_id", flat=True))
    assert causes == {task.id, execution.id}


def test_priority_first_then_age(principal, loop):
    order = [submit(principal, echo(priority=p)).job_id for p in (0, 5, 0, -100, 100, 5)]
    claimed = [one.attempt.job_id for one in claim("default", loop.worker_id, 10, ["core.echo"])]
    assert claimed == [order[i] for i in (4, 1, 5, 0, 2, 3)]


def test_only_light_actions_are_claimed_in_batches(principal, loop):
    submit_many(principal, [echo(), echo(), TaskSpec(type="core.sleep", input={"seconds": 0}), echo()])
    assert len(claim("default", loop.worker_id, 10, [])) == 1
    assert [one.attempt.action_id for one in claim("default", loop.worker_id, 10, ["core.echo"])] == ["core.echo"]
    assert [one.attempt.action_id for one in claim("default", loop.worker_id, 10, ["core.echo"])] == ["core.sleep"]


def test_two_workers_never_get_the_same_job(principal, loop):
    submit_many(principal, [echo()] * 20)
    first = claim("default", loop.worker_id, 10, ["core.echo"])
    second = claim("default", loop.worker_id, 10, ["core.echo"])
    assert len({one.attempt.job_id for one in first + second}) == 20


def test_claim_and_finish_are_one_statement_a_batch(principal, loop, monkeypatch):
    sent = []

    class Counted(sql.RawCursor):
        def execute(self, query, *args, **options):
            sent.append(query)
            return super().execute(query, *args, **options)

    monkeypatch.setattr(sql, "RawCursor", Counted)
    submit_many(principal, [echo()] * 100)
    first = claim("default", loop.worker_id, 50, ["core.echo"])
    assert (len(first), len(sent)) == (50, 1)
    group = [finished(one, loop) for one in first]
    second = finish_and_claim(group, "default", loop.worker_id, 50, ["core.echo"])
    assert (len(second), len(sent)) == (50, 2)
    assert len(finish([finished(one, loop) for one in second])) == 50
    assert len(sent) == 3
    assert Task.objects.filter(status="completed").count() == 100


def test_a_late_result_is_refused(principal, loop):
    submit(principal, echo())
    [job] = claim("default", loop.worker_id, 1)
    assert finish([finished(job, loop)]) == {job.attempt.execution_id}
    assert finish([finished(job, loop, Succeeded("other"))]) == set()
    assert Task.objects.get().output == {"ok": True}


def test_a_fenced_worker_cannot_overwrite_the_next_attempt(principal, loop):
    submit(principal, echo())
    [old] = claim("default", loop.worker_id, 1)
    Job.objects.update(lease_expires_at="2020-01-01T00:00:00Z")
    assert rescue_expired(0) == 1
    [new] = claim("default", loop.worker_id, 1)
    assert finish([finished(old, loop, Succeeded("old"))]) == set()
    assert finish([finished(new, loop, Succeeded("new"))]) == {new.attempt.execution_id}
    assert Task.objects.get().output == "new"
    assert list(Execution.objects.order_by("attempt").values_list("status", "interrupted")) == [
        ("lost", True),
        ("completed", False),
    ]


def test_f35_one_dead_attempt_is_rescued_once(principal, loop):
    submit(principal, echo())
    claim("default", loop.worker_id, 1)
    Job.objects.update(lease_expires_at="2020-01-01T00:00:00Z")
    assert [rescue_expired(0) for _ in range(5)] == [1, 0, 0, 0, 0]
    job = Job.objects.get()
    assert (job.status, job.attempt, job.uncounted, job.interruptions) == ("queued", 1, 1, 1)
    assert Event.objects.filter(type="execution.lost").count() == 1


def test_f28_a_job_that_always_kills_its_worker_becomes_a_dead_letter(principal, loop):
    submit(principal, echo())
    for _ in range(6):
        assert len(claim("default", loop.worker_id, 1)) == 1
        Job.objects.update(lease_expires_at="2020-01-01T00:00:00Z")
        rescue_expired(0)
    job = Job.objects.get()
    assert (job.status, job.error["code"]) == ("failed", "WORKER_LOST")
    assert DeadLetterJob.objects.get().status == "open"
    assert Execution.objects.count() == 6


def test_a_wide_awake_lease_is_not_rescued(principal, loop):
    submit(principal, echo())
    claim("default", loop.worker_id, 1)
    assert rescue_expired(0) == 0
    Job.objects.update(lease_expires_at="2020-01-01T00:00:00Z")
    assert rescue_expired(10**8) == 0, "a database that has just started must wait for living workers first"


def test_failures_are_retried_and_then_dead_letters(principal, drain):
    fail = TaskSpec(type="core.fail", input={"times": 99, "code": "NETWORK_TIMEOUT"}, max_attempts=2)
    done = submit(principal, fail)
    drain()
    assert Job.objects.get().blocked_by == {"reason": "retry", "code": "NETWORK_TIMEOUT", "attempt": 1, "of": 2}
    Job.objects.update(available_at="2020-01-01T00:00:00Z")
    assert ready_due() == 1
    drain()
    task, job = Task.objects.get(id=done.task_id), Job.objects.get()
    assert job.counted_attempts == 2 and task.error["code"] == "NETWORK_TIMEOUT"
    letter = DeadLetterJob.objects.get()
    assert letter.job_id == job.id and letter.error["code"] == "NETWORK_TIMEOUT" and len(letter.fingerprint) == 64
    assert Execution.objects.filter(status="failed").count() == 2
    assert TaskLog.objects.filter(task=task).count() == 2
    assert Event.objects.filter(type="job.dead_lettered").count() == 1
    tasks.retry(principal, task.id, "try again")
    job.refresh_from_db()
    assert (job.status, job.counted_attempts) == ("queued", 0)
    letter.refresh_from_db()
    assert (letter.status, letter.reason) == ("retried", "try again")


@pytest.mark.parametrize("what", ["memory", "exit", "interrupt", "recursion", "generator"])
def test_f29_whatever_an_action_raises_is_a_failed_attempt(principal, drain, what):
    submit(principal, TaskSpec(type="test.raise", input={"what": what}, max_attempts=1))
    submit(principal, echo())
    drain()
    assert sorted(Task.objects.values_list("type", "status")) == [("core.echo", "completed"), ("test.raise", "failed")]
    assert Execution.objects.filter(status="failed").get().error["traceback"]


def test_f53_text_that_postgres_refuses_is_replaced_not_lost(principal, drain):
    submit(principal, TaskSpec(type="test.raise", input={"what": "text"}))
    drain()
    assert Task.objects.get().error["message"] == "nul \ufffd and surrogate \ufffd in text"


def test_f59_an_oversized_result_fails_once_and_names_the_limit(principal, drain):
    submit(principal, TaskSpec(type="test.big"))
    drain()
    task = Task.objects.get()
    assert task.error["code"] == "PAYLOAD_TOO_LARGE" and "limit is 4000000" in task.error["message"]
    assert Execution.objects.count() == 1


@pytest.mark.parametrize("what", ["open", "settings", "error"])
def test_f52_a_session_an_action_broke_does_not_reach_the_next(principal, drain, what):
    submit(principal, TaskSpec(type="test.break_database", input={"what": what}))
    drain()
    submit(principal, echo())
    drain()
    broken, after = Task.objects.order_by("id")
    assert after.status == "completed"
    assert broken.status == ("failed" if what == "error" else "completed")
    assert not Organization.objects.filter(slug="left-open").exists()
    with connection.cursor() as cursor:
        cursor.execute("show statement_timeout")
        assert cursor.fetchone() == ("0",)


def test_an_action_nobody_knows_is_tried_again_later(principal, loop):
    submit(principal, echo())
    Job.objects.update(action_id="gone.away")
    loop.turn("default")
    job = Job.objects.get()
    assert (job.status, job.error["code"]) == ("retrying", "ACTION_NOT_REGISTERED")


def test_permission_is_asked_again_when_the_job_runs(principal, loop):
    done = submit(principal, echo())
    Task.objects.filter(id=done.task_id).update(created_by_type="user", created_by_id="424242")
    loop.turn("default")
    assert Task.objects.get().error["code"] == "PERMISSION_DENIED"


def test_a_paused_queue_hands_out_nothing(principal, loop, drain):
    submit(principal, echo())
    queues.pause(principal, "default", "deploy")
    assert claim("default", loop.worker_id, 5) == []
    queue = Queue.objects.get(name="default")
    assert (queue.pause_reason, queue.paused_by) == ("deploy", "system:test")
    queues.resume(principal, "default")
    drain()
    assert Task.objects.get().status == "completed"


def test_waiting_work_is_cancelled_at_once_with_its_children(principal):
    parent = submit(principal, echo())
    parent_id = Task.objects.get(id=parent.task_id).public_id
    child = submit(principal, echo(parent_task=parent_id, delay_s=50.0))
    task = tasks.cancel(principal, parent.task_id, "not needed")
    assert task.status == "cancelled" and task.cancel_reason == "not needed"
    assert Task.objects.get(id=child.task_id).status == "cancelled"
    assert set(Job.objects.values_list("status", flat=True)) == {"cancelled"}
    assert Job.objects.first().error["code"] == "CANCELLED"


def test_a_running_job_is_asked_and_its_failure_becomes_a_cancellation(principal, loop):
    from tasks_app.domain.outcomes import ErrorInfo, Failed
    from tasks_app.domain.retry import RetryPolicy

    done = submit(principal, echo())
    [job] = claim("default", loop.worker_id, 1)
    assert tasks.cancel(principal, done.task_id).status == "running"
    assert Job.objects.get().cancel_requested_at is not None
    finish([finished(job, loop, Failed(ErrorInfo("NETWORK_TIMEOUT", "m"), RetryPolicy()))])
    assert (Job.objects.get().status, Task.objects.get().status) == ("cancelled", "cancelled")


def test_verbs_refuse_what_makes_no_sense(principal, drain):
    from tasks_app.domain.errors import Conflict, NotFound
    from tasks_app.domain.ids import new_id

    done = submit(principal, echo())
    with pytest.raises(Conflict):
        tasks.retry(principal, done.task_id)
    drain()
    for verb in (tasks.cancel, tasks.retry):
        with pytest.raises(Conflict):
            verb(principal, done.task_id)
    with pytest.raises(Conflict):
        tasks.reprioritise(principal, done.task_id, 5)
    with pytest.raises(Conflict):
        jobs.cancel(principal, done.job_id)
    with pytest.raises(NotFound):
        tasks.cancel(principal, new_id())


def test_a_replay_is_a_new_task_that_remembers(principal, drain):
    done = submit(principal, echo(5, priority=3))
    drain()
    again = tasks.replay(principal, done.task_id, input={"value": 6})
    task = Task.objects.get(id=again.task_id)
    assert (task.replay_of_id, task.priority, task.input) == (done.task_id, 3, {"value": 6})


def test_sealed_rows_and_the_audit_cannot_be_changed(principal, drain):
    from django.db import IntegrityError

    from tasks_app.models import AuditEntry

    submit(principal, echo())
    drain()
    for change in (
        lambda: Execution.objects.update(output={"forged": True}),
        lambda: Event.objects.update(type="forged.event"),
        lambda: AuditEntry.objects.update(verb="forged"),
        lambda: AuditEntry.objects.all().delete(),
    ):
        with pytest.raises(IntegrityError, match="written once"):
            change()
