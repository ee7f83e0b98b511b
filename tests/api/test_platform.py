"""The REST door of a running platform: real web process, real workers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import requests

from tests.support.platform import Platform


def call(platform: Platform, method: str, path: str, **options: Any) -> requests.Response:
    headers = {"Authorization": f"Api-Key {platform.bootstrap['api_key']}"}
    return requests.request(method, f"{platform.url}/api/{path}", headers=headers, timeout=60, **options)


def frames(response: requests.Response) -> Iterator[tuple[str, Any]]:
    """Every event of a stream until it ends: kind and data."""
    kind = ""
    for line in response.iter_lines(decode_unicode=True):
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield kind, json.loads(line.removeprefix("data: "))


def test_an_action_is_followed_to_its_end(platform: Platform) -> None:
    body = {"input": {"seconds": 1.5}, "mode": "stream", "name": "followed"}
    with call(platform, "POST", "actions/core.sleep", json=body, stream=True) as response:
        assert response.status_code == 200, response.text
        seen = list(frames(response))
    kinds = [kind for kind, _ in seen]
    assert kinds[-1] == "end" and "progress" in kinds
    assert [data["status"] for kind, data in seen if kind == "status"][-1] == "completed"
    task = seen[-1][1]
    assert task["result"]["success"] is True and task["output"]["slept_s"] >= 1.5

    shown = call(platform, "GET", f"tasks/{task['id']}").json()
    assert shown == task
    executions = call(platform, "GET", f"tasks/{task['id']}/executions").json()["results"]
    assert [(row["status"], row["attempt"]) for row in executions] == [("completed", 1)]
    assert executions[0]["worker"]["hostname"]
    events = call(platform, "GET", f"tasks/{task['id']}/events").json()["results"]
    assert events[0]["type"] == "task.created"
    assert {"job.queued", "execution.started", "execution.completed", "task.completed"} <= {e["type"] for e in events}
    assert {event["correlation_id"] for event in events} == {task["correlation_id"]}


def test_a_running_task_is_cancelled(platform: Platform) -> None:
    task = call(platform, "POST", "tasks", json={"type": "core.sleep", "input": {"seconds": 60}}).json()
    with call(platform, "GET", f"tasks/{task['id']}/stream", stream=True) as response:
        following = frames(response)
        next(data for kind, data in following if kind == "status" and data["status"] == "running")
        call(platform, "POST", f"tasks/{task['id']}/cancel", json={"reason": "tests"})
        seen = list(following)
    assert seen[-1][0] == "end" and seen[-1][1]["status"] == "cancelled"
    assert seen[-1][1]["cancel_reason"] == "tests"


def test_workers_and_queues_of_a_living_platform(platform: Platform) -> None:
    workers = call(platform, "GET", "workers", params={"alive": "true"}).json()["results"]
    assert {queue for worker in workers for queue in worker["queues"]} >= {"default", "system"}
    assert call(platform, "GET", "queues/default").json()["workers"] >= 1
    sync = call(platform, "POST", "actions/core.echo", json={"input": {"value": 1}, "mode": "sync"}).json()
    assert sync["result"]["output"] == {"value": 1}


def test_the_description_is_served(platform: Platform) -> None:
    assert "/api/tasks" in call(platform, "GET", "schema/").text
    page = call(platform, "GET", "docs/")
    assert page.status_code == 200
    for part in ("swagger-ui-bundle.js", "swagger-ui.css"):
        address = next(word for word in page.text.replace('"', " ").split() if word.endswith(part))
        assert requests.get(f"{platform.url}{address}", timeout=20).status_code == 200
