"""GET /api/costs and the numbers of a project."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tasks_app.domain import ids
from tasks_app.models import ExecutionCost, Organization, Project
from tests.api.client import Api, refused
from tests.api.rows import make_execution, make_task

pytestmark = pytest.mark.django_db
TODAY = datetime.now(UTC).date()


@pytest.fixture
def project(organization: Organization) -> Project:
    return Project.objects.create(organization=organization, slug="site", name="Site")


def spend(organization: Organization, amount: str, currency: str = "EUR", days_ago: int = 0, **more: Any) -> None:
    values = {"action_id": "core.echo", "provider": "acme", "input_tokens": 10, "output_tokens": 1, **more}
    ExecutionCost.objects.create(
        organization_id=organization.id,
        execution_id=ids.new_id(),
        amount=Decimal(amount),
        currency=currency,
        day=TODAY - timedelta(days=days_ago),
        created_at=datetime.now(UTC),
        **values,
    )


def test_sums_are_exact_and_apart_by_currency(viewer: Api, organization: Organization) -> None:
    for _ in range(10):
        spend(organization, "0.1")
    spend(organization, "0.000000000001")
    spend(organization, "7", "JPY")
    [row] = viewer.get("costs").json()["results"]
    assert row["day"] == TODAY.isoformat()
    assert row["cost"]["amounts"] == [
        {"currency": "EUR", "amount": "1.000000000001"},
        {"currency": "JPY", "amount": "7"},
    ]
    assert (row["cost"]["input_tokens"], row["cost"]["output_tokens"], row["cost"]["entries"]) == (120, 12, 12)


def test_groups_filters_and_pages(
    viewer: Api, organization: Organization, other_organization: Organization, project: Project
) -> None:
    spend(organization, "1", days_ago=0, project_id=project.id)
    spend(organization, "2", days_ago=1, action_id="seo.website.scan")
    spend(organization, "4", days_ago=40)
    spend(other_organization, "8")
    pages, cursor = [], None
    while True:
        answer = viewer.get("costs", limit=1, **({"cursor": cursor} if cursor else {})).json()
        pages += [row["day"] for row in answer["results"]]
        cursor = answer["next"]
        if not cursor:
            break
    assert pages == [TODAY.isoformat(), (TODAY - timedelta(days=1)).isoformat()]
    by_project = viewer.get("costs", group="project").json()["results"]
    assert [(row["project"], row["cost"]["amounts"][0]["amount"]) for row in by_project] == [
        (None, "2"),
        (project.public_id, "1"),
    ]
    by_action = viewer.get("costs", group="action", **{"from": str(TODAY - timedelta(days=60))}).json()["results"]
    assert [(row["action"], row["cost"]["amounts"][0]["amount"]) for row in by_action] == [
        ("core.echo", "5"),
        ("seo.website.scan", "2"),
    ]
    only = viewer.get("costs", project="site").json()["results"]
    assert [row["cost"]["amounts"][0]["amount"] for row in only] == ["1"]
    assert viewer.get("costs", action="none.such").json() == {"results": [], "next": None}


def test_nonsense_is_refused_by_name(viewer: Api, stranger: Api, project: Project) -> None:
    for given, field in [
        ({"group": "week"}, "group"),
        ({"from": "yesterday"}, "from"),
        ({"to": "2026-02-30"}, "to"),
        ({"from": "20261201"}, "from"),
        ({"from": "2026-12-02", "to": "2026-12-01"}, "from"),
        ({"from": "2020-01-01", "to": "2026-12-01"}, "from"),
        ({"since": "2026-12-01"}, "since"),
        ({"cursor": "zzz"}, "cursor"),
    ]:
        details = refused(viewer.get("costs", **given), 400, "INVALID_INPUT")["details"]
        assert details[0]["field"] == field, given
    refused(stranger.get("costs", project="site"), 404)
    refused(stranger.get(f"projects/{project.public_id}/dashboard"), 404)


def test_the_numbers_of_a_project(viewer: Api, organization: Organization, project: Project) -> None:
    for status, times in (("completed", 3), ("failed", 2), ("running", 1), ("waiting", 1)):
        for _ in range(times):
            task = make_task(organization, status=status, project=project)
            if status == "completed":
                make_execution(task)
    make_task(organization, project=None)
    spend(organization, "1.5", project_id=project.id)
    spend(organization, "9")
    viewer.get("me")
    with CaptureQueriesContext(connection) as said:
        found = viewer.get("projects/site/dashboard").json()
    assert len(said) <= 5  # key, project, numbers, costs
    assert {name: found[name] for name in ("running", "queued", "waiting", "completed", "failed", "cancelled")} == {
        "running": 1,
        "queued": 0,
        "waiting": 1,
        "completed": 3,
        "failed": 2,
        "cancelled": 0,
    }
    assert found["execution_ms"] == 37.5
    assert found["cost"]["amounts"] == [{"currency": "EUR", "amount": "1.5"}]
    assert found["exact_from"] is None
    assert date.fromisoformat(found["last_day"]) == TODAY
    before = viewer.get("projects/site/dashboard", to=str(TODAY - timedelta(days=1))).json()
    assert (before["completed"], before["cost"]["amounts"]) == (0, [])


def test_a_list_of_costs_is_three_statements(viewer: Api, organization: Organization) -> None:
    for days in range(20):
        spend(organization, "1", days_ago=days)
    viewer.get("me")
    with CaptureQueriesContext(connection) as said:
        assert len(viewer.get("costs").json()["results"]) == 20
    assert len(said) <= 4
