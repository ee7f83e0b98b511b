"""Verbs: nothing on GET, one service call on POST, a reason in the audit, and refusals that change nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.admin import helpers
from django.test import Client
from django.utils import timezone
from pydantic import SecretStr

from tasks_app.domain.masking import MASK
from tasks_app.models import AuditEntry, Job, Organization, Queue, Task
from tasks_app.services import secrets
from tests.api.rows import make_task


def verb(task: Task, name: str, noun: str = "task") -> str:
    return f"/admin/tasks_app/{noun}/{task.pk}/do/{name}/"


def status_of(task: Task) -> str:
    task.refresh_from_db()
    return task.status


def test_cancel_asks_first_then_cancels_with_the_reason(
    organization: Organization, desk: Callable[..., Client]
) -> None:
    task = make_task(organization, status="queued")
    client = desk("operator")
    asked = client.get(verb(task, "cancel"))
    assert asked.status_code == 200
    assert "Cancel this task?" in asked.text
    assert status_of(task) == "queued"
    done = client.post(verb(task, "cancel"), {"reason": "not needed any more"}, follow=True)
    assert status_of(task) == "cancelled"
    assert "The task is cancelled." in done.text
    entry = AuditEntry.objects.get(verb="task.cancel")
    assert (entry.reason, entry.actor_type, entry.object_id) == ("not needed any more", "user", task.public_id)
    assert entry.address == "127.0.0.1"


@pytest.mark.parametrize("name", ["cancel", "retry", "replay", "priority"])
def test_a_viewer_sees_but_is_refused(name: str, organization: Organization, desk: Callable[..., Client]) -> None:
    task = make_task(organization, status="failed" if name in ("retry", "replay") else "queued")
    client = desk("viewer")
    shown = client.get(f"/admin/tasks_app/task/{task.pk}/change/").text
    assert f"/do/{name}/" not in shown
    assert "Your role does not allow this" in shown
    before = Task.objects.count()
    refused = client.post(verb(task, name), {"reason": "", "input": '{"value": 2}', "priority": "3"})
    assert refused.status_code == 403
    assert "your role is viewer" in refused.text
    assert status_of(task) in ("failed", "queued")
    assert Task.objects.count() == before
    assert not AuditEntry.objects.exists()


def test_retry_runs_a_failed_task_again(organization: Organization, desk: Callable[..., Client]) -> None:
    task = make_task(organization, status="failed", error={"code": "X", "message": "y"})
    desk("operator").post(verb(task, "retry"), {"reason": "the host is back"})
    assert status_of(task) == "queued"
    assert AuditEntry.objects.get(verb="task.retry").reason == "the host is back"


def test_a_verb_that_makes_no_sense_is_refused_with_a_conflict(
    organization: Organization, desk: Callable[..., Client]
) -> None:
    task = make_task(organization, status="completed")
    answer = desk("operator").post(verb(task, "retry"), {"reason": ""})
    assert answer.status_code == 409
    assert "Only a failed task can be retried" in answer.text


def test_replay_with_the_same_and_with_edited_input(organization: Organization, desk: Callable[..., Client]) -> None:
    task = make_task(organization, input={"value": {"deep": [1]}})
    client = desk("operator")
    shown = client.get(verb(task, "replay")).context["form"].initial["input"]
    same = client.post(verb(task, "replay"), {"input": shown, "reason": ""})
    assert same.status_code == 302, same.text
    copy = Task.objects.get(replay_of=task)
    assert copy.input == task.input
    assert str(copy.pk) in same.headers["Location"]
    client.post(verb(task, "replay"), {"input": json.dumps({"value": "edited"}), "reason": "another value"})
    assert Task.objects.filter(replay_of=task, input={"value": "edited"}).exists()


@pytest.mark.parametrize("text", ["{", "nope", "[" * 5000, '{"value": "a\\u0000b"}', '{"value": NaN}'])
def test_replay_refuses_input_that_cannot_be(
    text: str, organization: Organization, desk: Callable[..., Client]
) -> None:
    task = make_task(organization)
    answer = desk("operator").post(verb(task, "replay"), {"input": text, "reason": ""})
    assert answer.status_code == 400
    assert not Task.objects.filter(replay_of=task).exists()


def test_replay_keeps_a_secret_that_was_not_touched() -> None:
    sealed = secrets.seal(SecretStr("s3cr3t-42"), "s3cr3t-42")
    stored = {"token": sealed, "list": [sealed, 1], "other": MASK}
    edited = {"token": MASK, "list": [MASK, 2], "other": MASK, "new": MASK}
    assert secrets.kept(edited, stored) == {
        "token": "s3cr3t-42",
        "list": ["s3cr3t-42", 2],
        "other": MASK,
        "new": MASK,
    }


def test_priority(organization: Organization, desk: Callable[..., Client]) -> None:
    task = make_task(organization, status="queued")
    client = desk("operator")
    assert client.post(verb(task, "priority"), {"priority": "1000", "reason": ""}).status_code == 400
    assert client.post(verb(task, "priority"), {"priority": "9" * 50, "reason": ""}).status_code == 400
    client.post(verb(task, "priority"), {"priority": "40", "reason": "customer waits"})
    task.refresh_from_db()
    assert task.priority == 40
    assert Job.objects.get(task=task).priority == 40
    assert AuditEntry.objects.get(verb="task.priority").reason == "customer waits"


def test_a_reason_with_a_nul_is_cleaned_not_an_error(organization: Organization, desk: Callable[..., Client]) -> None:
    task = make_task(organization, status="queued")
    answer = desk("operator").post(verb(task, "cancel"), {"reason": "a\x00b"})
    assert answer.status_code in (302, 400)


def test_jobs_are_cancelled_and_retried(organization: Organization, desk: Callable[..., Client]) -> None:
    client = desk("operator")
    queued, failed = make_task(organization, status="queued"), make_task(organization, status="failed")
    client.post(f"/admin/tasks_app/job/{queued.jobs.get().pk}/do/cancel/", {"reason": "x"})
    client.post(f"/admin/tasks_app/job/{failed.jobs.get().pk}/do/retry/", {"reason": "x"})
    assert status_of(queued) == "cancelled"
    assert status_of(failed) == "queued"


def test_bulk_cancel_asks_then_acts_on_each(organization: Organization, desk: Callable[..., Client]) -> None:
    tasks = [make_task(organization, status=s) for s in ("queued", "queued", "completed")]
    chosen = [str(task.pk) for task in tasks]
    client = desk("operator")
    form = {"action": "bulk_cancel", helpers.ACTION_CHECKBOX_NAME: chosen, "index": "0"}
    asked = client.post("/admin/tasks_app/task/", form)
    assert asked.status_code == 200
    assert "Cancel 3" in asked.text
    assert [status_of(task) for task in tasks] == ["queued", "queued", "completed"]
    confirmed = {
        "action": "bulk_cancel",
        helpers.ACTION_CHECKBOX_NAME: chosen,
        "confirmed": "yes",
        "reason": "clean up",
    }
    done = client.post("/admin/tasks_app/task/", confirmed, follow=True)
    assert [status_of(task) for task in tasks] == ["cancelled", "cancelled", "completed"]
    assert "Cancel: 2 done." in done.text
    assert "1 refused" in done.text
    assert set(AuditEntry.objects.filter(verb="task.cancel").values_list("reason", flat=True)) == {"clean up"}


def test_bulk_verbs_are_not_there_for_viewers(organization: Organization, desk: Callable[..., Client]) -> None:
    task = make_task(organization, status="queued")
    form = {"action": "bulk_cancel", helpers.ACTION_CHECKBOX_NAME: [str(task.pk)], "confirmed": "yes", "reason": ""}
    desk("viewer").post("/admin/tasks_app/task/", form)
    assert status_of(task) == "queued"


def test_queues_are_paused_with_a_reason_and_resumed(organization: Organization, desk: Callable[..., Client]) -> None:
    client, url = desk("operator"), "/admin/tasks_app/queue/default/do/"
    assert client.post(url + "pause/", {"reason": "  ", "for_minutes": ""}).status_code == 400
    client.post(url + "pause/", {"reason": "upgrade", "for_minutes": "15"})
    queue = Queue.objects.get(name="default")
    assert queue.pause_reason == "upgrade"
    assert timedelta(minutes=14) < queue.paused_until - timezone.now() <= timedelta(minutes=15)
    assert "upgrade" in client.get("/admin/tasks_app/queue/default/change/").text
    client.post(url + "resume/", {"reason": "done"})
    queue.refresh_from_db()
    assert queue.paused_at is None


def test_verbs_need_the_csrf_token(organization: Organization, person: Callable[..., object]) -> None:
    task = make_task(organization, status="queued")
    client = Client(enforce_csrf_checks=True)
    client.force_login(person("operator"))
    assert client.post(verb(task, "cancel"), {"reason": ""}).status_code == 403
    assert status_of(task) == "queued"


def test_a_superuser_acts_in_the_organisation_of_the_task(other_organization: Organization, root: Client) -> None:
    task = make_task(other_organization, status="queued")
    root.post(verb(task, "cancel"), {"reason": "from above"})
    assert status_of(task) == "cancelled"
    assert AuditEntry.objects.get(verb="task.cancel").organization_id == other_organization.id


def test_another_organisations_task_cannot_be_touched(
    organization: Organization, other_organization: Organization, desk: Callable[..., Client]
) -> None:
    task = make_task(organization, status="queued")
    assert desk("admin", other_organization).post(verb(task, "cancel"), {"reason": ""}).status_code == 404
    assert status_of(task) == "queued"
