"""What the reading endpoints answer."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tasks_app.models import Job, Organization, Task
from tests.api.client import Api, refused
from tests.api.rows import World, add_log, make_event, make_execution, make_task, make_worker

pytestmark = pytest.mark.django_db


def results(response: Any) -> list[dict[str, Any]]:
    assert response.status_code == 200, response.content
    body = response.json()
    assert set(body) == {"results", "next"}
    found: list[dict[str, Any]] = body["results"]
    return found


def test_a_task_says_everything_about_itself(viewer: Api, world: World) -> None:
    body = viewer.get(f"tasks/{world.task.public_id}").json()

    assert body["id"] == world.task.public_id
    assert body["type"] == "core.echo" and body["status"] == "completed"
    assert body["project"] == world.project.public_id
    assert body["parent_task"] == world.parent.public_id
    assert body["resource"] == {"type": "seo.website", "id": "w1"}
    assert body["input"] == {"value": 1} and body["output"] == {"value": 1}
    assert body["created_by"] == {"type": "user", "id": "1"}
    assert body["job_ids"] == [world.job.public_id]
    assert body["progress"]["percentage"] == 50.0
    assert body["result"]["success"] is True and body["result"]["output"] == {"value": 1}
    assert body["result"]["statistics"]["attempts"] == 1
    assert body["result"]["statistics"]["duration_ms"] == pytest.approx(2000, abs=100)
    assert body["created_at"].endswith("Z")


def test_an_unfinished_task_has_no_result(viewer: Api, organization: Organization) -> None:
    task = make_task(organization, status="queued")
    assert viewer.get(f"tasks/{task.public_id}").json()["result"] is None


def test_an_execution_says_everything_about_itself(viewer: Api, world: World) -> None:
    body = viewer.get(f"executions/{world.execution.public_id}").json()

    assert body["task_id"] == world.task.public_id and body["parent_task"] == world.parent.public_id
    assert body["job_id"] == world.job.public_id and body["action_id"] == "core.echo"
    assert body["worker"] == {"id": world.worker.public_id, "hostname": "host", "pid": 7}
    assert body["triggered_by"] == {"type": "user", "id": "1"}
    assert body["input"] == {"value": 1} and body["output"] == {"value": 1}
    assert (body["attempt"], body["max_attempts"], body["duration_ms"]) == (1, 3, 12.5)
    assert [line["message"] for line in body["logs"]] == ["hello"]
    assert [event["type"] for event in body["events"]] == ["execution.started"]


def test_what_belongs_to_a_task(viewer: Api, world: World) -> None:
    at = f"tasks/{world.task.public_id}"
    assert [row["id"] for row in results(viewer.get(f"{at}/jobs"))] == [world.job.public_id]
    assert [row["id"] for row in results(viewer.get(f"{at}/executions"))] == [world.execution.public_id]
    assert [row["id"] for row in results(viewer.get(f"{at}/events"))] == [world.event.public_id]
    assert [row["message"] for row in results(viewer.get(f"{at}/logs"))] == ["hello", "from the platform"]
    children = results(viewer.get(f"tasks/{world.parent.public_id}/children"))
    assert [row["id"] for row in children] == [world.task.public_id]


def test_logs_of_a_task_are_paged_by_time_over_both_sources(viewer: Api, world: World) -> None:
    start = timezone.now() + timedelta(minutes=1)
    for number in range(7):
        add_log(world.execution, f"line {number}", "warn", start + timedelta(milliseconds=number // 3))

    seen: list[str] = []
    cursor: str | None = None
    for _ in range(10):
        body = viewer.get(
            f"tasks/{world.task.public_id}/logs", limit=2, **({"cursor": cursor} if cursor else {})
        ).json()
        seen += [line["message"] for line in body["results"]]
        cursor = body["next"]
        if cursor is None:
            break

    assert seen == ["hello", "from the platform", *(f"line {number}" for number in range(7))]
    warned = results(viewer.get(f"executions/{world.execution.public_id}/logs", level="warn"))
    assert [line["message"] for line in warned] == seen[2:]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"status": "failed"}, {"broken"}),
        ({"status": ["failed", "queued"]}, {"broken", "new"}),
        ({"status": "failed,queued"}, {"broken", "new"}),
        ({"status": ["completed", "failed"]}, {"done", "broken"}),
        ({"type": "core.echo"}, {"done", "broken", "new"}),
        ({"type": "seo.*"}, {"scan"}),
        ({"project": "site"}, {"done"}),
        ({"priority": "7"}, {"new"}),
        ({"correlation_id": "c-1"}, {"scan"}),
        ({"q": "SCA"}, {"scan"}),
        ({"q": "seo."}, {"scan"}),
        ({"status": "running"}, {"scan"}),
    ],
)
def test_tasks_are_filtered(
    viewer: Api, world: World, organization: Organization, parameters: dict[str, Any], expected: set[str]
) -> None:
    Task.objects.filter(id=world.parent.id).update(type="other.thing", status="cancelled")
    Task.objects.filter(id=world.task.id).update(name="done")
    make_task(organization, status="failed", name="broken", error={"code": "X", "message": "x"})
    make_task(organization, status="queued", name="new", priority=7)
    make_task(organization, status="running", name="scan", type="seo.website.scan", correlation_id="c-1")

    assert {row["name"] for row in results(viewer.get("tasks", **parameters))} == expected


def test_tasks_are_filtered_by_time_and_parent(viewer: Api, world: World, organization: Organization) -> None:
    before = timezone.now()
    young = make_task(organization)
    new = results(viewer.get("tasks", created_after=before.isoformat()))
    assert [row["id"] for row in new] == [young.public_id]
    old = results(viewer.get("tasks", created_before=before.isoformat()))
    assert {row["id"] for row in old} == {world.task.public_id, world.parent.public_id}
    assert len(results(viewer.get("tasks", parent=world.parent.public_id))) == 1


def test_jobs_are_filtered(viewer: Api, organization: Organization) -> None:
    made = {status: make_task(organization, status=status).jobs.get() for status in ("queued", "running", "waiting")}
    failed = make_task(organization, status="failed").jobs.get()
    Job.objects.filter(id=failed.id).update(queue_id="high")

    assert [row["id"] for row in results(viewer.get("jobs", status="running"))] == [made["running"].public_id]
    both = results(viewer.get("jobs", status="pending,queued"))
    assert {row["id"] for row in both} == {made["waiting"].public_id, made["queued"].public_id}
    assert [row["id"] for row in results(viewer.get("jobs", queue="high"))] == [failed.public_id]
    assert [row["blocked_by"] for row in results(viewer.get("jobs", status="pending"))] == [{"reason": "time"}]
    assert viewer.get(f"jobs/{failed.public_id}").json()["queue"] == "high"


def test_executions_are_filtered(viewer: Api, world: World, organization: Organization) -> None:
    failed = make_execution(make_task(organization, status="failed"), status="failed")
    assert [row["id"] for row in results(viewer.get("executions", status="failed"))] == [failed.public_id]
    assert len(results(viewer.get("executions", status="failed,completed"))) == 2
    of_job = results(viewer.get("executions", job=world.job.public_id))
    assert [row["id"] for row in of_job] == [world.execution.public_id]
    assert results(viewer.get("executions", action="seo.website.scan")) == []
    assert len(results(viewer.get("executions", action="core.*", mode="async"))) == 2


def test_events_are_filtered(viewer: Api, world: World) -> None:
    other = make_event(world.parent, "website.created", resource_type="seo.website", resource_id="w2")
    assert [row["id"] for row in results(viewer.get("events", type="website.*"))] == [other.public_id]
    assert [row["id"] for row in results(viewer.get("events", resource_id="w2"))] == [other.public_id]
    for name, value in (("task", world.task), ("job", world.job), ("execution", world.execution)):
        found = results(viewer.get("events", **{name: value.public_id}))
        assert [row["id"] for row in found] == [world.event.public_id]
    body = viewer.get(f"events/{world.event.public_id}").json()
    assert body["execution_id"] == world.execution.public_id and body["sequence"] > 0


def test_queues_show_their_load(viewer: Api, organization: Organization) -> None:
    make_task(organization, status="queued")
    Job.objects.update(available_at=timezone.now() - timedelta(seconds=90))
    make_task(organization, status="running")
    make_task(organization, status="waiting")
    make_worker(last_seen_at=timezone.now() - timedelta(hours=1))

    names = {row["name"] for row in results(viewer.get("queues"))}
    assert {"default", "high", "low", "system"} <= names
    body = viewer.get("queues/default").json()
    assert (body["queued"], body["running"], body["waiting"], body["depth"]) == (1, 1, 1, 2)
    assert body["counts_exact"] is True and body["paused"] is False
    assert body["oldest_waiting_s"] == pytest.approx(90, abs=10)
    assert body["workers"] == 1
    empty = viewer.get("queues/low").json()
    assert (empty["depth"], empty["oldest_waiting_at"]) == (0, None)


def test_workers_show_what_they_run(viewer: Api, organization: Organization) -> None:
    task = make_task(organization, status="running")
    job = task.jobs.get()
    dead = make_worker(last_seen_at=timezone.now() - timedelta(hours=1))
    execution = make_execution(task, status="running")
    type(execution).objects.filter(id=execution.id).update(worker_id=job.worker_id)

    living = results(viewer.get("workers", alive="true"))
    assert [row["alive"] for row in living] == [True]
    assert [row["id"] for row in living[0]["running"]] == [execution.public_id]
    assert [row["id"] for row in results(viewer.get("workers", alive="false"))] == [dead.public_id]


def test_large_values_are_left_out_of_lists(viewer: Api, organization: Organization) -> None:
    task = make_task(organization, output={"text": secrets.token_hex(20_000)})
    execution = make_execution(task)
    row = results(viewer.get("tasks"))[0]
    assert row["output"] is None and row["omitted"] == ["output"] and row["result"]["output"] is None
    assert row["input"] == {"value": 1}
    assert len(viewer.get(f"tasks/{task.public_id}").json()["output"]["text"]) == 40_000
    assert results(viewer.get("executions", task=task.public_id))[0]["id"] == execution.public_id


def test_actions_show_their_schemas(viewer: Api) -> None:
    listed = {row["id"]: row for row in results(viewer.get("actions", limit=200))}
    assert listed["core.echo"]["modes"] == ["async", "sync"]
    assert listed["core.echo"]["allowed"] is False
    body = viewer.get("actions/tests.login").json()
    assert body["input_schema"]["properties"]["password"]["writeOnly"] is True
    assert body["output_schema"]["properties"]["length"]["type"] == "integer"
    assert [row["id"] for row in results(viewer.get("actions", q="LOG IN"))] == ["tests.login"]
    first = viewer.get("actions", limit=1).json()
    second = viewer.get("actions", limit=1, cursor=first["next"]).json()
    assert second["results"][0]["id"] > first["results"][0]["id"]


def test_me(caller: Any, organization: Organization) -> None:
    body = caller("operator", scopes=["tasks.*"]).get("me").json()
    assert body["organization"] == {"id": organization.public_id, "slug": "default", "name": organization.name}
    assert (body["role"], body["scopes"], body["actor"]["type"]) == ("operator", ["tasks.*"], "api_key")


def test_a_slash_at_the_end_changes_nothing(operator: Api) -> None:
    assert operator.get("tasks/").status_code == 200
    made = operator.post("tasks/", {"type": "core.echo", "input": {"value": 3}})
    assert made.status_code == 201, made.content
    assert operator.get(f"tasks/{made.json()['id']}/").json()["input"] == {"value": 3}


@pytest.mark.parametrize("path", ["", "nothing", "tasks/x/y/z", "tasks//x", "v2/tasks"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_unknown_addresses(admin: Api, path: str, method: str) -> None:
    refused(admin.call(method, path), 404, "NOT_FOUND")


def test_the_wrong_method(admin: Api) -> None:
    refused(admin.call("PUT", "tasks"), 405, "METHOD_NOT_ALLOWED")
    refused(admin.call("OPTIONS", "tasks"), 405)
