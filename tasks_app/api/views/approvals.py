"""/api/approvals"""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from tasks_app.api.base import ApiView, answer, listed, uuid_of
from tasks_app.api.represent.approvals import ApprovalList, ApprovalOut, approval_out
from tasks_app.api.requests import DecisionBody
from tasks_app.api.schema import documented
from tasks_app.queries import approvals
from tasks_app.queries.approvals import ApprovalFilter
from tasks_app.services import approvals as verbs


class Approvals(ApiView):
    query = {"GET": ApprovalFilter}

    @documented("List approvals", ApprovalList, errors=(404,))
    def get(self, request: Request) -> Response:
        return listed(approvals.page(self.principal, self.parameters), approval_out)


class ApprovalItem(ApiView):
    @documented("Read an approval", ApprovalOut, errors=(404,))
    def get(self, request: Request, approval_id: str) -> Response:
        return answer(approval_out(approvals.get(self.principal, uuid_of("approval", approval_id))))


class ApprovalApprove(ApiView):
    @documented("Approve: the work goes on", ApprovalOut, request=DecisionBody, errors=(404, 409))
    def post(self, request: Request, approval_id: str) -> Response:
        uuid = uuid_of("approval", approval_id)
        return answer(approval_out(verbs.approve(self.principal, uuid, self.body(DecisionBody).comment)))


class ApprovalReject(ApiView):
    @documented("Reject: the action learns of it", ApprovalOut, request=DecisionBody, errors=(404, 409))
    def post(self, request: Request, approval_id: str) -> Response:
        uuid = uuid_of("approval", approval_id)
        return answer(approval_out(verbs.reject(self.principal, uuid, self.body(DecisionBody).comment)))
