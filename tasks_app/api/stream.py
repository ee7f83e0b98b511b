"""The live stream of a task as server-sent events.

What is sent always comes from the database; a message on the task's Redis channel only says "look now", and a look
every second is the net under it. One loop in two colours: asynchronous under ASGI (a waiting stream holds no thread),
synchronous under WSGI.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from uuid import UUID

import redis
import redis.asyncio
import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, connections
from django.http import StreamingHttpResponse
from redis.exceptions import RedisError
from rest_framework.request import Request

from tasks_app.api.errors import Throttled
from tasks_app.api.represent.common import log_out
from tasks_app.api.represent.tasks import TaskOut, task_out
from tasks_app.domain.errors import InvalidInput, NotFound
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import TASK_FINAL
from tasks_app.queries import logs, tasks

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 1.0
# A burst of messages is answered with one look.
LOOK_AT_MOST_EVERY_S = 0.1
HEARTBEAT_S = 15.0
# A stream is ended after this and the client comes back with Last-Event-ID: by then its key may have been revoked.
STREAM_MAX_S = 1_800.0
STREAMS_PER_CALLER = 20
STREAMS_PER_PROCESS = 200
_LINES_A_LOOK = 500
_POLLERS = 4


@dataclass
class Watcher:
    """What one client has seen of a task. `look` reads what is new."""

    principal: Principal
    task_id: UUID
    position: logs.Position = field(default_factory=logs.Position)
    seen: dict[str, Any] = field(default_factory=dict)
    ended: bool = False

    def look(self) -> list[str]:
        """The events since the last look, as text of the stream."""
        try:
            task = task_out(tasks.get(self.principal, self.task_id))
        except NotFound:
            self.ended = True
            return [self._event("end", {"id": None, "reason": "the task has been deleted"})]
        events = [*self._changed("status", _status(task)), *self._changed("progress", task.progress)]
        # After the task: whatever was written before it ended is then there to be read.
        lines = logs.after(self.task_id, self.position, _LINES_A_LOOK)
        for line in lines:
            self.position = self.position.past(line)
            events.append(self._event("log", log_out(line).model_dump(mode="json")))
        if task.status in TASK_FINAL and len(lines) < _LINES_A_LOOK:
            self.ended = True
            events.append(self._event("end", task.model_dump(mode="json")))
        return events

    def _changed(self, kind: str, value: Any) -> list[str]:
        if value is None or self.seen.get(kind) == value:
            return []
        self.seen[kind] = value
        return [self._event(kind, value)]

    def _event(self, kind: str, data: Any) -> str:
        body = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        return f"id: {self.position.platform}.{self.position.actions}\nevent: {kind}\ndata: {body}\n\n"


def _status(task: TaskOut) -> dict[str, Any]:
    return task.model_dump(mode="json", include={"id", "status", "started_at", "completed_at", "cancel_requested_at"})


def read_position(text: str | None) -> logs.Position:
    """Last-Event-ID. Raises `InvalidInput` for one this stream did not give out."""
    if not text:
        return logs.Position()
    platform, _, actions = text.partition(".")
    if not (platform.isdigit() and actions.isdigit() and len(text) < 40):
        problem = "is not an id of this stream"
        raise InvalidInput(f"Last-Event-ID: {problem}", [{"field": "Last-Event-ID", "problem": problem}])
    return logs.Position(min(int(platform), 2**63 - 1), min(int(actions), 2**63 - 1))


class _Seats:
    """How many streams are open in this process, in all and for each caller."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: Counter[str] = Counter()

    def check(self, caller: str) -> None:
        """Raise `Throttled` when there is no seat for ``caller``."""
        with self._lock:
            if self._taken[caller] >= STREAMS_PER_CALLER or self._taken.total() >= STREAMS_PER_PROCESS:
                raise Throttled(f"Too many open streams; a caller may have {STREAMS_PER_CALLER}. Close some.", 5)

    def add(self, caller: str, change: int) -> None:
        with self._lock:
            self._taken[caller] += change

    def taken(self) -> int:
        """Open streams."""
        with self._lock:
            return self._taken.total()


seats = _Seats()


class _Seat:
    """Taken when the stream starts to flow, given back once: a client may go away at any moment, even before that."""

    def __init__(self, caller: str) -> None:
        self.caller = caller
        self._held = False

    def take(self) -> None:
        self._held = True
        seats.add(self.caller, 1)

    def free(self) -> None:
        if self._held:
            self._held = False
            seats.add(self.caller, -1)


