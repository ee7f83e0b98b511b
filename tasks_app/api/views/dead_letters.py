"""/api/dead-letters"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from tasks_app.api.base import ApiView, answer, listed, uuid_of
from tasks_app.api.represent.dead_letters import (
    DeadLetterCountOut,
    DeadLetterGroupList,
    DeadLetterList,
    DeadLetterOut,
    DeadLetterResultList,
    count_out,
    dead_letter_out,
    group_out,
    result_out,
)
from tasks_app.api.represent.tasks import TaskOut
from tasks_app.api.requests import DeadLetterBulkBody, ReasonBody, ReplayBody
from tasks_app.api.schema import IDEMPOTENCY_KEY, documented
from tasks_app.api.submission import submitted_answer
from tasks_app.queries import dead_letter_results, dead_letters
from tasks_app.queries.dead_letter_results import ResultFilter
from tasks_app.queries.dead_letters import DeadLetterFilter, GroupFilter
from tasks_app.services import dead_letters as verbs


class DeadLetters(ApiView):
    query = {"GET": DeadLetterFilter}

    @documented("List dead letters", DeadLetterList, errors=(404,))
    def get(self, request: Request) -> Response:
        return listed(dead_letters.page(self.principal, self.parameters), dead_letter_out)


class DeadLetterGroups(ApiView):
    query = {"GET": GroupFilter}

    @documented("List dead letters by their cause, in the order of the fingerprints", DeadLetterGroupList)
    def get(self, request: Request) -> Response:
        return listed(dead_letters.groups(self.principal, self.parameters), group_out)


class DeadLetterItem(ApiView):
    @documented("Read a dead letter", DeadLetterOut, errors=(404,))
    def get(self, request: Request, letter_id: str) -> Response:
        return answer(dead_letter_out(dead_letters.get(self.principal, uuid_of("dead_letter", letter_id))))


class _Verb(ApiView):
    """A verb that answers the letter as it is afterwards."""

    def done(self, letter_id: str, verb: Callable[..., Any], **given: Any) -> Response:
        uuid = uuid_of("dead_letter", letter_id)
        verb(self.principal, uuid, **given)
        return answer(dead_letter_out(dead_letters.get(self.principal, uuid)))


class DeadLetterRetry(_Verb):
    @documented("Run the job of a dead letter again", DeadLetterOut, request=ReasonBody, errors=(404, 409))
    def post(self, request: Request, letter_id: str) -> Response:
        return self.done(letter_id, verbs.retry, reason=self.body(ReasonBody).reason)


class DeadLetterReplay(_Verb):
    @documented("Make a new task of a dead letter's work", DeadLetterOut, request=ReplayBody, errors=(404, 409))
    def post(self, request: Request, letter_id: str) -> Response:
        body = self.body(ReplayBody)
        return self.done(letter_id, verbs.replay, input=body.input, reason=body.reason)


class DeadLetterDiscard(_Verb):
    @documented("Close a dead letter; a reason is needed", DeadLetterOut, request=ReasonBody, errors=(404, 409))
    def post(self, request: Request, letter_id: str) -> Response:
        return self.done(letter_id, verbs.discard, reason=self.body(ReasonBody).reason)


class DeadLetterCancel(_Verb):
    @documented(
        "Close a dead letter, and cancel what is left of its task", DeadLetterOut, request=ReasonBody, errors=(404, 409)
    )
    def post(self, request: Request, letter_id: str) -> Response:
        return self.done(letter_id, verbs.cancel, reason=self.body(ReasonBody).reason)


class DeadLetterBulk(ApiView):
    @documented(
        "Decide about many dead letters, as a task",
        TaskOut,
        status=202,
        request=DeadLetterBulkBody,
        errors=(404, 409),
        more={200: DeadLetterCountOut},
        parameters=[IDEMPOTENCY_KEY],
    )
    def post(self, request: Request) -> Response:
        body, key = self.body(DeadLetterBulkBody), self.idempotency_key()
        spec = body.spec()
        if body.dry_run:
            return answer(count_out(verbs.preview(self.principal, spec)))
        wanted, submitted = verbs.bulk(self.principal, spec, idempotency_key=key)
        return submitted_answer(self.principal, wanted, submitted, status=202)


class DeadLetterBulkResults(ApiView):
    query = {"GET": ResultFilter}

    @documented("List what a bulk did about each letter", DeadLetterResultList, errors=(404,))
    def get(self, request: Request, task_id: str) -> Response:
        uuid = uuid_of("task", task_id)
        return listed(dead_letter_results.page(self.principal, uuid, self.parameters), result_out)
