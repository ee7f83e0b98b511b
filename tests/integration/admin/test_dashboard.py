"""The numbers of the dashboard: right, bounded, live."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tasks_app.domain.states import EXECUTION_STOPPED
from tasks_app.models import DeadLetterJob, Execution, Job, Organization, Queue
from tasks_app.queries import dashboard
from tests.api.rows import make_execution, make_task, make_worker


def ended(organization: Organization, status: str, minutes_ago: float, code: str = "X", ms: float = 10.0) -> Execution:
    task = make_task(organization, status="failed" if status == "failed" else "completed")
    at = timezone.now() - timedelta(minutes=minutes_ago)
    return Execution.objects.create(
        id=dashboard.first_id_at(at - timedelta(seconds=1)).__class__(
            int=dashboard.first_id_at(at - timedelta(seconds=1)).int | (task.pk.int & ((1 << 70) - 1))
        ),
        action_id="core.echo",
        organization=organization,
        task_id=task.pk,
        job=task.jobs.get(),
        status=status,
        actor_type="user",
        actor_id="1",
        attempt=1,
        max_attempts=1,
        started_at=at - timedelta(seconds=1),
        completed_at=at,
        duration_ms=ms,
        correlation_id="c",
        error={"code": code, "message": "m"} if status in EXECUTION_STOPPED else None,
    )


def test_executions_of_the_last_hour(organization: Organization, other_organization: Organization) -> None:
    for minutes in (0.5, 2, 30, 58):
        ended(organization, "completed", minutes, ms=minutes * 100)
    ended(organization, "failed", 3, "NETWORK_TIMEOUT")
    ended(organization, "failed", 4, "NETWORK_TIMEOUT")
    ended(organization, "failed", 5, "INVALID_INPUT")
    ended(organization, "completed", 90)
    ended(other_organization, "completed", 1)
    hour = dashboard.executions_of_last_hour(dashboard.Scope([organization.id]))
    assert len(hour["per_minute"]) == 60
    assert sum(row["completed"] for row in hour["per_minute"]) == 4
    assert sum(row["failed"] for row in hour["per_minute"]) == 3
    assert [(row["code"], row["times"]) for row in hour["failures"]] == [("NETWORK_TIMEOUT", 2), ("INVALID_INPUT", 1)]
    assert hour["slowest"][0]["runs"] == 4
    assert hour["slowest"][0]["max_ms"] == 5800
    everywhere = dashboard.executions_of_last_hour(dashboard.Scope(None))
    assert sum(row["completed"] for row in everywhere["per_minute"]) == 5
    both = dashboard.executions_of_last_hour(dashboard.Scope([organization.id, other_organization.id]))
    assert sum(row["completed"] for row in both["per_minute"]) == 5


def test_minutes_too_busy_to_count_again_are_remembered(
    organization: Organization, root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for minutes in (10, 20, 30):
        ended(organization, "completed", minutes)
    assert sum(root.get("/admin/live/").json()["series"]["completed"]) == 3
    monkeypatch.setattr(dashboard, "SAMPLE_MAX", 2)
    for seconds in (1, 2, 3):
        ended(organization, "failed", seconds / 60)
    from django.core.cache import cache

    for key in ["desk-dashboard-all", f"desk-dashboard-{organization.id}"]:
        cache.delete(key)
    series = root.get("/admin/live/").json()["series"]
    assert sum(series["completed"]) == 3


def test_queues_by_depth_and_oldest(organization: Organization) -> None:
    now = timezone.now()
    task = make_task(organization)
    Job.objects.bulk_create(
        Job(
            task=task,
            organization=organization,
            action_id="core.echo",
            queue_id="high",
            priority=priority,
            available_at=now - timedelta(seconds=seconds),
        )
        for priority, seconds in [(5, 10), (5, 20), (0, 300), (-7, 40)]
    )
    make_task(organization, status="running")
    Job.objects.create(
        task=task,
        organization=organization,
        action_id="core.echo",
        queue_id="low",
        status="pending",
        blocked_by={"reason": "time"},
    )
    Queue.objects.filter(name="low").update(paused_at=now, pause_reason="x")
    Queue.objects.filter(name="agent").update(paused_at=now, paused_until=now - timedelta(seconds=1))
    found = {row["name"]: row for row in dashboard.queues()}
    assert found["high"]["depth"] == 4
    assert 299 < found["high"]["oldest_s"] < 330
    assert found["default"]["running"] == 1
    assert found["default"]["oldest_s"] is None
    assert (found["low"]["waiting"], found["low"]["paused"]) == (1, True)
    assert found["agent"]["paused"] is False


def test_live_workers_name_only_the_jobs_of_the_scope(
    organization: Organization, other_organization: Organization
) -> None:
    make_worker(last_seen_at=timezone.now() - timedelta(minutes=5))
    make_worker(stopped_at=timezone.now())
    make_task(organization, status="running")
    make_task(other_organization, status="running")
    workers = dashboard.live_workers(dashboard.Scope([organization.id]))
    assert len(workers) == 2
    assert sum(worker["running"] for worker in workers) == 2
    assert sum(len(worker["jobs"]) for worker in workers) == 1


def test_open_numbers_are_bounded(organization: Organization, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(4):
        task = make_task(organization, status="failed")
        execution = make_execution(task, status="failed")
        DeadLetterJob.objects.create(
            organization=organization,
            job=task.jobs.get(),
            execution_id=execution.id,
            action_id="core.echo",
            error={},
            fingerprint="f" * 64,
        )
    numbers = dashboard.open_numbers(dashboard.Scope([organization.id]))
    assert (numbers["dead_letters"], numbers["failed"]) == (4, 4)
    monkeypatch.setattr(dashboard, "OPEN_MAX", 2)
    assert dashboard.open_numbers(dashboard.Scope([organization.id]))["failed"] == 3


def test_the_page_is_few_statements_and_its_live_data_fewer(
    organization: Organization, desk: Callable[..., Client]
) -> None:
    ended(organization, "failed", 1, "<b>BOLD</b>")
    make_task(organization, status="running")
    client = desk("viewer")
    with CaptureQueriesContext(connection) as said:
        answer = client.get("/admin/")
    assert answer.status_code == 200
    assert len(said) <= 20
    assert "<b>BOLD</b>" not in answer.text
    with CaptureQueriesContext(connection) as said:
        live = client.get("/admin/live/")
    assert len(said) <= 5, "kept numbers are used again"
    body = live.json()
    assert body["live"] is True
    assert set(body["regions"]) == {"tiles", "queues", "workers", "failures", "slowest"}
    assert sum(body["series"]["failed"]) == 1
    assert "no-store" in live.headers["Cache-Control"]


def test_badges_in_the_sidebar(organization: Organization, desk: Callable[..., Client]) -> None:
    make_execution(make_task(organization, status="failed"), status="failed")
    text = desk("viewer").get("/admin/").text
    entry = text.split("/admin/tasks_app/execution/", 1)[1][:2500]
    assert ">\n        \n            1\n" in entry or "1" in entry.split("</a>")[0]


def test_an_empty_desk(root: Client, organization: Organization) -> None:
    text = root.get("/admin/").text
    assert "No live worker" in text
    assert "Nothing failed within the hour." in text
    assert User.objects.count() == 1