class _Stream(StreamingHttpResponse):
    """The response; its seat is given back when it is closed, whatever becomes of the iterator."""

    def __init__(self, content: Any, seat: _Seat) -> None:
        super().__init__(content, content_type="text/event-stream; charset=utf-8")
        self.headers["Cache-Control"] = "no-cache, no-transform"
        self.headers["X-Accel-Buffering"] = "no"
        self._seat = seat

    def close(self) -> None:
        super().close()
        self._seat.free()


def respond(request: Request, principal: Principal, task_id: UUID) -> StreamingHttpResponse:
    """The stream of a task. Raises `NotFound`, `InvalidInput`, `Throttled`."""
    watcher = Watcher(principal, task_id, read_position(request.META.get("HTTP_LAST_EVENT_ID")))
    tasks.exists(principal, task_id)
    seat = _Seat(f"{principal.actor.type}:{principal.actor.id}")
    seats.check(seat.caller)
    if hasattr(request._request, "scope"):
        # The thread of this request now only waits; its connection would wait with it.
        for connection in connections.all(initialized_only=True):
            if not connection.in_atomic_block:
                connection.close()
        return _Stream(_asynchronously(watcher, seat), seat)
    return _Stream(_synchronously(watcher, seat), seat)


def channel(task_id: UUID) -> str:
    """Where the runtime says that something about a task is new."""
    return f"devos:task:{task_id}"


@cache
def _pollers() -> ThreadPoolExecutor:
    """Few threads look for all streams of the process, so that a hundred streams hold four connections."""
    return ThreadPoolExecutor(_POLLERS, thread_name_prefix="stream")


def _look(watcher: Watcher) -> list[str]:
    """What is new. While the database does not answer nothing is, and the stream goes on."""
    try:
        return watcher.look()
    except (OperationalError, InterfaceError) as error:
        log.warning("api.stream_look_failed", error=str(error))
        for connection in connections.all(initialized_only=True):
            connection.close_if_unusable_or_obsolete()
        return []


class _Pace:
    """When to look again, when to send a heartbeat, when to stop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.end = clock() + STREAM_MAX_S
        self.silent_since = clock()

    def frame(self, events: list[str]) -> str | None:
        now = self.clock()
        if events:
            self.silent_since = now
            return "".join(events)
        if now - self.silent_since >= HEARTBEAT_S:
            self.silent_since = now
            return ": still here\n\n"
        return None

    def over(self) -> bool:
        return self.clock() >= self.end


async def _asynchronously(watcher: Watcher, seat: _Seat) -> AsyncIterator[str]:
    pace, loop = _Pace(), asyncio.get_running_loop()
    seat.take()
    try:
        async with redis.asyncio.Redis.from_url(settings.REDIS_URL) as client, client.pubsub() as listener:
            with suppress(RedisError):
                await listener.subscribe(channel(watcher.task_id))
            while True:
                events = await loop.run_in_executor(_pollers(), _look, watcher)
                if frame := pace.frame(events):
                    yield frame
                if watcher.ended or pace.over() or _cancelled():
                    return
                await asyncio.sleep(LOOK_AT_MOST_EVERY_S)
                await _heard(listener)
    finally:
        seat.free()


def _cancelled() -> bool:
    """Whether this task was cancelled, which is how Django tells that the client went away.

    The Redis client may swallow a cancellation that arrives while it connects; then nobody would ever stop the stream.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _heard(listener: redis.asyncio.client.PubSub) -> None:
    """Wait for a message, at most `LOOK_EVERY_S`; swallow those that came together."""
    try:
        message = await listener.get_message(timeout=LOOK_EVERY_S)
        while message is not None:
            message = await listener.get_message(timeout=0)
    except (RedisError, RuntimeError):  # RuntimeError: the subscription never came about
        await asyncio.sleep(LOOK_EVERY_S)


def _synchronously(watcher: Watcher, seat: _Seat) -> Iterator[str]:
    pace = _Pace()
    seat.take()
    try:
        with redis.Redis.from_url(settings.REDIS_URL) as client, client.pubsub() as listener:
            with suppress(RedisError):
                listener.subscribe(channel(watcher.task_id))
            while True:
                if frame := pace.frame(_look(watcher)):
                    yield frame
                if watcher.ended or pace.over():
                    return
                time.sleep(LOOK_AT_MOST_EVERY_S)
                _heard_now(listener)
    finally:
        seat.free()


def _heard_now(listener: redis.client.PubSub) -> None:
    try:
        message = listener.get_message(timeout=LOOK_EVERY_S)
        while message is not None:
            message = listener.get_message(timeout=0)
    except (RedisError, RuntimeError):
        time.sleep(LOOK_EVERY_S)
