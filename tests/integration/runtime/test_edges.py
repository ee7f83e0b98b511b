"""Edges of the hot path and of the verbs."""

import threading
import time
from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection, connections, transaction
from django.utils import timezone

from tasks_app.actions import registry
from tasks_app.domain import ids
from tasks_app.domain.errors import Conflict, InvalidInput
from tasks_app.domain.outcomes import Succeeded
from tasks_app.domain.principal import Actor
from tasks_app.models import Event, Execution, Job, Membership, Task
from tasks_app.runtime.keeper import Keeper
from tasks_app.runtime.slots import Signal
from tasks_app.sdk import ActionInput, Context, Plugin, RetryPolicy, action
from tasks_app.services import events, principals, tasks
from tasks_app.services.access import principal_of
from tasks_app.services.jobs import steps
from tasks_app.services.jobs.claim import claim
from tasks_app.services.jobs.finish import Finished, finish, finish_and_claim
from tasks_app.services.jobs.renew import renew
from tasks_app.services.tasks import TaskSpec, submit, submit_many

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "runtime"])
NOOP = TaskSpec(type="core.noop")


def test_f53_a_result_that_cannot_be_stored_holds_up_neither_its_group_nor_the_next_claim(principal, loop):
    submit_many(principal, [NOOP] * 3)
    good, bad = claim("default", loop.worker_id, 2, ["core.noop"])
    group = [
        Finished(one.attempt, loop.worker_id, Succeeded(output), time.monotonic(), 1.0)
        for one, output in ((good, "fine"), (bad, "nul \x00"))
    ]
    [following] = finish_and_claim(group, "default", loop.worker_id, 5, ["core.noop"])
    assert Job.objects.get(id=good.attempt.job_id).output == "fine"
    assert Job.objects.get(id=bad.attempt.job_id).error["code"] == "RESULT_NOT_STORABLE"
    assert Job.objects.get(id=following.attempt.job_id).status == "running"
    assert Execution.objects.count() == 3


def test_a_deep_tree_is_cancelled_whole_leaves_first(principal):
    made = [str(one.task_id) for one in submit_many(principal, [NOOP] * 1_200)]
    with connection.cursor() as cursor:
        cursor.execute(
            "update tasks set parent_task_id = c.parent from unnest(%s::uuid[], %s::uuid[]) as c(id, parent) "
            "where tasks.id = c.id",
            [made[1:], made[:-1]],
        )
    root = Task.objects.get(parent_task=None)
    assert tasks.cancel(principal, root.id).status == "cancelled"
    assert not Task.objects.exclude(status="cancelled").exists()


def test_a_finished_task_in_the_middle_hides_no_unfinished_child(principal, drain):
    top = submit(principal, NOOP.model_copy(update={"delay_s": 90.0}))
    middle = submit(principal, NOOP.model_copy(update={"parent_task": Task.objects.get(id=top.task_id).public_id}))
    drain()
    under = Task.objects.get(id=middle.task_id)
    leaf = submit(principal, NOOP.model_copy(update={"parent_task": under.public_id, "delay_s": 90.0}))
    tasks.cancel(principal, top.task_id)
    assert Task.objects.get(id=leaf.task_id).status == "cancelled"
    assert Task.objects.get(id=under.id).status == "completed"


@pytest.mark.parametrize(("superuser", "role"), [(True, "viewer"), (False, "operator"), (True, None)])
def test_the_worker_and_the_doors_agree_on_what_a_user_may_do(principal, superuser, role):
    user = get_user_model().objects.create_user("ann", is_superuser=superuser)
    if role:
        Membership.objects.create(user=user, organization_id=principal.organization_id, role=role)
    at_the_door = principal_of(user)
    in_the_worker = principals.of_actor(Actor("user", str(user.pk)), at_the_door.organization_id)
    assert in_the_worker.role == at_the_door.role


class Nothing(ActionInput):
    pass


@action("rude.interrupted", permission="test.run", retry=RetryPolicy(max_attempts=1))
def interrupted(ctx: Context, input: Nothing) -> None:
    """Leaves the bookkeeping's connection as a time limit does that strikes while progress is being written."""
    connections["runtime"].connection.pgconn.send_query(b"select 1")
    raise RuntimeError("struck")


def test_f41_a_limit_that_strikes_during_bookkeeping_costs_nobody_else_anything(principal, loop):
    registry.register(Plugin("rude", actions=[interrupted]))
    try:
        done = submit(principal, TaskSpec(type="rude.interrupted"))
        after = submit(principal, NOOP)
        assert loop.turn("default") == 2
        assert Task.objects.get(id=done.task_id).error["message"] == "struck"
        assert Task.objects.get(id=after.task_id).status == "completed"
    finally:
        registry.unregister("rude")


