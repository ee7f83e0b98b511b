"""The live stream of a task, and big bodies, over real HTTP: uvicorn with Django's ASGI application."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
import uvicorn
from django.db import connections
from django.utils import timezone

from devos.asgi import application
from tasks_app.api import stream
from tasks_app.models import Execution, Job, Organization, Task, TaskLog
from tasks_app.services.bells import bells
from tests.api.client import SHAPE, Api, refused
from tests.api.rows import add_log, make_execution, make_task
from tests.support.waiting import until

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "runtime"]),
    pytest.mark.usefixtures("_no_leftovers"),
]

Frame = tuple[str, str, Any]


@pytest.fixture
def _no_leftovers() -> Iterator[None]:
    """The threads of the streams keep connections; a database that is in use cannot be flushed."""
    yield
    pool = stream._pollers()
    for _ in range(stream._POLLERS * 4):
        pool.submit(connections.close_all).result()
    pool.shutdown()
    stream._pollers.cache_clear()
    connections["runtime"].close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a real web server (in a thread of this process)."""
    for alias in ("default", "runtime"):
        # What the pool of the web process does: a request gives its connection back when it ends.
        monkeypatch.setitem(connections.settings[alias], "CONN_MAX_AGE", 0)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(application, log_level="warning", lifespan="off", timeout_graceful_shutdown=2)
        running = uvicorn.Server(config)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
        thread.start()
        until(lambda: running.started, 20, "uvicorn listens")
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        running.should_exit = True
        thread.join(20)


class Following:
    """An open stream; reads frames one at a time."""

    def __init__(self, server: str, api: Api, path: str, **headers: str) -> None:
        self.response = requests.get(
            f"{server}/api/{path}", headers={"Authorization": f"Api-Key {api.key}", **headers}, stream=True, timeout=30
        )
        self.lines = self.response.iter_lines(chunk_size=1, decode_unicode=True)

    def frame(self) -> Frame:
        """The next event: id, kind, data. Comments are skipped."""
        found: dict[str, str] = {}
        for line in self.lines:
            if not line and found:
                return found["id"], found["event"], json.loads(found["data"])
            if line and not line.startswith(":"):
                name, _, value = line.partition(": ")
                found[name] = value
        raise AssertionError("the stream ended")

    def kinds(self, count: int) -> list[str]:
        return [self.frame()[1] for _ in range(count)]

    def close(self) -> None:
        self.response.close()


@pytest.fixture
def follow(server: str) -> Iterator[Callable[..., Following]]:
    opened: list[Following] = []

    def start(*args: Any, **headers: str) -> Following:
        opened.append(Following(server, *args, **headers))
        return opened[-1]

    yield start
    for one in opened:
        one.close()
    until(lambda: not stream.seats.taken(), 20, "closed streams give their seats back")


@pytest.fixture
def running(organization: Organization) -> tuple[Task, Execution]:
    task = make_task(organization, status="running")
    execution = make_execution(task, status="running")
    Job.objects.filter(task=task).update(worker_id=execution.worker_id or task.id, progress=None)
    return task, execution


def finish(task: Task) -> None:
    now = timezone.now()
    Job.objects.filter(task=task).update(
        status="completed", completed_at=now, worker_id=None, lease_expires_at=None, output={"value": 1}
    )
    Task.objects.filter(id=task.id).update(status="completed", completed_at=now, output={"value": 1})


def test_a_stream_from_start_to_end(
    viewer: Api, running: tuple[Task, Execution], follow: Callable[..., Following]
) -> None:
    task, execution = running
    add_log(execution, "before")
    following = follow(viewer, f"tasks/{task.public_id}/stream")
    assert following.response.headers["Content-Type"].startswith("text/event-stream")

    _, kind, data = following.frame()
    assert (kind, data["status"]) == ("status", "running")
    _, kind, data = following.frame()
    assert (kind, data["message"], data["execution_id"]) == ("log", "before", execution.public_id)

    Job.objects.filter(task=task).update(progress={"current": 1, "total": 4, "percentage": 25.0})
    bells().tell(str(task.id), "progress")
    _, kind, data = following.frame()
    assert (kind, data["percentage"]) == ("progress", 25.0)

    add_log(execution, "wörking\nhard")
    TaskLog.objects.create(task=task, level="info", message="platform")
    assert [following.frame()[2]["message"] for _ in range(2)] == ["wörking\nhard", "platform"]

    finish(task)
    assert following.kinds(2) == ["status", "end"]


