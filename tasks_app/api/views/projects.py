"""/api/projects"""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from tasks_app.api.base import ApiView, answer, listed
from tasks_app.api.represent.costs import ProjectDashboardOut, project_dashboard_out
from tasks_app.api.represent.platform import ProjectList, ProjectOut, project_out
from tasks_app.api.requests import ProjectBody, ProjectPatch
from tasks_app.api.schema import documented
from tasks_app.queries import project_dashboard, projects
from tasks_app.queries.project_dashboard import DashboardQuery
from tasks_app.queries.projects import ProjectFilter
from tasks_app.services import projects as verbs


class Projects(ApiView):
    query = {"GET": ProjectFilter}

    @documented("List projects", ProjectList)
    def get(self, request: Request) -> Response:
        return listed(projects.page(self.principal, self.parameters), project_out)

    @documented("Create a project", ProjectOut, status=201, request=ProjectBody, errors=(409,))
    def post(self, request: Request) -> Response:
        body = self.body(ProjectBody)
        row = verbs.create(self.principal, body.slug, body.name, body.description)
        return answer(project_out(row), status=201, headers={"Location": f"/api/projects/{row.public_id}"})


class ProjectItem(ApiView):
    @documented("Read a project, by id or slug", ProjectOut, errors=(404,))
    def get(self, request: Request, project: str) -> Response:
        return answer(project_out(projects.get(self.principal, project)))

    @documented("Change a project", ProjectOut, request=ProjectPatch, errors=(404, 409))
    def patch(self, request: Request, project: str) -> Response:
        body = self.body(ProjectPatch)
        found = projects.get(self.principal, project)
        return answer(project_out(verbs.update(self.principal, found.id, **body.model_dump())))


class ProjectDashboard(ApiView):
    query = {"GET": DashboardQuery}

    @documented("Read the numbers of a project, by id or slug", ProjectDashboardOut, errors=(404,))
    def get(self, request: Request, project: str) -> Response:
        return answer(project_dashboard_out(project_dashboard.read(self.principal, project, self.parameters)))
