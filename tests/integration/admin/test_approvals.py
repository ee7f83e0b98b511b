"""The inbox: how many wait, a comment with the decision, one decision, and nothing for those who may not."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.admin import helpers
from django.test import Client

from tasks_app.models import Approval, AuditEntry, Organization
from tests.api.test_approvals import ask


def address(asked: Approval, verb: str) -> str:
    return f"/admin/tasks_app/approval/{asked.pk}/do/{verb}/"


def test_the_inbox_shows_what_is_open_and_the_badge_counts(
    organization: Organization, desk: Callable[..., Client]
) -> None:
    asked = ask(organization, title="Deploy <b>3</b>?")
    client = desk("operator")
    listed = client.get("/admin/tasks_app/approval/?status=open").text
    assert "Deploy &lt;b&gt;3&lt;/b&gt;?" in listed and asked.public_id[-8:] in listed
    assert "Approvals" in client.get("/admin/").text
    shown = client.get(f"/admin/tasks_app/approval/{asked.pk}/change/").text
    assert address(asked, "approve") in shown and address(asked, "reject") in shown and "version" in shown


def test_a_decision_takes_a_comment_and_is_made_once(organization: Organization, desk: Callable[..., Client]) -> None:
    asked = ask(organization)
    client = desk("operator")
    assert "Approve this?" in client.get(address(asked, "approve")).text
    asked.refresh_from_db()
    assert asked.status == "open"
    done = client.post(address(asked, "approve"), {"reason": "looks right"}, follow=True)
    assert "Approved: Deploy?" in done.text
    asked.refresh_from_db()
    assert (asked.status, asked.comment) == ("approved", "looks right") and asked.decided_by.startswith("user:")
    assert client.post(address(asked, "reject"), {"reason": ""}).status_code == 409
    assert AuditEntry.objects.filter(verb__startswith="approval.").count() == 1


def test_a_viewer_sees_and_is_refused(organization: Organization, desk: Callable[..., Client]) -> None:
    asked = ask(organization)
    client = desk("viewer")
    assert "Your role does not allow this" in client.get(f"/admin/tasks_app/approval/{asked.pk}/change/").text
    assert client.post(address(asked, "approve"), {"reason": ""}).status_code == 403


def test_an_outsider_finds_nothing(
    organization: Organization, other_organization: Organization, desk: Callable[..., Client]
) -> None:
    asked = ask(organization)
    client = desk("admin", other_organization)
    assert asked.public_id[-8:] not in client.get("/admin/tasks_app/approval/").text
    assert client.post(address(asked, "approve"), {"reason": ""}).status_code == 404


def test_a_selection_is_decided_together(organization: Organization, desk: Callable[..., Client]) -> None:
    chosen = [ask(organization) for _ in range(3)]
    client = desk("operator")
    body = {"action": "bulk_reject", helpers.ACTION_CHECKBOX_NAME: [one.pk for one in chosen], "confirmed": "yes"}
    client.post("/admin/tasks_app/approval/", {**body, "reason": "not today"}, follow=True)
    assert set(Approval.objects.values_list("status", "comment")) == {("rejected", "not today")}
