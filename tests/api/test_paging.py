"""Pages: every row once, whatever happens between two of them, and always few statements."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from tasks_app.domain.principal import Actor, Principal
from tasks_app.domain.states import ExecutionStatus, JobStatus, TaskStatus
from tasks_app.models import Job, Organization, Task
from tasks_app.queries import fields, paging
from tasks_app.queries.executions import ExecutionFilter
from tasks_app.queries.jobs import JobFilter
from tasks_app.queries.tasks import TaskFilter
from tests.api.client import Api, refused
from tests.api.rows import World, add_log, make_event, make_execution, make_letter, make_task, make_worker

pytestmark = pytest.mark.django_db

QUERIES_MAX = 12


def walk(api: Api, path: str, between: Callable[[], Any] = lambda: None, **parameters: Any) -> list[str]:
    """The ids of all pages in order."""
    seen: list[str] = []
    cursor: dict[str, str] = {}
    for _ in range(200):
        body = api.get(path, **parameters, **cursor).json()
        seen += [row["id"] for row in body["results"]]
        if body["next"] is None:
            return seen
        cursor = {"cursor": body["next"]}
        between()
    raise AssertionError("the pages do not end")


@pytest.mark.parametrize("ordering", ["-created_at", "created_at"])
def test_equal_times_lose_nothing(viewer: Api, organization: Organization, ordering: str) -> None:
    same = timezone.now()
    made = [make_task(organization, created_at=same).public_id for _ in range(23)]
    expected = sorted(made, reverse=ordering == "-created_at")
    assert walk(viewer, "tasks", limit=5, ordering=ordering) == expected


def test_new_and_deleted_rows_between_pages(viewer: Api, organization: Organization) -> None:
    made = [make_task(organization) for _ in range(20)]
    doomed = [task.id for task in made[:4]]

    def meanwhile() -> None:
        make_task(organization)
        if doomed:
            Task.objects.filter(id=doomed.pop()).delete()

    seen = walk(viewer, "tasks", meanwhile, limit=5)
    assert len(seen) == len(set(seen))
    assert {task.public_id for task in made[4:]} <= set(seen)
    assert seen == sorted(seen, reverse=True)


def test_a_rare_row_behind_many_others_is_found(
    viewer: Api, organization: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page tries a bounded number of rows; one that is empty has a next all the same."""
    rare = [make_task(organization, name="needle").public_id for _ in range(2)]
    for _ in range(15):
        make_task(organization)
    monkeypatch.setattr(paging, "SCAN_MAX", 4)
    first = viewer.get("tasks", q="needle", limit=2).json()
    assert first["results"] == [] and first["next"] is not None
    assert walk(viewer, "tasks", q="needle", limit=2) == sorted(rare, reverse=True)
    assert walk(viewer, "tasks", q="needle", limit=1, ordering="created_at") == sorted(rare)


def test_every_list_has_pages(admin: Api, world: World, organization: Organization) -> None:
    for number in range(3):
        execution = make_execution(world.task, attempt=number + 2)
        make_event(world.task, "execution.started", execution)
        make_worker()
        admin.post("projects", {"slug": f"p{number}"})
        make_letter(world.task, fingerprint=str(number) * 64)
    at = f"tasks/{world.task.public_id}"
    lists = ["tasks", "jobs", "executions", "events", "queues", "workers", "projects", "keys", "audit", "actions"]
    lists += ["dead-letters", "dead-letters/groups"]
    for path in [*lists, f"{at}/executions", f"{at}/events", f"{at}/logs"]:
        body = admin.get(path, limit=1).json()
        assert len(body["results"]) == 1 and body["next"], path
        second = admin.get(path, limit=1, cursor=body["next"]).json()
        assert second["results"][0] != body["results"][0], path
    queues = admin.get("queues", limit=200).json()["results"]
    assert [row["name"] for row in queues] == sorted(row["name"] for row in queues)


def test_a_cursor_belongs_to_its_list_and_order(viewer: Api, organization: Organization) -> None:
    for _ in range(3):
        make_task(organization)
    cursor = viewer.get("tasks", limit=1).json()["next"]
    refused(viewer.get("jobs", cursor=cursor), 400, "INVALID_INPUT")
    refused(viewer.get("tasks", cursor=cursor, ordering="created_at"), 400, "INVALID_INPUT")
    refused(viewer.get("tasks", cursor=cursor[:-4]), 400, "INVALID_INPUT")


@pytest.fixture
def crowd(organization: Organization) -> Task:
    parent = make_task(organization)
    for number in range(12):
        status = ("completed", "failed", "running", "queued")[number % 4]
        task = make_task(organization, status=status, parent_task=parent)
        execution = make_execution(task, status="running" if status == "running" else "completed", worker=make_worker())
        Job.objects.filter(task=task, status="running").update(worker_id=execution.worker_id)
        make_event(task, "execution.started", execution)
        add_log(execution, "x")
    return parent


