"""/api/actions"""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from tasks_app.actions import registry
from tasks_app.api import stream
from tasks_app.api.base import ApiView, answer, listed, parse
from tasks_app.api.represent.actions import ActionDetail, ActionList, action_detail, action_out
from tasks_app.api.represent.executions import SyncOut, sync_out
from tasks_app.api.represent.tasks import TaskOut
from tasks_app.api.requests import RunBody
from tasks_app.api.schema import EVENT_STREAM, IDEMPOTENCY_KEY, documented
from tasks_app.api.submission import submitted_answer
from tasks_app.domain.errors import InvalidInput
from tasks_app.queries import actions
from tasks_app.queries.actions import ActionFilter
from tasks_app.runtime import sync
from tasks_app.services import tasks as verbs
from tasks_app.services.tasks import TaskSpec


class Actions(ApiView):
    query = {"GET": ActionFilter}

    @documented("List actions", ActionList)
    def get(self, request: Request) -> Response:
        page = actions.page(self.principal, self.parameters)
        return listed(page, lambda action: action_out(action, self.principal))


class ActionItem(ApiView):
    @documented("Read an action with its schemas", ActionDetail, errors=(404,))
    def get(self, request: Request, action_id: str) -> Response:
        return answer(action_detail(actions.get(self.principal, action_id), self.principal))

    @documented(
        "Run an action",
        SyncOut,
        request=RunBody,
        errors=(404, 409),
        more={202: TaskOut, (200, "text/event-stream"): EVENT_STREAM},
        parameters=[IDEMPOTENCY_KEY],
    )
    def post(self, request: Request, action_id: str) -> Any:
        registry.get(action_id)
        body = self.body(RunBody)
        if body.mode == "sync":
            return self._now(action_id, body)
        spec = parse(TaskSpec, {"type": action_id, "input": body.input, "mode": body.mode, **body.about_the_task()})
        submitted = verbs.submit(self.principal, spec, idempotency_key=self.idempotency_key())
        if body.mode == "stream":
            return stream.respond(request, self.principal, submitted.task_id)
        return submitted_answer(self.principal, spec, submitted, status=202)

    def _now(self, action_id: str, body: RunBody) -> Response:
        problems = [
            {"field": name, "problem": "is about a task; mode sync makes none"} for name in body.about_the_task()
        ]
        if self.idempotency_key() is not None:
            problems.append({"field": "Idempotency-Key", "problem": "works with mode async and stream only"})
        if problems:
            raise InvalidInput("; ".join(f"{p['field']} {p['problem']}" for p in problems), problems)
        return answer(sync_out(sync.run(self.principal, action_id, body.input)))