def test_a_cancel_of_a_big_tree_holds_no_lease_up(principal, loop):
    """Its jobs are locked a batch at a time, and renewal goes past what is locked."""
    busy, other = (submit(principal, NOOP) for _ in range(2))
    claimed = [claim("default", loop.worker_id, 1)[0].attempt for _ in range(2)]
    Job.objects.update(lease_expires_at=timezone.now())
    with transaction.atomic():
        Job.objects.select_for_update().get(id=busy.job_id)
        kept = renew(loop.worker_id, [one.execution_id for one in claimed], rss_mb=None, restarts=0)
        assert {one.execution_id for one in kept} == {one.execution_id for one in claimed}
        assert Job.objects.get(id=other.job_id).lease_expires_at > timezone.now() + timedelta(seconds=5)


def test_a_job_that_ends_while_it_is_renewed_stays_ended(principal, loop):
    """Renewal reads, then locks: what was ended in between must not get a lease again."""
    submit_many(principal, [NOOP] * 300)
    held = [claim("default", loop.worker_id, 1)[0].attempt for _ in range(300)]
    ended = threading.Event()

    def end_all() -> None:
        try:
            for one in held:
                finish([Finished(one, loop.worker_id, Succeeded("done"), time.monotonic(), 1.0)])
        finally:
            ended.set()
            connections["runtime"].close()

    thread = threading.Thread(target=end_all)
    thread.start()
    while not ended.is_set():
        renew(loop.worker_id, [one.execution_id for one in held], rss_mb=None, restarts=0)
    thread.join()
    assert Job.objects.filter(status="completed", lease_expires_at=None).count() == 300


def test_nothing_can_be_put_below_a_cancelled_task(principal):
    parent = Task.objects.get(id=submit(principal, NOOP.model_copy(update={"delay_s": 90.0})).task_id)
    tasks.cancel(principal, parent.id)
    with pytest.raises(Conflict, match="nothing can be put below it"):
        submit(principal, NOOP.model_copy(update={"parent_task": parent.public_id}))


@pytest.mark.parametrize("round", range(5))
def test_f49_a_cancel_while_children_are_spawned_leaves_none(principal, loop, round):
    submitted = submit(principal, NOOP)
    job = claim("default", loop.worker_id, 1)[0]
    parent = ids.to_text("task", submitted.task_id)
    child = NOOP.model_copy(update={"parent_task": parent, "delay_s": 90.0})
    refused, begun = [], threading.Event()

    def spawns() -> None:
        try:
            for ordinal in range(1, 200):
                steps.spawn(principal, job.attempt.job_id, ordinal, child, job.attempt.execution_id)
                if ordinal == 5 + 3 * round:
                    begun.set()
        except Conflict as error:
            refused.append(error)
        finally:
            begun.set()
            connection.close()

    thread = threading.Thread(target=spawns)
    thread.start()
    begun.wait(20)
    tasks.cancel(principal, submitted.task_id)
    thread.join(30)
    assert refused
    below = Task.objects.filter(parent_task_id=submitted.task_id)
    assert below.count() >= 5
    assert not below.exclude(status="cancelled").exists()


@pytest.mark.parametrize("data", [0, False, "", []])
def test_falsy_event_data_is_data(principal, data):
    assert Event.objects.get(id=events.emit(principal, "edge.happened", data=data).id).data == data


@pytest.mark.parametrize("type", ["edge.happened\n", "approval.approved", "queue.resumed"])
def test_an_event_type_that_is_none_or_the_platforms_own_is_refused(principal, type):
    with pytest.raises(InvalidInput):
        events.emit(principal, type)


def test_a_keeper_that_fails_goes_on_and_fences_itself_in_time(loop, monkeypatch):
    """Whatever fails: what it runs is asked to stop once its leases must have run out."""
    running = ids.new_id()
    loop.slots.hold(0, [running])
    loop.slots.run(0, 0, time.monotonic() + 60)
    keeper = Keeper(loop.worker_id, loop.slots, "host", ["default"], 1)
    monkeypatch.setattr(keeper, "_look", lambda: 1 / 0)
    keeper._look_safely()
    assert loop.slots.signalled(0, running) is None
    keeper._renewed_at = time.monotonic() - settings.DEVOS.lease_s - 1
    keeper._look_safely()
    assert loop.slots.signalled(0, running) is Signal.CANCEL
