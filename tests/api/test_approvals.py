"""Approvals and events from outside, over REST."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tasks_app.models import Approval, AuditEntry, Event, JobStep, Organization
from tests.api.client import Api, refused
from tests.api.rows import make_task

pytestmark = pytest.mark.django_db


def ask(organization: Organization, **more: Any) -> Approval:
    """An approval that a parked job waits for."""
    task = make_task(organization, status="waiting")
    job = task.jobs.get()
    soon = timezone.now() + timedelta(hours=1)
    step = JobStep.objects.create(
        job=job, ordinal=1, kind="approval", name="Deploy?", state="open", deadline_at=soon, check_at=soon
    )
    values = {"title": "Deploy?", "details": {"version": 3}, "expires_at": soon, **more}
    return Approval.objects.create(organization=organization, task=task, job=job, step=step, **values)


def test_list_read_and_decide(organization: Organization, operator: Api, viewer: Api) -> None:
    asked = ask(organization)
    listed = viewer.get("approvals?status=open").json()["results"]
    assert [row["id"] for row in listed] == [asked.public_id]
    assert listed[0]["details"] == {"version": 3} and listed[0]["status"] == "open"
    assert viewer.get(f"approvals?task={asked.task.public_id}&status=approved").json()["results"] == []
    assert viewer.get(f"approvals/{asked.public_id}").json()["title"] == "Deploy?"
    refused(viewer.post(f"approvals/{asked.public_id}/approve"), 403, "PERMISSION_DENIED")
    done = operator.post(f"approvals/{asked.public_id}/approve", {"comment": "looks right"})
    assert done.status_code == 200
    assert (done.json()["status"], done.json()["comment"]) == ("approved", "looks right")
    assert done.json()["decided_by"].startswith("api_key:")
    refused(operator.post(f"approvals/{asked.public_id}/reject"), 409, "CONFLICT")
    entry = AuditEntry.objects.get(verb="approval.approve")
    assert (entry.object_id, entry.reason) == (asked.public_id, "looks right")
    assert JobStep.objects.get().output["approved"] is True


def test_the_role_of_an_approval_holds(organization: Organization, operator: Api, admin: Api) -> None:
    asked = ask(organization, role="admin")
    refused(operator.post(f"approvals/{asked.public_id}/approve"), 403, "PERMISSION_DENIED")
    assert admin.post(f"approvals/{asked.public_id}/reject").json()["status"] == "rejected"


def test_the_permission_of_an_approval_holds(organization: Organization, caller: Any) -> None:
    asked = ask(organization, permission="deploy.approve")
    narrow = caller("operator", scopes=["approvals.*"])
    refused(narrow.post(f"approvals/{asked.public_id}/approve"), 403, "PERMISSION_DENIED")
    wide = caller("operator", scopes=["approvals.read", "deploy.*"])
    assert wide.post(f"approvals/{asked.public_id}/approve").status_code == 200


def test_nobody_sees_or_decides_what_belongs_to_others(organization: Organization, stranger: Api) -> None:
    asked = ask(organization)
    assert stranger.get("approvals").json()["results"] == []
    for answer in (
        stranger.get(f"approvals/{asked.public_id}"),
        stranger.post(f"approvals/{asked.public_id}/approve"),
        stranger.post(f"approvals/{asked.public_id}/reject"),
        stranger.get(f"approvals?task={asked.task.public_id}"),
    ):
        refused(answer, 404, "NOT_FOUND")
    asked.refresh_from_db()
    assert asked.status == "open"


@pytest.mark.parametrize(
    "body", [{"comment": 5}, {"comment": "x" * 501}, {"comment": "a\x00"}, {"why": "x"}, {"comment": None}]
)
def test_a_bad_decision_names_the_field(organization: Organization, operator: Api, body: Any) -> None:
    asked = ask(organization)
    refused(operator.post(f"approvals/{asked.public_id}/approve", body), 400, "INVALID_INPUT")


def test_the_list_is_a_handful_of_statements(
    organization: Organization, viewer: Api, django_assert_max_num_queries: Any
) -> None:
    for _ in range(20):
        ask(organization)
    with django_assert_max_num_queries(6):
        page = viewer.get("approvals?limit=10").json()
    assert len(page["results"]) == 10
    assert len(viewer.get(f"approvals?limit=50&cursor={page['next']}").json()["results"]) == 10


def test_an_event_from_outside(operator: Api, viewer: Api) -> None:
    body = {"type": "shop.sold", "data": {"n": 1}, "resource": {"type": "shop.order", "id": "7"}, "key": "7"}
    made = operator.post("events", body)
    assert made.status_code == 201 and made.json()["key"] == "7"
    assert made.headers["Location"] == f"/api/events/{made.json()['id']}"
    assert viewer.get(f"events/{made.json()['id']}").json()["data"] == {"n": 1}
    assert Event.objects.get(type="shop.sold").correlation_id
    refused(viewer.post("events", body), 403, "PERMISSION_DENIED")


@pytest.mark.parametrize(
    "change",
    [{"type": "Shop"}, {"type": "task.completed"}, {"type": ""}, {"key": "k" * 301}, {"key": 7}, {"more": 1}],
)
def test_a_bad_event_is_refused(operator: Api, change: Any) -> None:
    refused(operator.post("events", {"type": "shop.sold", **change}), 400, "INVALID_INPUT")


def test_an_event_ends_the_wait_that_it_fits(organization: Organization, operator: Api) -> None:
    job = make_task(organization, status="waiting").jobs.get()
    soon = timezone.now() + timedelta(hours=1)
    fits = {"job": job, "kind": "event", "name": "shop.*", "state": "open", "deadline_at": soon, "check_at": soon}
    mine = {**fits, "organization_id": organization.id, "pattern": "shop.*"}
    JobStep.objects.create(ordinal=1, key="7", **mine)
    JobStep.objects.create(ordinal=2, key="8", **mine)
    event = operator.post("events", {"type": "shop.sold", "key": "7"}).json()
    assert list(JobStep.objects.order_by("ordinal").values_list("state", flat=True)) == ["done", "open"]
    assert JobStep.objects.get(ordinal=1).output["type"] == event["type"]
