"""/api/jobs"""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from tasks_app.api.base import ApiView, answer, listed, uuid_of
from tasks_app.api.represent.jobs import JobList, JobOut, job_out
from tasks_app.api.requests import ReasonBody
from tasks_app.api.schema import documented
from tasks_app.queries import jobs
from tasks_app.queries.jobs import JobFilter
from tasks_app.services import jobs as verbs


class Jobs(ApiView):
    query = {"GET": JobFilter}

    @documented("List jobs", JobList, errors=(404,))
    def get(self, request: Request) -> Response:
        return listed(jobs.page(self.principal, self.parameters), job_out)


class JobDetail(ApiView):
    @documented("Read a job", JobOut, errors=(404,))
    def get(self, request: Request, job_id: str) -> Response:
        return answer(job_out(jobs.get(self.principal, uuid_of("job", job_id))))


class JobRetry(ApiView):
    @documented("Run a failed job again", JobOut, request=ReasonBody, errors=(404, 409))
    def post(self, request: Request, job_id: str) -> Response:
        uuid = uuid_of("job", job_id)
        verbs.retry(self.principal, uuid, reason=self.body(ReasonBody).reason)
        return answer(job_out(jobs.get(self.principal, uuid)))


class JobCancel(ApiView):
    @documented("Cancel a job", JobOut, request=ReasonBody, errors=(404, 409))
    def post(self, request: Request, job_id: str) -> Response:
        uuid = uuid_of("job", job_id)
        verbs.cancel(self.principal, uuid, reason=self.body(ReasonBody).reason)
        return answer(job_out(jobs.get(self.principal, uuid)))