LISTS: list[tuple[str, dict[str, Any]]] = [
    ("tasks", {}), ("tasks", {"status": "failed,running,completed", "q": "e", "type": "core.*"}),
    ("tasks/{}/children", {}), ("tasks/{}/jobs", {}), ("tasks/{}/executions", {}), ("tasks/{}/logs", {}),
    ("tasks/{}/events", {}), ("jobs", {}), ("jobs", {"status": "running,failed"}), ("executions", {}),
    ("executions", {"status": "failed", "action": "core.*"}), ("events", {}), ("events", {"type": "task.*"}),
    ("queues", {}), ("queues/default", {}), ("workers", {}), ("projects", {}), ("keys", {}), ("audit", {}),
    ("actions", {}), ("me", {}), ("tasks/{}", {}),
]  # fmt: skip


@pytest.mark.parametrize(("path", "parameters"), LISTS)
def test_few_statements_however_many_rows(
    admin: Api, crowd: Task, django_assert_max_num_queries: Any, path: str, parameters: dict[str, Any]
) -> None:
    path = path.format(crowd.public_id)
    admin.get(path)
    with django_assert_max_num_queries(QUERIES_MAX) as small:
        first = admin.get(path, **parameters, **({"limit": 2} if "/" not in path and path != "me" else {}))
    with django_assert_max_num_queries(QUERIES_MAX) as large:
        second = admin.get(path, **parameters)
    assert (first.status_code, second.status_code) == (200, 200)
    assert len(large.captured_queries) <= len(small.captured_queries) + 1


def test_details_take_few_statements(admin: Api, world: World, django_assert_max_num_queries: Any) -> None:
    for path in (f"executions/{world.execution.public_id}", f"jobs/{world.job.public_id}"):
        with django_assert_max_num_queries(QUERIES_MAX):
            assert admin.get(path).status_code == 200


def principal_of(organization: Organization) -> Principal:
    return Principal(Actor("system", "tests"), organization.id, "admin")


def test_counts_stop_at_a_limit(organization: Organization, other_organization: Organization) -> None:
    for _ in range(5):
        make_task(organization)
    make_task(other_organization)
    everything = TaskFilter()
    assert everything.count(principal_of(organization), at_most=10) == paging.Count(5, exact=True)
    assert everything.count(principal_of(organization), at_most=3) == paging.Count(3, exact=False)


def plan_of(queryset: Any) -> str:
    sql, parameters = queryset.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(f"explain {sql}", parameters)
        return "\n".join(row[0] for row in cursor.fetchall())


@pytest.fixture
def full_tables(organization: Organization) -> None:
    """Enough rows, nearly all of them completed, that a plan without its index would be seen."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            insert into tasks (id, type, name, description, status, priority, organization_id, input, created_by_type,
              created_by_id, correlation_id, request_id, created_at, completed_at, check_at, cancel_requested_by,
              cancel_reason)
            select devos_new_id(), 'core.noop', '', '', case when n %% 1000 = 0 then 'failed' else 'completed' end, 0,
              %(org)s, '{}', 'system', 'x', 'c' || n, '', now(), now(), now(), '', '' from generate_series(1, 20000) n;
            """,
            {"org": organization.id},
        )
        cursor.execute(
            """
            insert into jobs (id, task_id, organization_id, action_id, queue, status, priority, attempt, max_attempts,
              interruptions, uncounted, available_at, created_at, completed_at, after, input)
            select devos_new_id(), id, organization_id, type, 'default', status, 0, 1, 1, 0, 0, now(), now(), now(),
              '{}', '{}' from tasks;
            """
        )
        cursor.execute(
            """
            insert into executions (id, action_id, organization_id, task_id, job_id, status, mode, actor_type, actor_id,
              attempt, max_attempts, created_at, started_at, completed_at, correlation_id, interrupted, steps_reused,
              log_lines_dropped, error)
            select devos_new_id(), action_id, organization_id, task_id, id, status, 'async', 'system', 'x', 1, 1, now(),
              now(), now(), 'c', false, 0, 0,
              case when status in ('failed', 'cancelled') then '{"code": "X"}'::jsonb end
            from jobs;
            """
        )
        cursor.execute("analyze tasks; analyze jobs; analyze executions")


@pytest.mark.usefixtures("full_tables")
def test_lists_are_served_by_their_indexes(organization: Organization) -> None:
    principal = principal_of(organization)

    def plan(query: Any) -> str:
        return plan_of(query.narrow(principal).order_by("-id")[:51])

    assert "tasks_by_status" in plan(TaskFilter(status=[TaskStatus.FAILED]))
    assert "tasks_by_status" in plan(TaskFilter(status=[TaskStatus.FAILED, TaskStatus.QUEUED]))
    assert "tasks_correlation" in plan(TaskFilter(correlation_id="c7"))
    assert "jobs_by_status" in plan(JobFilter(status=[JobStatus.FAILED]))
    assert "jobs_leased" in plan(JobFilter(status=[JobStatus.RUNNING]))
    assert "executions_with_error" in plan(ExecutionFilter(status=[ExecutionStatus.FAILED]))
    for query in (TaskFilter(), JobFilter(), ExecutionFilter(), TaskFilter(status=[TaskStatus.FAILED])):
        assert "Seq Scan" not in plan(query)


def test_ids_carry_their_time(organization: Organization) -> None:
    task = make_task(organization)
    soon = task.created_at + timedelta(seconds=1)
    assert Task.objects.filter(fields.made_between(None, soon), id=task.id).exists()
    assert not Task.objects.filter(fields.made_between(soon, None), id=task.id).exists()
