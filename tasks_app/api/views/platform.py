"""/api/queues, /api/workers, /api/events, /api/audit and /api/me"""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from tasks_app.api.base import ApiView, answer, listed, text_of, uuid_of
from tasks_app.api.represent.events import EventList, EventOut, event_out
from tasks_app.api.represent.platform import (
    AuditList,
    MeOut,
    QueueList,
    QueueOut,
    WorkerList,
    audit_out,
    me_out,
    queue_out,
    worker_out,
)
from tasks_app.api.requests import Body, EventBody, PauseBody
from tasks_app.api.schema import documented
from tasks_app.queries import audit, events, organizations, queues, workers
from tasks_app.queries.audit import AuditFilter
from tasks_app.queries.events import EventFilter
from tasks_app.queries.queues import QueueFilter
from tasks_app.queries.workers import WorkerFilter
from tasks_app.services import queues as verbs
from tasks_app.services.events import emit


class Queues(ApiView):
    query = {"GET": QueueFilter}

    @documented("List queues with their load", QueueList)
    def get(self, request: Request) -> Response:
        return listed(queues.page(self.principal, self.parameters), queue_out)


class QueueItem(ApiView):
    @documented("Read a queue with its load", QueueOut, errors=(404,))
    def get(self, request: Request, name: str) -> Response:
        return answer(queue_out(queues.get(self.principal, text_of("queue", name))))


class QueuePause(ApiView):
    @documented("Hand out nothing from a queue", QueueOut, request=PauseBody, errors=(404, 409))
    def post(self, request: Request, name: str) -> Response:
        body = self.body(PauseBody)
        verbs.pause(self.principal, text_of("queue", name), body.reason, until=body.until)
        return answer(queue_out(queues.get(self.principal, text_of("queue", name))))


class QueueResume(ApiView):
    @documented("Hand out work from a queue again", QueueOut, request=Body, errors=(404, 409))
    def post(self, request: Request, name: str) -> Response:
        self.body(Body)
        verbs.resume(self.principal, text_of("queue", name))
        return answer(queue_out(queues.get(self.principal, text_of("queue", name))))


class Workers(ApiView):
    query = {"GET": WorkerFilter}

    @documented("List workers with what they run", WorkerList)
    def get(self, request: Request) -> Response:
        return listed(workers.page(self.principal, self.parameters), worker_out)


class Events(ApiView):
    query = {"GET": EventFilter}

    @documented("List events", EventList, errors=(404,))
    def get(self, request: Request) -> Response:
        return listed(events.page(self.principal, self.parameters), event_out)

    @documented("Publish an event", EventOut, status=201, request=EventBody)
    def post(self, request: Request) -> Response:
        body = self.body(EventBody)
        event = emit(
            self.principal,
            body.type,
            data=body.data,
            resource=(body.resource.type, body.resource.id) if body.resource else None,
            key=body.key,
            correlation_id=body.correlation_id or "",
        )
        event = events.get(self.principal, event.id)
        return answer(event_out(event), status=201, headers={"Location": f"/api/events/{event.public_id}"})


class EventItem(ApiView):
    @documented("Read an event", EventOut, errors=(404,))
    def get(self, request: Request, event_id: str) -> Response:
        return answer(event_out(events.get(self.principal, uuid_of("event", event_id))))


class Audit(ApiView):
    query = {"GET": AuditFilter}

    @documented("List the audit", AuditList)
    def get(self, request: Request) -> Response:
        return listed(audit.page(self.principal, self.parameters), audit_out)


class Me(ApiView):
    @documented("Who am I", MeOut)
    def get(self, request: Request) -> Response:
        return answer(me_out(self.principal, organizations.mine(self.principal)))
