"""Work waits for a decision; the first one counts."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, connections

from tasks_app.domain import clock, ids
from tasks_app.domain.errors import Conflict
from tasks_app.maintenance import probe
from tasks_app.models import Approval, Event, Job
from tasks_app.services import approvals, tasks
from tasks_app.services.waits.check import check_due
from tests.integration.runtime.waiting import (
    HOUR,
    after,
    approval_of,
    start,
    state,
)

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "runtime"])


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
