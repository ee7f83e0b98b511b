"""Why a task is not running: every case a test can make, and each says who can clear it."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tasks_app.domain import clock, ids
from tasks_app.domain.principal import Actor, Principal
from tasks_app.models import Job, Lease, Organization, Queue, Task, Worker
from tasks_app.queries.explain import explain
from tasks_app.queries.explain.waits import WAITS
from tasks_app.services import audit, queues, tasks, workers
from tasks_app.services.jobs.claim import claim
from tasks_app.services.tasks import TaskSpec, submit
from tests.api.rows import make_task

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "runtime"])
NOOP = TaskSpec(type="core.noop")
STATEMENTS_MAX = 12


def worker(*names: str, processes: int = 2) -> UUID:
    made = ids.new_id()
    workers.register(made, "host", 7, list(names), processes)
    return made


@pytest.fixture
def alive():
    """Workers as `devos up` starts them."""
    worker("system", processes=1)
    return worker("default", "high", "low")


@pytest.fixture
def ask(principal):
    """``ask(task_id)``: the explanation; its statements are bounded."""

    def asked(task_id):
        with CaptureQueriesContext(connection) as said:
            found = explain(principal, task_id)
        assert len(said) <= STATEMENTS_MAX
        assert found.reasons
        for reason in found.reasons:
            assert reason.message.endswith((".", "?")) and reason.code.isupper()
            assert not reason.how or reason.cleared_by
        return found

    return asked


def codes(found) -> list[str]:
    return [reason.code for reason in found.reasons]


def block(task, reason: str, **more) -> Job:
    """The job of a task waits for something, as a claim that found it taken would have left it."""
    values = {"status": "pending", "available_at": clock.now() + timedelta(seconds=30), **more.pop("columns", {})}
    Job.objects.filter(task_id=task.task_id).update(blocked_by={"reason": reason, **more}, **values)
    Task.objects.filter(id=task.task_id).update(status="waiting")
    return Job.objects.get(task_id=task.task_id)


def test_a_bell_is_on_its_way(principal, alive, ask):
    done = submit(principal, NOOP)
    found = ask(done.task_id)
    assert codes(found) == ["BELL"] and not found.running
    assert found.reasons[0].since == Job.objects.get().available_at


def test_no_sweeps_to_ring_again(principal, ask):
    worker("default")
    assert codes(ask(submit(principal, NOOP).task_id)) == ["NO_SYSTEM_WORKER"]


def test_no_living_worker_on_the_queue(principal, alive, ask):
    done = submit(principal, NOOP.model_copy(update={"queue": "agent"}))
    [reason] = ask(done.task_id).reasons
    assert (reason.code, reason.holder.id, reason.since) == ("NO_WORKER", "agent", None)
    gone = worker("agent")
    Worker.objects.filter(id=gone).update(last_seen_at=clock.now() - timedelta(minutes=5))
    [reason] = ask(done.task_id).reasons
    assert reason.code == "NO_WORKER" and reason.since == Worker.objects.get(id=gone).last_seen_at
    Worker.objects.filter(id=gone).update(last_seen_at=clock.now(), stopped_at=clock.now())
    assert codes(ask(done.task_id)) == ["NO_WORKER"]


def test_every_worker_is_busy(principal, alive, ask):
    for _ in range(2):
        submit(principal, NOOP)
    assert len(claim("default", alive, 2, ["core.noop"])) == 2
    submit(principal, NOOP.model_copy(update={"priority": 5}))
    submit(principal, NOOP)
    done = submit(principal, NOOP)
    [reason] = ask(done.task_id).reasons
    assert reason.code == "WORKERS_BUSY"
    assert "All 2 processes" in reason.message and " 2 jobs come before" in reason.message
    worker("default")
    assert codes(ask(done.task_id)) == ["BELL"]


def test_a_paused_queue_says_who_and_why_and_until(principal, alive, ask):
    done = submit(principal, NOOP)
    until = clock.now() + timedelta(minutes=5)
    queues.pause(principal, "default", "the bank is closed", until=until)
    [reason] = ask(done.task_id).reasons
    assert (reason.code, reason.until, reason.since) == (
        "QUEUE_PAUSED",
        until,
        Queue.objects.get(name="default").paused_at,
    )
    assert "system test: the bank is closed" in reason.message
    assert reason.how == "`devos queue resume default`." and reason.cleared_by == "an operator"


def test_time_then_what_comes_after_it(principal, alive, ask):
    done = submit(principal, NOOP.model_copy(update={"delay_s": 600.0, "queue": "low"}))
    [reason] = ask(done.task_id).reasons
    assert (reason.code, reason.until) == ("TIME", Job.objects.get().available_at)
    queues.pause(principal, "low", "x")
    assert codes(ask(done.task_id)) == ["TIME", "QUEUE_PAUSED"]
    later = clock.now() + timedelta(minutes=11)
    Worker.objects.update(last_seen_at=later)
    with clock.using(lambda: later):
        assert codes(ask(done.task_id)) == ["DUE", "QUEUE_PAUSED"]
        Worker.objects.filter(queues=["system"]).update(stopped_at=later)
        assert codes(ask(done.task_id)) == ["NO_SYSTEM_WORKER", "QUEUE_PAUSED"]


def test_a_retry_says_what_went_wrong(principal, loop, ask):
    from tasks_app.actions import registry
    from tasks_app.sdk import ActionError, ActionInput, Context, Plugin, RetryPolicy, action

    class Nothing(ActionInput):
        pass

    @action("explain.fails", permission="test.run", retry=RetryPolicy(max_attempts=3, delay_ms=60_000, jitter=False))
    def fails(ctx: Context, input: Nothing) -> None:
        raise ActionError("PRINTER_BUSY", "The printer is busy", retryable=True)

    registry.register(Plugin("explain", actions=[fails]))
    try:
        done = submit(principal, TaskSpec(type="explain.fails"))
        loop.turn("default")
        [reason] = ask(done.task_id).reasons
        assert reason.code == "RETRY" and reason.until == Job.objects.get().available_at
        assert "Attempt 1 of 3 failed with PRINTER_BUSY (The printer is busy)" in reason.message
        assert reason.since and reason.since < reason.until
    finally:
        registry.unregister("explain")


def test_a_running_task_says_where_and_how_far(principal, alive, ask):
    done = submit(principal, NOOP)
    claim("default", alive, 1)
    Job.objects.update(progress={"percentage": 40.0, "phase": "pages", "message": "x"})
    found = ask(done.task_id)
    [reason] = found.reasons
    assert found.running and reason.code == "RUNNING"
    assert reason.holder.id == ids.to_text("worker", alive) and "host (pid 7)" in reason.message
    assert "pages, 40 %, x" in reason.message
    assert reason.until == Job.objects.get().lease_expires_at
    tasks.cancel(principal, done.task_id, "enough")
    found = ask(done.task_id)
    assert codes(found) == ["RUNNING", "CANCELLING"]
    assert "system test asked to cancel it: enough" in found.reasons[1].message
    Job.objects.update(lease_expires_at=clock.now() - timedelta(seconds=1))
    assert codes(ask(done.task_id))[0] == "LEASE_EXPIRED"


def test_a_lock_names_its_holder(principal, alive, ask):
    first = submit(principal, NOOP)
    [held] = claim("default", alive, 1)
    taken = Lease.objects.create(
        key="site:7", slot=0, execution_id=held.attempt.execution_id, job_id=first.job_id, expires_at=clock.now()
    )
    second = submit(principal, NOOP)
    block(second, "lock", key="site:7")
    [reason] = ask(second.task_id).reasons
    assert (reason.code, reason.holder.id) == ("LOCK", ids.to_text("job", first.job_id))
    assert (reason.since, reason.until) == (taken.taken_at, taken.expires_at)
    assert reason.how.endswith(f"`devos job cancel {reason.holder.id}` ends it now.")
    block(second, "slot", columns={"concurrency_key": "site:7"})
    assert codes(ask(second.task_id)) == ["SLOT"]
    Lease.objects.all().delete()
    [reason] = ask(second.task_id).reasons
    assert "nobody holds any more" in reason.message


def test_a_holder_of_another_organisation_stays_unnamed(principal, alive, ask):
    stranger = Organization.objects.create(slug="other", name="Other")
    theirs = make_task(stranger, status="running")
    job = theirs.jobs.get()
    Lease.objects.create(key="k", slot=0, execution_id=ids.new_id(), job_id=job.id, expires_at=clock.now())
    mine = submit(principal, NOOP)
    block(mine, "lock", key="k")
    [reason] = ask(mine.task_id).reasons
    assert reason.holder.type == "lease" and job.public_id not in str(reason)


def test_what_comes_after_another_job(principal, alive, ask):
    first, second = submit(principal, NOOP), submit(principal, NOOP)
    block(second, "dependency", columns={"after": [first.job_id]})
    [reason] = ask(second.task_id).reasons
    assert (reason.code, reason.holder.id) == ("DEPENDENCY", ids.to_text("job", first.job_id))
    assert "core.noop, which is queued" in reason.message
    tasks.cancel(principal, first.task_id)
    [reason] = ask(second.task_id).reasons
    assert reason.code == "DEPENDENCY" and "has ended" in reason.message


def test_children_are_named(principal, alive, ask):
    parent = submit(principal, NOOP)
    public = Task.objects.get(id=parent.task_id).public_id
    block(parent, "children")
    children = [submit(principal, NOOP.model_copy(update={"parent_task": public})) for _ in range(7)]
    found = ask(parent.task_id)
    assert codes(found) == ["CHILDREN"] * 5 and found.reasons[-1].message.endswith("There are more.")
    assert found.reasons[0].holder.id == ids.to_text("task", children[0].task_id)
    for child in children:
        tasks.cancel(principal, child.task_id)
    assert "have ended" in ask(parent.task_id).reasons[0].message


@pytest.mark.parametrize(
    ("reason", "more", "code", "words"),
    [
        ("rate", {"rate": "30/m"}, "RATE", "30/m"),
        ("event", {"event": "invoice.paid"}, "EVENT", "invoice.paid"),
        ("approval", {"title": "Pay 3 EUR?"}, "APPROVAL", "Pay 3 EUR?"),
        ("handed_back", {}, "HANDED_BACK", "costs no attempt"),
        ("interrupted", {}, "INTERRUPTED", "died"),
        ("ticket", {}, "WAITING", "ticket"),
        ("paused", {}, "PAUSED", "paused"),
    ],
)
def test_other_waits_say_what_they_know(principal, alive, ask, reason, more, code, words):
    done = submit(principal, NOOP)
    since, until = clock.now() - timedelta(hours=1), clock.now() + timedelta(hours=1)
    block(done, reason, since=since.isoformat(), until=until.isoformat(), **more)
    [found] = ask(done.task_id).reasons
    assert found.code == code and words in found.message
    if reason in ("rate", "event", "approval", "ticket", "paused"):
        assert found.until == until


NONSENSE = {"until": "soon", "since": 3, "key": 5, "code": None, "event": ["x"], "title": {}, "rate": 0}


@pytest.mark.parametrize("rest", [{}, NONSENSE])
def test_whatever_a_job_says_it_is_explained(principal, alive, ask, rest):
    done = submit(principal, NOOP)
    for reason in [*WAITS, "", "never heard of", 7, None, ["lock"], {"a": 1}]:
        Job.objects.update(status="pending", blocked_by={"reason": reason, **rest})
        ask(done.task_id)
    Job.objects.update(blocked_by=["nonsense"])
    ask(done.task_id)


def test_a_paused_task_and_its_paused_ancestors_from_the_top(principal, alive, ask):
    top = submit(principal, NOOP.model_copy(update={"name": "Top"}))
    public = Task.objects.get(id=top.task_id).public_id
    middle = submit(principal, NOOP.model_copy(update={"parent_task": public}))
    leaf = submit(
        principal,
        NOOP.model_copy(update={"parent_task": Task.objects.get(id=middle.task_id).public_id, "delay_s": 9.0}),
    )
    at = clock.now()
    Task.objects.exclude(id=middle.task_id).update(status="paused", paused_at=at)
    Job.objects.filter(task_id=leaf.task_id).update(blocked_by={"reason": "paused"})
    audit.record(principal, "task.pause", "task", public, reason="the site is down")
    first, second = ask(leaf.task_id).reasons
    assert (first.code, first.holder.id, first.since) == ("ANCESTOR_PAUSED", public, at)
    assert "Top, which it is part of, is paused by system test: the site is down" in first.message
    assert first.how == f"`devos task resume {public}`."
    assert second.code == "PAUSED"


def test_how_a_task_ended(principal, drain, ask):
    completed = submit(principal, NOOP)
    failed = submit(principal, TaskSpec(type="test.raise", input={"what": "x"}))
    cancelled = submit(principal, NOOP.model_copy(update={"delay_s": 60.0}))
    tasks.cancel(principal, cancelled.task_id, "not needed")
    drain()
    assert codes(ask(completed.task_id)) == ["COMPLETED"]
    found = ask(failed.task_id)
    assert codes(found) == ["FAILED", "DEAD_LETTER"]
    assert "TEST_FAILED" in found.reasons[0].message and found.reasons[1].holder.type == "dead_letter"
    [reason] = ask(cancelled.task_id).reasons
    assert (reason.code, reason.message) == ("CANCELLED", "It was cancelled by system test: not needed.")


def test_a_draft_and_a_task_that_is_not_settled(principal, alive, ask):
    done = submit(principal, NOOP)
    Task.objects.update(status="draft")
    assert codes(ask(done.task_id))[0] == "DRAFT"
    Task.objects.update(status="running")
    Job.objects.update(status="completed", completed_at=clock.now())
    assert codes(ask(done.task_id)) == ["SETTLING"]


def test_an_action_that_nobody_brings(principal, alive, ask):
    done = submit(principal, NOOP)
    Job.objects.update(action_id="gone.action")
    [reason] = ask(done.task_id).reasons
    assert (reason.code, reason.holder.id) == ("ACTION_NOT_INSTALLED", "gone.action")


def test_several_jobs_what_runs_comes_first(principal, alive, ask):
    done = submit(principal, NOOP)
    first = Job.objects.get()
    second = Job.objects.get()
    second.pk, second.status = ids.new_id(), "pending"
    second.blocked_by, second.after = {"reason": "dependency"}, [first.id]
    second.available_at = clock.now() + timedelta(hours=1)
    second.save(force_insert=True)
    claim("default", alive, 1)
    found = ask(done.task_id)
    assert [(reason.code, reason.job_id) for reason in found.reasons] == [
        ("RUNNING", first.id),
        ("DEPENDENCY", second.id),
    ]


def test_nobody_else_may_ask(principal, alive):
    from tasks_app.domain.errors import NotFound

    done = submit(principal, NOOP)
    stranger = Organization.objects.create(slug="other", name="Other")
    with pytest.raises(NotFound):
        explain(Principal(Actor("system", "x"), stranger.id, "admin"), done.task_id)
