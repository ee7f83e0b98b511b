"""GET /api/tasks/{id}/explain."""

from __future__ import annotations

import pytest

from tasks_app.models import Organization, Queue
from tests.api.client import Api, refused
from tests.api.rows import World, make_task

pytestmark = pytest.mark.django_db


def test_it_says_why_and_what_to_do(viewer: Api, organization: Organization) -> None:
    from django.utils import timezone

    task = make_task(organization, status="queued")
    Queue.objects.filter(name="default").update(paused_at=timezone.now(), paused_by="user:1", pause_reason="a fire")
    found = viewer.get(f"tasks/{task.public_id}/explain").json()
    assert (found["task"], found["status"], found["running"]) == (task.public_id, "queued", False)
    paused, no_worker = found["reasons"]
    assert paused["code"] == "QUEUE_PAUSED" and "a fire" in paused["message"]
    assert paused["holder"] == {"type": "queue", "id": "default", "name": ""}
    assert paused["job"] == task.jobs.get().public_id
    assert paused["since"] and paused["until"] is None
    assert (paused["cleared_by"], paused["how"]) == ("an operator", "`devos queue resume default`.")
    assert no_worker["code"] == "NO_WORKER"


def test_others_and_nonsense(stranger: Api, viewer: Api, world: World) -> None:
    refused(stranger.get(f"tasks/{world.task.public_id}/explain"), 404, "NOT_FOUND")
    refused(viewer.get("tasks/task_nonsense/explain"), 404, "NOT_FOUND")
    refused(viewer.get(f"tasks/{world.task.public_id}/explain", x="1"), 400, "INVALID_INPUT")
