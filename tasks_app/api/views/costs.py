"""/api/costs"""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from tasks_app.api.base import ApiView, listed
from tasks_app.api.represent.costs import CostList, cost_group_out
from tasks_app.api.schema import documented
from tasks_app.queries import costs
from tasks_app.queries.costs import CostFilter


class Costs(ApiView):
    query = {"GET": CostFilter}

    @documented("Sum costs by day, project or action", CostList, errors=(404,))
    def get(self, request: Request) -> Response:
        page = costs.page(self.principal, self.parameters)
        return listed(page, cost_group_out(self.parameters.group))
