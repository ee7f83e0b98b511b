"""/api/executions"""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from tasks_app.api.base import ApiView, answer, listed, uuid_of
from tasks_app.api.represent.common import log_out
from tasks_app.api.represent.events import LogList
from tasks_app.api.represent.executions import ExecutionDetail, ExecutionList, execution_detail, execution_out
from tasks_app.api.schema import documented
from tasks_app.queries import events, executions, logs
from tasks_app.queries.executions import ExecutionFilter
from tasks_app.queries.logs import LogQuery


class Executions(ApiView):
    query = {"GET": ExecutionFilter}

    @documented("List executions", ExecutionList, errors=(404,))
    def get(self, request: Request) -> Response:
        return listed(executions.page(self.principal, self.parameters), execution_out)


class ExecutionItem(ApiView):
    @documented("Read an execution with its logs and events", ExecutionDetail, errors=(404,))
    def get(self, request: Request, execution_id: str) -> Response:
        row = executions.get(self.principal, uuid_of("execution", execution_id))
        about = events.of_execution(self.principal, row)
        return answer(execution_detail(row, logs.last_of_execution(row), about))


class ExecutionLogs(ApiView):
    query = {"GET": LogQuery}

    @documented("List the log lines of an execution, oldest first", LogList, errors=(404,))
    def get(self, request: Request, execution_id: str) -> Response:
        uuid = uuid_of("execution", execution_id)
        return listed(logs.of_execution(self.principal, uuid, self.parameters), log_out)
