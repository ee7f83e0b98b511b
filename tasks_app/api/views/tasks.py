"""/api/tasks"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from tasks_app.api import stream
from tasks_app.api.base import ApiView, answer, listed, uuid_of
from tasks_app.api.represent.common import log_out
from tasks_app.api.represent.events import EventList, LogList, event_out
from tasks_app.api.represent.executions import ExecutionList, execution_out
from tasks_app.api.represent.explanations import ExplanationOut, explanation_out
from tasks_app.api.represent.jobs import JobList, job_out
from tasks_app.api.represent.tasks import BulkOut, TaskList, TaskOut, task_out
from tasks_app.api.requests import BulkBody, BulkDocument, PriorityBody, ReasonBody, ReplayBody
from tasks_app.api.schema import EVENT_STREAM, IDEMPOTENCY_KEY, LAST_EVENT_ID, documented
from tasks_app.api.submission import bulk_answer, read_specs, submitted_answer
from tasks_app.queries import events, executions, jobs, logs, tasks
from tasks_app.queries.events import TimelineQuery
from tasks_app.queries.executions import ExecutionsOfTask
from tasks_app.queries.explain import explain
from tasks_app.queries.jobs import JobsOfTask
from tasks_app.queries.logs import LogQuery
from tasks_app.queries.tasks import ChildFilter, TaskFilter
from tasks_app.services import tasks as verbs
from tasks_app.services.tasks import TaskSpec


class Tasks(ApiView):
    query = {"GET": TaskFilter}

    @documented("List tasks", TaskList, errors=(404,))
    def get(self, request: Request) -> Response:
        return listed(tasks.page(self.principal, self.parameters), task_out)

    @documented("Create a task", TaskOut, status=201, request=TaskSpec, errors=(404, 409), parameters=[IDEMPOTENCY_KEY])
    def post(self, request: Request) -> Response:
        spec, key = self.body(TaskSpec), self.idempotency_key()
        submitted = verbs.submit(self.principal, spec, idempotency_key=key)
        return submitted_answer(self.principal, spec, submitted, status=201)


class TaskBulk(ApiView):
    @documented(
        "Create many tasks, all or none",
        BulkOut,
        status=201,
        request=BulkDocument,
        errors=(404, 409),
        parameters=[IDEMPOTENCY_KEY],
    )
    def post(self, request: Request) -> Response:
        specs, key = read_specs(self.body(BulkBody).tasks), self.idempotency_key()
        submitted = verbs.submit_many(self.principal, specs, idempotency_key=key)
        return bulk_answer(specs, submitted)


class TaskDetail(ApiView):
    @documented("Read a task", TaskOut, errors=(404,))
    def get(self, request: Request, task_id: str) -> Response:
        return answer(task_out(tasks.get(self.principal, uuid_of("task", task_id))))


class _Verb(ApiView):
    """A verb that answers the task as it is afterwards."""

    def done(self, task_id: str, verb: Callable[..., Any], **given: Any) -> Response:
        uuid = uuid_of("task", task_id)
        verb(self.principal, uuid, **given)
        return answer(task_out(tasks.get(self.principal, uuid)))


class TaskCancel(_Verb):
    @documented("Cancel a task", TaskOut, request=ReasonBody, errors=(404, 409))
    def post(self, request: Request, task_id: str) -> Response:
        return self.done(task_id, verbs.cancel, reason=self.body(ReasonBody).reason)


class TaskRetry(_Verb):
    @documented("Run the failed jobs of a task again", TaskOut, request=ReasonBody, errors=(404, 409))
    def post(self, request: Request, task_id: str) -> Response:
        return self.done(task_id, verbs.retry, reason=self.body(ReasonBody).reason)


class TaskPriority(_Verb):
    @documented("Change the priority of a task", TaskOut, request=PriorityBody, errors=(404, 409))
    def post(self, request: Request, task_id: str) -> Response:
        return self.done(task_id, verbs.reprioritise, priority=self.body(PriorityBody).priority)


class TaskReplay(ApiView):
    @documented(
        "Make a new task from an old one",
        TaskOut,
        status=201,
        request=ReplayBody,
        errors=(404, 409),
    )
    def post(self, request: Request, task_id: str) -> Response:
        body = self.body(ReplayBody)
        old = uuid_of("task", task_id)
        submitted = verbs.replay(self.principal, old, input=body.input, reason=body.reason)
        new = task_out(tasks.get(self.principal, submitted.task_id))
        return answer(new, status=201, headers={"Location": f"/api/tasks/{new.id}"})


class TaskJobs(ApiView):
    query = {"GET": JobsOfTask}

    @documented("List the jobs of a task", JobList, errors=(404,))
    def get(self, request: Request, task_id: str) -> Response:
        return listed(jobs.of_task(self.principal, uuid_of("task", task_id), self.parameters), job_out)


class TaskExecutions(ApiView):
    query = {"GET": ExecutionsOfTask}

    @documented("List the executions of a task", ExecutionList, errors=(404,))
    def get(self, request: Request, task_id: str) -> Response:
        page = executions.of(self.principal, uuid_of("task", task_id), self.parameters)
        return listed(page, execution_out)


class TaskLogs(ApiView):
    query = {"GET": LogQuery}

    @documented("List what was written about a task, oldest first", LogList, errors=(404,))
    def get(self, request: Request, task_id: str) -> Response:
        return listed(logs.of_task(self.principal, uuid_of("task", task_id), self.parameters), log_out)


class TaskEvents(ApiView):
    query = {"GET": TimelineQuery}

    @documented("List the events of a task, oldest first", EventList, errors=(404,))
    def get(self, request: Request, task_id: str) -> Response:
        return listed(events.of_task(self.principal, uuid_of("task", task_id), self.parameters), event_out)


class TaskChildren(ApiView):
    query = {"GET": ChildFilter}

    @documented("List the children of a task", TaskList, errors=(404,))
    def get(self, request: Request, task_id: str) -> Response:
        return listed(tasks.children(self.principal, uuid_of("task", task_id), self.parameters), task_out)


class TaskExplanation(ApiView):
    @documented("Say why a task is not running", ExplanationOut, errors=(404,))
    def get(self, request: Request, task_id: str) -> Response:
        return answer(explanation_out(explain(self.principal, uuid_of("task", task_id))))


class TaskStream(ApiView):
    @documented(
        "Follow a task live",
        None,
        more={(200, "text/event-stream"): EVENT_STREAM},
        errors=(404,),
        parameters=[LAST_EVENT_ID],
    )
    def get(self, request: Request, task_id: str) -> Any:
        return stream.respond(request, self.principal, uuid_of("task", task_id))
