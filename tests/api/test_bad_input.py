"""Whatever cannot be accepted is refused in one shape with a status below 500, and nothing of it is stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tasks_app.models import AuditEntry, Event, Execution, IdempotencyKey, Job, Project, Task
from tests.api.client import Api, refused
from tests.api.rows import World

pytestmark = pytest.mark.django_db

BAD = range(400, 500)
OK = {"type": "core.echo", "input": {"value": 1}}


@pytest.fixture(autouse=True)
def _nothing_is_stored(world: World) -> Iterator[None]:
    def counts() -> list[int]:
        return [m.objects.count() for m in (Task, Job, Execution, Event, IdempotencyKey, Project)]

    before = counts()
    yield
    assert counts() == before


def task(**fields: Any) -> bytes:
    return json.dumps({**OK, **fields}).encode()


def deep(levels: int) -> bytes:
    return b'{"type":"core.echo","input":{"value":' + b"[" * levels + b"]" * levels + b"}}"


BODIES: dict[str, tuple[bytes, str]] = {
    "unknown field": (task(colour="red"), "colour"),
    "unknown field in the input": (task(input={"valu": 1}), "input.valu"),
    "unknown action": (task(type="core.nothing"), ""),
    "no type": (b"{}", "type"),
    "type is a list": (task(type=["core.echo"]), "type"),
    "type is null": (task(type=None), "type"),
    "type with NUL": (task(type="core\x00echo"), "type"),
    "input is a list": (task(input=[1]), ""),
    "input is text": (task(input="x"), ""),
    "priority is text": (task(priority="5"), "priority"),
    "priority is true": (task(priority=True), "priority"),
    "priority is 1.5": (task(priority=1.5), "priority"),
    "priority is huge": (task(priority=10**30), "priority"),
    "priority is over": (task(priority=101), "priority"),
    "priority is a list": (task(priority=[1]), "priority"),
    "delay is huge": (task(delay_s=10**18), "delay_s"),
    "delay is negative": (task(delay_s=-1), "delay_s"),
    "delay is true": (task(delay_s=True), "delay_s"),
    "delay and run_at": (task(delay_s=1, run_at="2030-01-01T00:00:00Z"), ""),
    "run_at without offset": (task(run_at="2030-03-08T02:30:00"), "run_at"),
    "run_at with a silly offset": (task(run_at="2026-12-01T00:00:00-24:00"), "run_at"),
    "run_at before all time": (task(run_at="0001-01-01T00:00:00+14:00"), "run_at"),
    "run_at after all time": (task(run_at="9999-12-31T23:59:59-12:00"), "run_at"),
    "run_at at 24:00": (task(run_at="2030-01-01T24:00:00Z"), "run_at"),
    "run_at on Feb 30": (task(run_at="2030-02-30T00:00:00Z"), "run_at"),
    "run_at is a number": (task(run_at=1893456000), "run_at"),
    "run_at is a list": (task(run_at=[]), "run_at"),
    "queue unknown": (task(queue="nowhere"), "queue"),
    "queue with NUL": (task(queue="a\x00"), "queue"),
    "project unknown": (task(project="nowhere"), ""),
    "project is a list": (task(project=["site"]), "project"),
    "parent unknown": (task(parent_task="task_01h455vb4pex5vsknk084sn02q"), ""),
    "parent is no id": (task(parent_task="7"), ""),
    "parent is true": (task(parent_task=True), "parent_task"),
    "resource is text": (task(resource="x"), "resource"),
    "resource with more": (task(resource={"type": "a", "id": "b", "c": 1}), "resource.c"),
    "attempts over": (task(max_attempts=101), "max_attempts"),
    "mode unknown": (task(mode="sync"), "mode"),
    "name with NUL": (task(name="a\x00b"), "name"),
    "name too long": (task(name="a" * 301), "name"),
    "name with a surrogate": (b'{"type":"core.echo","name":"\\ud800"}', "name"),
    "input with NUL": (task(input={"value": "a\x00b"}), "input.value"),
    "input with a NUL key": (task(input={"value": {"a\x00": 1}}), ""),
    "input with a surrogate": (b'{"type":"core.echo","input":{"value":"\\ud800"}}', "input.value"),
    "input with a huge number": (task(input={"value": 10**30}), "input.value"),
    "input with a monstrous number": (b'{"type":"core.echo","input":{"value":' + b"9" * 5000 + b"}}", "body"),
    "input over the limit": (task(input={"value": "x" * 1_100_000}), "input"),
    "NaN": (b'{"type":"core.echo","input":{"value":NaN}}', "body"),
    "Infinity": (b'{"type":"core.echo","input":{"value":-Infinity}}', "body"),
    "1e999": (b'{"type":"core.echo","input":{"value":1e999}}', "body"),
    "one name twice": (b'{"type":"core.echo","type":"core.noop"}', "body"),
    "one name twice inside": (b'{"type":"core.echo","input":{"value":1,"value":2}}', "body"),
    "no UTF-8": (b'{"type":"core.echo","name":"\xff"}', "body"),
    "UTF-16": (json.dumps(OK).encode("utf-16"), "body"),
    "byte order mark": (b"\xef\xbb\xbf" + json.dumps(OK).encode(), "body"),
    "cut off": (b'{"type":"core.', "body"),
    "two documents": (b"{} {}", "body"),
    "a list": (b"[1]", "body"),
    "a number": (b"1", "body"),
    "null": (b"null", "body"),
    "nothing": (b"", "type"),
    "depth 100": (deep(100), ""),
    "depth 1,000": (deep(1_000), "body"),
    "depth 100,000": (deep(100_000), "body"),
}


@pytest.mark.parametrize("name", BODIES)
def test_bad_tasks(operator: Api, name: str) -> None:
    raw, field = BODIES[name]
    body = refused(operator.post("tasks", raw), BAD)
    if field:
        assert field in [detail["field"] for detail in body["details"]], body
    assert len(json.dumps(body)) < 5_000


@pytest.mark.parametrize("name", ["unknown field", "priority is true", "input with NUL", "parent unknown"])
def test_a_bulk_names_the_index_and_creates_nothing(operator: Api, name: str) -> None:
    items = [OK, json.loads(BODIES[name][0]), OK]
    body = refused(operator.post("tasks/bulk", {"tasks": items}), BAD)
    assert all("1" in detail["field"] for detail in body["details"]), body


@pytest.mark.parametrize(
    "body", [{}, {"tasks": []}, {"tasks": {}}, {"tasks": [1]}, {"tasks": [None]}, [OK], {"tasks": [OK], "x": 1}]
)
def test_bad_bulks(operator: Api, body: Any) -> None:
    refused(operator.post("tasks/bulk", body), 400, "INVALID_INPUT")


def test_too_many_tasks_in_a_bulk(operator: Api, settings: Any) -> None:
    settings.DEVOS = settings.DEVOS.model_copy(update={"bulk_tasks_max": 3})
    refused(operator.post("tasks/bulk", {"tasks": [OK] * 4}), 413, "PAYLOAD_TOO_LARGE")


def test_a_body_of_10_mb(operator: Api) -> None:
    body = refused(operator.post("tasks", task(name="x" * 10_000_000)), 413, "PAYLOAD_TOO_LARGE")
    assert "2000000" in body["message"]


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml", "x"],
)
def test_other_kinds_of_body(operator: Api, kind: str) -> None:
    refused(operator.post("tasks", b"type=core.echo", content_type=kind), 415, "UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.parametrize(
    "body",
    [
        {"mode": "batch"}, {"mode": None}, {"input": [1]}, {"input": None}, {"more": 1}, {"type": "core.noop"},
        {"input": {"value": 1}, "mode": "stream"}, {"mode": "sync", "name": "x"}, {"mode": "sync", "input": {"x": 1}},
        {"priority": True}, {"run_at": "2030-01-01"},
    ],
)  # fmt: skip
def test_bad_runs_of_an_action(operator: Api, body: Any) -> None:
    refused(operator.post("actions/core.echo", body), 400, "INVALID_INPUT")


def test_runs_of_actions_that_are_not_there(operator: Api) -> None:
    for name in ("core.nothing", "CORE.ECHO", "x", "core.echo%00", "é"):
        refused(operator.post(f"actions/{name}", {}), 404)
        refused(operator.get(f"actions/{name}"), 404)


@pytest.mark.parametrize("key", ["", "a" * 256, "a\tb", "schlüssel", "a\x7f"])
def test_bad_idempotency_keys(operator: Api, key: str) -> None:
    for path, body in (("tasks", OK), ("tasks/bulk", {"tasks": [OK]}), ("actions/core.echo", {})):
        refused(operator.post(path, body, Idempotency_Key=key), 400, "INVALID_INPUT")


def test_a_key_makes_no_sense_for_sync(operator: Api) -> None:
    refused(operator.post("actions/core.echo", {"mode": "sync"}, Idempotency_Key="k"), 400)


QUERIES = [
    ("tasks", "colour=red"), ("tasks", "limit=0"), ("tasks", "limit=201"), ("tasks", "limit=x"), ("tasks", "limit="),
    ("tasks", "limit=1&limit=2"), ("tasks", "limit=" + "9" * 400), ("tasks", "page=100000000000000000000"),
    ("tasks", "status=done"), ("tasks", "status=" + "x" * 10_000), ("tasks", "status=completed&status=x"),
    ("tasks", "status[]=completed"), ("tasks", "priority=101"), ("tasks", "priority=" + "1" * 30),
    ("tasks", "priority=true"), ("tasks", "type=%00"), ("tasks", "q=%00"), ("tasks", "q="), ("tasks", "%00=1"),
    ("tasks", "created_after=yesterday"), ("tasks", "created_after=2026-01-01"), ("tasks", "created_after=5"),
    ("tasks", "created_after=0001-01-01T00:00:00%2B14:00"), ("tasks", "created_before=9999-12-31T23:59:59-12:00"),
    ("tasks", "created_before=2026-12-01T00:00:00-24:00"), ("tasks", "created_before=2026-02-30T00:00:00Z"),
    ("tasks", "created_after=2026-03-08T02:30:00"), ("tasks", "created_after=1e400"),
    ("tasks", "parent=7"), ("tasks", "parent=task_x"), ("tasks", "project=proj_x"), ("tasks", "project=%F0%9F%98%80"),
    ("tasks", "ordering=id"), ("tasks", "ordering=-created_at,priority"), ("tasks", "cursor=x"), ("tasks", "cursor="),
    ("tasks", "cursor=dGFzaw"), ("tasks", "cursor=" + "A" * 500), ("tasks", "cursor=%FF"),
    ("tasks/{task}", "full=1"), ("tasks/{task}/logs", "level=loud"), ("tasks/{task}/logs", "cursor=bG9nfHN8eA"),
    ("tasks/{task}/events", "type=x"), ("tasks/{task}/jobs", "task={task}"), ("tasks/{task}/children", "parent={task}"),
    ("jobs", "status=waiting"), ("jobs", "task=exec_x"), ("executions", "mode=x"),
    ("executions", "job=task_01h455vb4pex5vsknk084sn02q"), ("events", "execution=1"), ("queues", "name=x"),
    ("workers", "alive=maybe"), ("me", "x=1"), ("actions", "cursor=x"), ("projects", "slug=x"), ("keys", "role=admin"),
    ("audit", "created_after=x"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "query"), QUERIES)
def test_bad_queries(admin: Api, world: World, path: str, query: str) -> None:
    refused(admin.get(f"{path.format(task=world.task.public_id)}?{query}"), range(400, 405))


IDS = [
    "99999999999999999999", "-1", "0", "task_", "task_x", "task_01h455vb4pex5vsknk084sn02q", "TASK_X", "null", "true",
    "[1]", "%00", "%FF", "a" * 5_000, "task_" + "z" * 26, "job_01h455vb4pex5vsknk084sn02q",
    "%F0%9F%98%80", "..", "%2e%2e",
    "0190163d-8694-739b-aea5-966c26f8ad91", "task_01h455vb4pex5vsknk084sn02q%0a",
]  # fmt: skip
PLACES = [
    "tasks/{}", "tasks/{}/jobs", "tasks/{}/logs", "tasks/{}/stream", "jobs/{}", "executions/{}", "executions/{}/logs",
    "events/{}", "projects/{}", "queues/{}",
]  # fmt: skip


@pytest.mark.parametrize("identifier", IDS)
def test_bad_ids(admin: Api, identifier: str) -> None:
    for place in PLACES:
        refused(admin.get(place.format(identifier)), 404, "NOT_FOUND")
    for verb in ("tasks/{}/cancel", "tasks/{}/replay", "jobs/{}/retry", "queues/{}/resume"):
        refused(admin.post(verb.format(identifier)), 404, "NOT_FOUND")
    refused(admin.delete(f"keys/{identifier}"), 404, "NOT_FOUND")


VERBS: list[tuple[str, Any]] = [
    ("tasks/{task}/cancel", {"why": "x"}), ("tasks/{task}/cancel", {"reason": 1}), ("tasks/{task}/cancel", [1]),
    ("tasks/{task}/cancel", {"reason": "a\x00"}), ("tasks/{task}/cancel", {"reason": "a" * 501}),
    ("tasks/{task}/priority", {}), ("tasks/{task}/priority", {"priority": True}),
    ("tasks/{task}/priority", {"priority": "1"}),
    ("tasks/{task}/priority", {"priority": 10**30}), ("tasks/{task}/replay", {"input": [1]}),
    ("tasks/{task}/replay", {"input": {"x": 1}}), ("tasks/{task}/replay", {"type": "core.noop"}),
    ("jobs/{job}/retry", {"x": 1}), ("queues/default/pause", {}), ("queues/default/pause", {"reason": ""}),
    ("queues/default/pause", {"reason": "x", "until": "2020-01-01T00:00:00Z"}),
    ("queues/default/pause", {"reason": "x", "until": "soon"}), ("queues/default/pause", {"reason": "x", "until": 5}),
    ("queues/default/resume", {"x": 1}), ("projects", {}), ("projects", {"slug": "A B"}), ("projects", {"slug": "-"}),
    ("projects", {"slug": "a", "name": "\x00"}), ("projects", {"slug": ["a"]}), ("projects", {"slug": "a" * 64}),
    ("projects", {"slug": "proj_x"}),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body"), VERBS)
def test_bad_verbs(admin: Api, world: World, path: str, body: Any) -> None:
    audited = AuditEntry.objects.count()
    refused(admin.post(path.format(task=world.task.public_id, job=world.job.public_id), body), 400, "INVALID_INPUT")
    assert AuditEntry.objects.count() == audited


def test_verbs_that_make_no_sense_now(admin: Api, world: World) -> None:
    for path in ("tasks/{}/cancel", "tasks/{}/retry", "tasks/{}/priority"):
        refused(
            admin.post(path.format(world.task.public_id), {"priority": 1} if "prio" in path else {}), 409, "CONFLICT"
        )
    for path in ("jobs/{}/cancel", "jobs/{}/retry"):
        refused(admin.post(path.format(world.job.public_id)), 409, "CONFLICT")
    refused(admin.post("queues/low/resume"), 409, "CONFLICT")
    refused(admin.post("projects", {"slug": "site"}), 409, "CONFLICT")


def test_a_stream_cannot_go_on_from_anywhere(viewer: Api, world: World) -> None:
    for last in ("x", "1", "1.x", "-1.2", "1.2.3", "9" * 50):
        path = f"tasks/{world.task.public_id}/stream"
        refused(viewer.get(path, headers={"Last-Event-ID": last}), 400)


@pytest.mark.parametrize("given", ["a b", "x" * 65, "<script>", "é", "", "a\nb"])
def test_a_silly_request_id_is_replaced(viewer: Api, given: str) -> None:
    response = viewer.get("tasks/7", headers={"X-Request-Id": given})
    refused(response, 404)
    assert response.headers["X-Request-Id"] != given


def test_a_sane_request_id_comes_back(viewer: Api) -> None:
    response = viewer.get("tasks/7", headers={"X-Request-Id": "r-1.2:3_4", "X-Correlation-Id": "c/1"})
    assert refused(response, 404)["request_id"] == "r-1.2:3_4"
    assert response.headers["X-Correlation-Id"] == "c/1"