def test_the_end_carries_the_task(viewer: Api, organization: Organization, follow: Callable[..., Following]) -> None:
    task = make_task(organization)
    following = follow(viewer, f"tasks/{task.public_id}/stream")
    frames = [following.frame() for _ in range(3)]
    assert [kind for _, kind, _ in frames] == ["status", "progress", "end"]
    assert frames[-1][2] == viewer.get(f"tasks/{task.public_id}").json()
    with pytest.raises(AssertionError, match="ended"):
        following.frame()


def test_it_goes_on_after_the_last_event(
    viewer: Api, running: tuple[Task, Execution], follow: Callable[..., Following]
) -> None:
    task, execution = running
    for number in range(5):
        add_log(execution, f"line {number}")
    path = f"tasks/{task.public_id}/stream"
    first = follow(viewer, path)
    first.frame()
    seen = [first.frame() for _ in range(3)]
    first.close()
    again = follow(viewer, path, **{"Last-Event-ID": seen[-1][0]})
    again.frame()
    assert [again.frame()[2]["message"] for _ in range(2)] == ["line 3", "line 4"]


def test_many_lines_all_arrive(viewer: Api, running: tuple[Task, Execution], follow: Callable[..., Following]) -> None:
    task, execution = running
    for number in range(1_203):
        add_log(execution, str(number))
    finish(task)
    following = follow(viewer, f"tasks/{task.public_id}/stream")
    frames = [following.frame() for _ in range(1_205)]
    assert [data["message"] for _, kind, data in frames if kind == "log"] == [str(n) for n in range(1_203)]
    assert frames[-1][1] == "end"


def test_a_silent_stream_sends_heartbeats(
    viewer: Api, running: tuple[Task, Execution], follow: Callable[..., Following], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "HEARTBEAT_S", 0.2)
    following = follow(viewer, f"tasks/{running[0].public_id}/stream")
    following.frame()
    assert next(line for line in following.lines if line).startswith(":")


def test_a_caller_has_so_many_streams(
    viewer: Api,
    operator: Api,
    running: tuple[Task, Execution],
    follow: Callable[..., Following],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "STREAMS_PER_CALLER", 2)
    path = f"tasks/{running[0].public_id}/stream"
    held = [follow(viewer, path) for _ in range(2)]
    for one in held:
        one.frame()
    third = follow(viewer, path).response
    assert third.status_code == 429 and third.json()["code"] == "THROTTLED" and third.headers["Retry-After"]
    assert follow(operator, path).response.status_code == 200
    held[0].close()
    until(lambda: follow(viewer, path).response.status_code == 200, 20, "a seat is free again")


def test_streams_do_not_hold_up_other_requests(
    viewer: Api, running: tuple[Task, Execution], follow: Callable[..., Following], server: str
) -> None:
    for _ in range(12):
        follow(viewer, f"tasks/{running[0].public_id}/stream").frame()
    answer = requests.get(f"{server}/api/me", headers={"Authorization": f"Api-Key {viewer.key}"}, timeout=5)
    assert answer.status_code == 200


def test_a_client_that_leaves_at_once_leaves_nothing_behind(
    viewer: Api, running: tuple[Task, Execution], server: str
) -> None:
    for _ in range(5):
        headers = {"Authorization": f"Api-Key {viewer.key}"}
        with requests.get(
            f"{server}/api/tasks/{running[0].public_id}/stream", headers=headers, stream=True, timeout=20
        ) as answer:
            assert answer.status_code == 200
    until(lambda: not stream.seats.taken(), 20, "no seat is taken")


def test_an_action_in_stream_mode(operator: Api, server: str) -> None:
    answer = requests.post(
        f"{server}/api/actions/core.sleep",
        json={"input": {"seconds": 0.1}, "mode": "stream"},
        headers={"Authorization": f"Api-Key {operator.key}"},
        stream=True,
        timeout=20,
    )
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    assert Task.objects.get().type == "core.sleep"
    answer.close()
    until(lambda: not stream.seats.taken(), 20, "the seat is free")


