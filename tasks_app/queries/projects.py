"""Reading projects."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from django.db.models import Q, QuerySet

from tasks_app.domain import ids, jsonsafe
from tasks_app.domain.errors import NotFound
from tasks_app.domain.principal import Principal
from tasks_app.models import Project
from tasks_app.queries.paging import NewestFirst, Page


class ProjectFilter(NewestFirst):
    noun: ClassVar[str] = "project"

    def narrow(self, principal: Principal) -> QuerySet[Project]:
        principal.require("projects.read")
        return Project.objects.filter(organization_id=principal.organization_id)


def page(principal: Principal, query: ProjectFilter) -> Page[Project]:
    """A page of the organisation's projects."""
    return query.page(query.narrow(principal))


def get(principal: Principal, name: str) -> Project:
    """A project by TypeID or slug. Raises `NotFound`."""
    principal.require("projects.read")
    return find(principal, name)


def find(principal: Principal, name: str) -> Project:
    """`get` for callers that have checked what they may do already."""
    given = Q(slug=name)
    if name.startswith(f"{ids.PREFIXES['project']}_"):
        given = Q(id=ids.from_text("project", name))
    if jsonsafe.text_problem(name):
        raise NotFound("project", name)
    found = Project.objects.filter(given, organization_id=principal.organization_id).first()
    if found is None:
        raise NotFound("project", name)
    return found


def id_of(principal: Principal, name: str) -> UUID:
    """The id of a project named in a filter. Raises `NotFound`."""
    return find(principal, name).id
