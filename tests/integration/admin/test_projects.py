"""The page of a project: its numbers above the form."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tasks_app.domain import ids
from tasks_app.models import ExecutionCost, Organization, Project
from tests.api.rows import make_task


def test_a_project_shows_its_numbers(organization: Organization, desk: Callable[..., Client]) -> None:
    project = Project.objects.create(organization=organization, slug="site", name="Site")
    for status in ("completed", "completed", "failed", "running"):
        make_task(organization, status=status, project=project)
    ExecutionCost.objects.create(
        organization_id=organization.id,
        project_id=project.id,
        action_id="core.echo",
        execution_id=ids.new_id(),
        provider="acme",
        amount=Decimal("1234.5"),
        currency="EUR",
        day=datetime.now(UTC).date(),
        created_at=datetime.now(UTC),
    )
    address = f"/admin/tasks_app/project/{project.pk}/change/"
    for role in ("viewer", "admin"):
        client = desk(role)
        with CaptureQueriesContext(connection) as said:
            answer = client.get(address)
        assert answer.status_code == 200
        assert len(said) <= 14
        assert "1,234.50 EUR" in answer.text
        assert answer.context["numbers"].tasks["completed"] == 2


def test_another_organisation_sees_nothing(
    organization: Organization, other_organization: Organization, desk: Callable[..., Client]
) -> None:
    project = Project.objects.create(organization=organization, slug="site", name="Site")
    answer = desk("admin", other_organization).get(f"/admin/tasks_app/project/{project.pk}/change/")
    assert answer.status_code in (302, 404)