def test_a_stream_over_wsgi(operator: Api, organization: Organization) -> None:
    """The command calls the application in its own process: there the stream is an ordinary iterator."""
    task = make_task(organization)
    text = operator.get(f"tasks/{task.public_id}/stream").getvalue().decode()
    assert text.count("event: ") == 3 and "event: end" in text


@pytest.fixture
def _no_redis(settings: Any) -> None:
    """Redis has gone: its address leads nowhere."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"redis://127.0.0.1:{free.getsockname()[1]}/0"
    settings.REDIS_URL = address
    settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": address}}


@pytest.mark.usefixtures("_no_redis")
def test_without_redis_requests_and_streams_go_on(
    viewer: Api, running: tuple[Task, Execution], follow: Callable[..., Following]
) -> None:
    assert viewer.get("me").status_code == 200
    following = follow(viewer, f"tasks/{running[0].public_id}/stream")
    assert following.frame()[1] == "status"
    finish(running[0])
    assert following.kinds(2) == ["status", "end"]


def raw_request(server: str, api: Api, headers: dict[str, str], chunks: list[bytes]) -> tuple[int, Any]:
    """Status and JSON of a POST that is written by hand."""
    connection = http.client.HTTPConnection(urlsplit(server).netloc, timeout=20)
    connection.putrequest("POST", "/api/tasks")
    for name, value in {"Authorization": f"Api-Key {api.key}", "Content-Type": "application/json", **headers}.items():
        connection.putheader(name, value)
    connection.endheaders()
    try:
        for chunk in chunks:
            connection.send(chunk)
    except (BrokenPipeError, ConnectionResetError):
        pass  # refused before all of it was sent: what this is about
    with closing(connection):
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def chunked(body: bytes, size: int = 65_536) -> list[bytes]:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return [b"%x\r\n%s\r\n" % (len(part), part) for part in parts] + [b"0\r\n\r\n"]


def test_a_body_without_a_length(operator: Api, server: str) -> None:
    body = json.dumps({"type": "core.echo", "input": {"value": "chunked"}}).encode()
    status, _ = raw_request(server, operator, {"Transfer-Encoding": "chunked"}, chunked(body, 10))
    assert status == 201
    assert Task.objects.get().input == {"value": "chunked"}


def test_a_body_without_a_length_that_does_not_end(operator: Api, server: str) -> None:
    status, body = raw_request(server, operator, {"Transfer-Encoding": "chunked"}, chunked(b"x" * 2_100_000)[:-1])
    assert status == 413 and set(body) == SHAPE


def test_a_body_that_announces_too_much_is_not_read(operator: Api, server: str) -> None:
    status, body = raw_request(server, operator, {"Content-Length": "10000000"}, [])
    assert status == 413 and body["code"] == "PAYLOAD_TOO_LARGE"


def test_a_body_of_10_mb_over_http(operator: Api, server: str) -> None:
    body = json.dumps({"type": "core.echo", "name": "x" * 10_000_000}).encode()
    status, _ = raw_request(server, operator, {"Content-Length": str(len(body))}, [body])
    assert status == 413
    assert Task.objects.count() == 0


def test_refusals_over_http_have_the_one_shape(server: str) -> None:
    for path in ("api/tasks", "api/tasks/", "api/nothing"):
        answer = requests.get(f"{server}/{path}", timeout=10)
        assert answer.status_code in (401, 404)
        assert set(answer.json()) == SHAPE
    odd = requests.get(f"{server}/api/tasks", headers={"Host": "evil.example"}, timeout=10)
    assert odd.status_code == 400 and set(odd.json()) == SHAPE


def test_a_broken_database_is_a_503(viewer: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    from django.db import OperationalError

    def away(*_: Any, **__: Any) -> Any:
        raise OperationalError("gone")

    monkeypatch.setattr("tasks_app.queries.tasks.page", away)
    answer = viewer.get("tasks")
    refused(answer, 503, "UNAVAILABLE")
    assert answer.headers["Retry-After"]


def test_a_fault_of_ours_says_nothing_about_itself(viewer: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("the password is 1234")

    monkeypatch.setattr("tasks_app.queries.tasks.page", broken)
    body = refused(viewer.get("tasks"), 500, "INTERNAL_ERROR")
    assert "1234" not in json.dumps(body)
