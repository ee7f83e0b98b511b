"""Lists: bounded, keyset-paged, and deaf to nonsense in the address."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tasks_app.admin import changelist
from tasks_app.models import AuditEntry, DeadLetterJob, Organization, Project
from tests.api.rows import make_event, make_execution, make_task, make_worker

QUERIES_MAX = 12
LISTS = [
    "task",
    "job",
    "execution",
    "deadletterjob",
    "approval",
    "queue",
    "worker",
    "event",
    "auditentry",
    "project",
    "apikey",
    "organization",
    "membership",
]
BIG = ("tasks", "jobs", "executions", "events", "audit_entries", "dead_letter_jobs")


def address(noun: str, query: str = "") -> str:
    return f"/admin/tasks_app/{noun}/{query}"


def ids_on(client: Client, url: str) -> tuple[list[str], Any]:
    answer = client.get(url)
    assert answer.status_code == 200, url
    cl = answer.context["cl"]
    return [str(row.pk) for row in cl.result_list], cl


@pytest.fixture
def crowd(organization: Organization) -> Organization:
    """Thirty of everything that grows."""
    for number in range(30):
        task = make_task(organization, status="running" if number % 3 else "failed", correlation_id=f"c-{number // 2}")
        execution = make_execution(task, status="failed" if number % 2 else "completed", worker=make_worker())
        make_event(task, "task.created", execution)
        DeadLetterJob.objects.create(
            organization=organization,
            job=task.jobs.get(),
            execution_id=execution.id,
            action_id=task.type,
            error={"code": "X", "message": "y"},
            fingerprint="f" * 64,
        )
        AuditEntry.objects.create(
            organization_id=organization.id,
            actor_type="user",
            actor_id="1",
            verb="task.submit",
            object_type="task",
            object_id=task.public_id,
        )
    return organization


@pytest.mark.parametrize("noun", LISTS)
def test_a_list_costs_few_statements_and_counts_nothing_big(
    noun: str, crowd: Organization, desk: Callable[..., Client]
) -> None:
    client = desk("admin")
    client.get(address(noun))
    with CaptureQueriesContext(connection) as said:
        answer = client.get(address(noun))
    assert answer.status_code == 200
    assert len(said) <= QUERIES_MAX, [query["sql"][:150] for query in said]
    for query in said:
        counted = re.search(r"count\(.*?from \"?(\w+)", query["sql"], re.I | re.S)
        if counted and counted.group(1) in BIG:
            assert re.search(r"limit \d+", query["sql"], re.I), query["sql"]


def test_pages_follow_the_ids_and_miss_nothing(organization: Organization, desk: Callable[..., Client]) -> None:
    made = [str(make_task(organization, status="queued").pk) for _ in range(60)]
    client, url, seen, pages = desk("viewer"), address("task"), [], []
    while url:
        rows, cl = ids_on(client, url)
        seen += rows
        pages.append(rows)
        url = address("task", cl.older_url) if cl.older_url else ""
        assert cl.further_url == ""
    assert seen == made[::-1]
    assert [len(page) for page in pages] == [25, 25, 10]
    _, last = ids_on(client, address("task", f"?after={pages[1][-1]}"))
    back, cl = ids_on(client, address("task", last.newer_url))
    assert back == pages[1]
    first, cl = ids_on(client, address("task", cl.newer_url))
    assert first == pages[0]
    assert cl.newer_url == ""


def test_a_page_stays_put_while_rows_arrive(organization: Organization, desk: Callable[..., Client]) -> None:
    made = [str(make_task(organization, status="queued").pk) for _ in range(30)]
    client = desk("viewer")
    _, cl = ids_on(client, address("task"))
    make_task(organization, status="queued")
    rows, _ = ids_on(client, address("task", cl.older_url))
    assert rows == made[:5][::-1]


@pytest.mark.parametrize("status", ["running", "waiting", "queued", "paused", "completed", "failed", "cancelled"])
def test_tabs_show_one_status(status: str, organization: Organization, desk: Callable[..., Client]) -> None:
    wanted = [str(make_task(organization, status=s).pk) for s in ("queued", "completed", "failed", "running")]
    by_status = dict(zip(("queued", "completed", "failed", "running"), wanted, strict=True))
    rows, _ = ids_on(desk("viewer"), address("task", f"?status={status}"))
    assert rows == ([by_status[status]] if status in by_status else [])


def test_search_and_filters(organization: Organization, desk: Callable[..., Client]) -> None:
    project = Project.objects.create(organization=organization, slug="shop", name="Shop")
    one = make_task(organization, status="queued", name="Scan of the shop", correlation_id="order-7", project=project)
    two = make_task(organization, status="queued", name="Other", type="net.dns.check", priority=5, parent_task=one)
    client = desk("viewer")

    def found(query: str) -> list[str]:
        return ids_on(client, address("task", query))[0]

    assert found(f"?q={one.public_id}") == [str(one.pk)]
    assert found(f"?q={one.pk}") == [str(one.pk)]
    assert found("?q=order-7") == [str(one.pk)]
    assert found("?q=SHOP") == [str(one.pk)]
    assert found("?q=dns") == [str(two.pk)]
    assert found("?type=net.dns.check") == [str(two.pk)]
    assert found("?priority=high") == [str(two.pk)]
    assert found(f"?project={project.public_id}") == [str(one.pk)]
    assert found(f"?parent={one.public_id}") == [str(two.pk)]
    assert found("?correlation=order-7") == [str(one.pk)]
    today = one.created_at.date().isoformat()
    assert len(found(f"?created_at_from={today}&created_at_to={today}")) == 2
    assert found("?created_at_to=2020-01-01") == []


def test_a_search_without_an_index_is_bounded_and_goes_on(
    organization: Organization, desk: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changelist, "WINDOW", 20)
    old = make_task(organization, status="queued", name="needle")
    for _ in range(45):
        make_task(organization, status="queued")
    client, query, steps = desk("viewer"), "?q=needle", 0
    rows, cl = ids_on(client, address("task", query))
    while not rows:
        assert cl.further_url, "there is always a way on"
        assert cl.cut_at_text == "20"
        steps += 1
        rows, cl = ids_on(client, address("task", cl.further_url))
    assert rows == [str(old.pk)]
    assert steps == 2


NONSENSE = [
    "?q=%00",
    "?q=%ED%A0%80",
    "?q=" + "x" * 5000,
    "?status=%00",
    "?status=" + "y" * 10_000,
    "?type=a%00b",
    "?project=nope",
    "?project=task_01h455vb4pex5vsknk084sn02q",
    "?priority=" + "9" * 40,
    "?p=10000",
    "?p=-1",
    "?p=x",
    "?p=" + "9" * 60,
    "?after=zzz",
    "?after=%00",
    "?before=99999999-9999-9999-9999-999999999999",
    "?o=9.9.9",
    "?all=1",
    "?foo=1&bar=2",
    "?created_at_from=0001-01-01&created_at_to=9999-12-31",
    "?created_at_from=2026-99-99",
    "?created_at_from=%00",
    "?parent=%00",
    "?correlation=%00",
    "?organization=zz",
    "?input__contains=x",
    "?e=1",
]


@pytest.mark.parametrize(
    "noun", ["task", "job", "execution", "deadletterjob", "event", "auditentry", "apikey", "queue"]
)
def test_nonsense_in_the_address_is_never_an_error(
    noun: str, organization: Organization, desk: Callable[..., Client]
) -> None:
    client = desk("admin")
    for query in NONSENSE:
        answer = client.get(address(noun, query), follow=True)
        assert answer.status_code in (200, 400), query[:80]
