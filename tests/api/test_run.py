"""Asking for work: one task, many, an action in each of its modes, the same request twice, secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections

from tasks_app.domain import ids
from tasks_app.models import AuditEntry, Event, Execution, IdempotencyKey, Job, Task
from tests.api.client import Api, refused
from tests.api.rows import World

ECHO = {"type": "core.echo", "input": {"value": {"a": [1, 2.5, None, "ü", "😀", "‮"]}}}
SECRET = "s3cr3t-42"


@pytest.mark.django_db
def test_a_task_is_created(operator: Api, world: World) -> None:
    body = {
        **ECHO, "name": "Try", "description": "d", "priority": 7, "queue": "high", "project": "site",
        "resource": {"type": "seo.website", "id": "w1"}, "parent_task": world.task.public_id, "max_attempts": 5,
        "correlation_id": "corr-1",
    }  # fmt: skip
    made = operator.post("tasks", body)
    assert made.status_code == 201, made.content
    task = made.json()
    assert made.headers["Location"] == f"/api/tasks/{task['id']}"
    assert task["status"] == "queued" and task["input"] == ECHO["input"] and task["priority"] == 7
    assert task["project"] == world.project.public_id and task["parent_task"] == world.task.public_id
    assert (task["correlation_id"], task["resource"]["id"]) == ("corr-1", "w1")
    assert task == operator.get(f"tasks/{task['id']}").json()
    job = operator.get(f"jobs/{task['job_ids'][0]}").json()
    assert (job["queue"], job["status"], job["max_attempts"], job["task_id"]) == ("high", "queued", 5, task["id"])
    events = operator.get(f"tasks/{task['id']}/events").json()["results"]
    assert [event["type"] for event in events] == ["task.created", "job.queued"]
    assert events[1]["causation_id"] == "evt_" + task["id"].removeprefix("task_")


@pytest.mark.django_db
def test_headers_give_the_correlation(operator: Api) -> None:
    task = operator.post("tasks", ECHO, X_Correlation_Id="c-9", X_Request_Id="r-9").json()
    assert (task["correlation_id"], task["request_id"]) == ("c-9", "r-9")


@pytest.mark.django_db
@pytest.mark.parametrize("when", [{"delay_s": 60}, {"run_at": "2100-01-01T10:00:00+02:00"}])
def test_a_task_for_later_waits(operator: Api, when: dict[str, Any]) -> None:
    task = operator.post("tasks", {**ECHO, **when}).json()
    assert task["status"] == "waiting"
    job = operator.get(f"jobs/{task['job_ids'][0]}").json()
    assert job["status"] == "pending" and job["blocked_by"] == {"reason": "time"}
    if "run_at" in when:
        due = datetime.fromisoformat(job["available_at"])
        assert abs(due - datetime(2100, 1, 1, 8, tzinfo=UTC)) < timedelta(seconds=5)


@pytest.mark.django_db
def test_a_bulk(operator: Api) -> None:
    made = operator.post("tasks/bulk", {"tasks": [{**ECHO, "name": f"n{n}", "delay_s": n % 2} for n in range(50)]})
    assert made.status_code == 201, made.content
    rows = made.json()["results"]
    assert [row["status"] for row in rows[:2]] == ["queued", "waiting"]
    names = [operator.get(f"tasks/{row['id']}").json()["name"] for row in rows[:3]]
    assert names == ["n0", "n1", "n2"] and Task.objects.count() == 50


@pytest.mark.django_db
def test_an_action_in_async_mode(operator: Api) -> None:
    made = operator.post("actions/core.echo", {"input": {"value": 1}, "name": "x", "priority": -3})
    assert made.status_code == 202
    assert (made.json()["type"], made.json()["name"], made.json()["priority"]) == ("core.echo", "x", -3)


@pytest.mark.django_db
def test_verbs_on_a_task(operator: Api) -> None:
    task = operator.post("tasks", ECHO).json()
    at = f"tasks/{task['id']}"
    assert operator.post(f"{at}/priority", {"priority": 9}).json()["priority"] == 9
    cancelled = operator.post(f"{at}/cancel", {"reason": "no"}).json()
    assert cancelled["status"] == "cancelled" and cancelled["result"]["success"] is False
    again = operator.post(f"{at}/replay", {"input": {"value": 2}, "reason": "try"})
    assert again.status_code == 201
    assert (again.json()["replay_of"], again.json()["input"]) == (task["id"], {"value": 2})
    other = operator.post("tasks", ECHO).json()
    assert operator.post(f"jobs/{other['job_ids'][0]}/cancel", b"").json()["status"] == "cancelled"
    assert operator.get(f"tasks/{other['id']}").json()["status"] == "cancelled"


@pytest.mark.django_db
def test_a_queue_is_paused_and_resumed(operator: Api) -> None:
    paused = operator.post("queues/low/pause", {"reason": "repair", "until": "2100-01-01T00:00:00Z"}).json()
    assert paused["paused"] is True and paused["pause_reason"] == "repair"
    refused(operator.post("queues/low/pause", {"reason": "again"}), 409)
    assert operator.post("queues/low/resume").json()["paused"] is False


@pytest.mark.django_db
def test_projects(admin: Api, viewer: Api) -> None:
    made = admin.post("projects", {"slug": "shop", "description": "d"})
    assert made.status_code == 201 and made.json()["name"] == "shop"
    changed = admin.patch(f"projects/{made.json()['id']}", {"name": "The shop"}).json()
    assert (changed["name"], changed["slug"], changed["description"]) == ("The shop", "shop", "d")
    assert viewer.get("projects/shop").json() == changed
    audited = AuditEntry.objects.get(verb="project.update")
    assert (audited.before, audited.after) == ({"name": "shop"}, {"name": "The shop"})
    assert list(Event.objects.order_by("sequence").values_list("type", flat=True)) == [
        "project.created",
        "project.updated",
    ]


@pytest.mark.django_db
class TestTheSameRequestTwice:
    def test_it_gets_the_same_answer(self, operator: Api) -> None:
        first = operator.post("tasks", {**ECHO, "priority": 3}, Idempotency_Key="k")
        task_id = first.json()["id"]
        operator.post(f"tasks/{task_id}/priority", {"priority": 9})
        operator.post(f"tasks/{task_id}/cancel")
        second = operator.post("tasks", {**ECHO, "priority": 3}, Idempotency_Key="k")
        assert second.status_code == first.status_code == 201
        assert second.content == first.content
        assert second.headers["Idempotency-Replayed"] == "true"
        assert "Idempotency-Replayed" not in first.headers
        assert Task.objects.count() == 1

    def test_a_bulk_and_an_action_too(self, operator: Api) -> None:
        bulk = {"tasks": [ECHO, {**ECHO, "delay_s": 5}]}
        answers = [operator.post("tasks/bulk", bulk, Idempotency_Key="b") for _ in range(2)]
        assert answers[0].content == answers[1].content and answers[1].headers["Idempotency-Replayed"] == "true"
        runs = [operator.post("actions/core.echo", {"input": {"value": 1}}, Idempotency_Key="a") for _ in range(2)]
        assert runs[0].content == runs[1].content and [run.status_code for run in runs] == [202, 202]
        assert Task.objects.count() == 3

    def test_another_body_is_a_conflict(self, operator: Api) -> None:
        operator.post("tasks", ECHO, Idempotency_Key="k")
        refused(operator.post("tasks", {**ECHO, "priority": 1}, Idempotency_Key="k"), 409, "CONFLICT")
        assert Task.objects.count() == 1

    def test_keys_of_two_callers_are_apart(self, caller: Callable[..., Api]) -> None:
        for _ in range(2):
            assert caller("operator").post("tasks", ECHO, Idempotency_Key="k").status_code == 201
        assert Task.objects.count() == 2

    def test_a_refused_request_leaves_no_key(self, operator: Api) -> None:
        refused(operator.post("tasks", {**ECHO, "queue": "nowhere"}, Idempotency_Key="k"), 400)
        assert operator.post("tasks", ECHO, Idempotency_Key="k").status_code == 201
        assert IdempotencyKey.objects.count() == 1

    def test_a_key_of_255_characters(self, operator: Api) -> None:
        assert operator.post("tasks", ECHO, Idempotency_Key="k" * 255).status_code == 201


@pytest.fixture
def _own_connections() -> Iterator[None]:
    yield
    connections["runtime"].close()


@pytest.mark.django_db(transaction=True, databases=["default", "runtime"])
@pytest.mark.usefixtures("_own_connections")
class TestInParallel:
    def test_20_requests_with_one_key_make_one_task(self, operator: Api) -> None:
        def send(_: int) -> Any:
            try:
                return Api(operator.key).post("tasks", ECHO, Idempotency_Key="once")
            finally:
                connections.close_all()

        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(send, range(20)))
        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.content for answer in answers}) <= 20
        bodies = [{**answer.json(), "request_id": ""} for answer in answers]
        assert all(body == bodies[0] for body in bodies)
        assert sum("Idempotency-Replayed" not in answer.headers for answer in answers) == 1
        assert (Task.objects.count(), Job.objects.count()) == (1, 1)

    def test_50_requests_without_a_key_make_50(self, operator: Api) -> None:
        def send(_: int) -> int:
            try:
                return int(Api(operator.key).post("tasks", ECHO).status_code)
            finally:
                connections.close_all()

        with ThreadPoolExecutor(10) as pool:
            assert set(pool.map(send, range(50))) == {201}
        assert Task.objects.count() == 50

    def test_an_action_in_sync_mode(self, operator: Api) -> None:
        done = operator.post("actions/core.echo", {"input": ECHO["input"], "mode": "sync"})
        assert done.status_code == 200, done.content
        body = done.json()
        assert body["output"] == ECHO["input"] and body["status"] == "completed" and body["mode"] == "sync"
        assert body["result"]["success"] is True and body["result"]["statistics"]["attempts"] == 1
        shown = operator.get(f"executions/{body['id']}").json()
        assert shown["input"] == ECHO["input"]
        assert [event["type"] for event in shown["events"]] == ["execution.started", "execution.completed"]
        assert Task.objects.count() == 0 and Execution.objects.count() == 1

    def test_a_failure_in_sync_mode_is_a_result(self, operator: Api) -> None:
        body = operator.post("actions/core.fail", {"input": {"code": "NO_LUCK"}, "mode": "sync"}).json()
        assert body["status"] == "failed" and body["result"]["success"] is False
        assert body["result"]["error"]["code"] == "NO_LUCK"

    def test_a_secret_is_never_shown(self, operator: Api, admin: Api) -> None:
        given = {"user": "u", "password": SECRET, "more": {"pin": SECRET}}
        done = operator.post("actions/tests.login", {"input": given, "mode": "sync"}).json()
        assert done["output"] == {"length": len(SECRET)}
        made = operator.post("tasks", {"type": "tests.login", "input": given}).json()
        masked = {"user": "u", "password": "**********", "more": {"pin": "**********"}}
        assert done["input"] == made["input"] == masked
        paths = [
            "tasks", "jobs", "executions", "events", "audit", f"tasks/{made['id']}", f"executions/{done['id']}",
            f"jobs/{made['job_ids'][0]}", f"tasks/{made['id']}/events",
        ]  # fmt: skip
        for path in paths:
            text = admin.get(path).content.decode()
            assert SECRET not in text and "$secret" not in text, path
        assert SECRET not in str(list(Task.objects.values())) + str(list(Job.objects.values()))
        wrong = operator.post("tasks", {"type": "tests.login", "input": {"user": 5, "password": SECRET}})
        assert SECRET not in str(refused(wrong, 400))


def test_a_key_whose_task_was_deleted_since_says_so(operator: Api) -> None:
    made = operator.post("tasks", ECHO, Idempotency_Key="gone").json()
    task = Task.objects.get(id=ids.from_text("task", made["id"]))
    task.jobs.all().delete()
    task.delete()
    problem = refused(operator.post("tasks", ECHO, Idempotency_Key="gone"), 409, "CONFLICT")
    assert made["id"] in problem["message"]
