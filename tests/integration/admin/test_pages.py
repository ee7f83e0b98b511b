"""Pages of single rows: every tab, bounded, masked, and closed to other organisations."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tasks_app.admin.tasks import TaskAdmin
from tasks_app.domain.masking import MASK
from tasks_app.models import DeadLetterJob, Job, Organization
from tasks_app.services import secrets
from tests.api.rows import World, make_task, make_world

QUERIES_MAX = 20


@pytest.fixture
def world(organization: Organization) -> World:
    return make_world(organization)


def page(noun: str, key: object, tab: str = "", part: str = "change") -> str:
    return f"/admin/tasks_app/{noun}/{key}/{part}/" + (f"?tab={tab}" if tab else "")


TABS = [tab.name for tab in TaskAdmin.tabs]


@pytest.mark.parametrize("tab", TABS)
def test_every_tab_of_a_task(tab: str, world: World, desk: Callable[..., Client]) -> None:
    client = desk("viewer")
    with CaptureQueriesContext(connection) as said:
        answer = client.get(page("task", world.task.pk, tab))
    assert answer.status_code == 200
    assert len(said) <= QUERIES_MAX
    assert 'aria-current="page"' in answer.text
    live = client.get(page("task", world.task.pk, tab, "live")).json()
    assert live["live"] is False
    assert set(live["regions"]) == {"tab", "summary"}


@pytest.mark.parametrize(
    ("noun", "tabs"),
    [
        ("job", "overview executions logs events input output error"),
        ("execution", "overview logs input output error"),
        ("worker", "overview"),
        ("event", "overview"),
    ],
)
def test_every_tab_of_the_others(noun: str, tabs: str, world: World, desk: Callable[..., Client]) -> None:
    key = getattr(world, noun).pk
    client = desk("viewer")
    for tab in tabs.split():
        answer = client.get(page(noun, key, tab))
        assert answer.status_code == 200
        assert client.get(page(noun, key, tab, "live")).status_code == 200


def test_a_task_is_found_by_its_public_id(world: World, desk: Callable[..., Client]) -> None:
    answer = desk("viewer").get(page("task", world.task.public_id))
    assert answer.status_code == 200
    assert world.task.public_id in answer.text


def test_logs_come_from_actions_and_from_the_platform(world: World, desk: Callable[..., Client]) -> None:
    text = desk("viewer").get(page("task", world.task.pk, "logs")).text
    assert "hello" in text
    assert "from the platform" in text


def test_links_to_parent_children_and_project(world: World, desk: Callable[..., Client]) -> None:
    client = desk("viewer")
    overview = client.get(page("task", world.task.pk)).text
    assert page("task", world.parent.pk) in overview
    assert f"/admin/tasks_app/project/{world.project.pk}/change/" in overview
    assert page("task", world.task.pk) in client.get(page("task", world.parent.pk, "children")).text


def test_an_unfinished_task_says_that_it_is_live_and_why_it_waits(
    organization: Organization, desk: Callable[..., Client]
) -> None:
    task = make_task(organization, status="waiting")
    client = desk("viewer")
    text = client.get(page("task", task.pk)).text
    assert "Why it is not running" in text
    assert 'data-code="TIME"' in text or 'data-code="DUE"' in text or 'data-code="NO_SYSTEM_WORKER"' in text
    assert 'data-code="NO_WORKER"' in client.get(page("job", task.jobs.get().pk)).text
    assert f"/admin/tasks_app/task/{task.pk}/live/" in text
    assert client.get(page("task", task.pk, part="live")).json()["live"] is True


def test_a_running_task_shows_its_progress(organization: Organization, desk: Callable[..., Client]) -> None:
    task = make_task(organization, status="running")
    live = desk("viewer").get(page("task", task.pk, "progress", "live")).json()
    assert 'value="50.0"' in live["regions"]["summary"]
    assert "1 of 2" in live["regions"]["tab"]


def test_secrets_and_broken_characters(organization: Organization, desk: Callable[..., Client]) -> None:
    sealed = {secrets.MARK: "gAAAAABsealed"}
    error = {
        "code": "TEST_FAILED",
        "message": "<script>alert(1)</script> \ufffd",
        "details": {"token": sealed},
        "traceback": 'Traceback (most recent call last):\n  File "x.py", line 1\nValueError: no',
    }
    task = make_task(organization, status="failed", input={"url": "https://x.test", "token": sealed}, error=error)
    client = desk("viewer")
    given = client.get(page("task", task.pk, "input")).text
    assert "https://x.test" in given
    assert "gAAAAABsealed" not in given
    assert MASK in given
    failed = client.get(page("task", task.pk, "error")).text
    assert "gAAAAABsealed" not in failed
    assert "<script>alert" not in failed
    assert "ValueError: no" in failed


@pytest.mark.parametrize("error", ["a text", ["a", "list"], 7, {"no": "code"}, {"code": None, "message": None}])
def test_an_error_of_any_shape_can_be_shown(
    error: object, organization: Organization, desk: Callable[..., Client]
) -> None:
    task = make_task(organization, status="failed", error=error)
    client = desk("viewer")
    assert client.get(page("task", task.pk, "error")).status_code == 200
    assert client.get("/admin/tasks_app/task/").status_code == 200


@pytest.mark.parametrize("progress", [{"percentage": "x"}, {"current": 5}, [1], "half", {"percentage": 1e9}, {}])
def test_progress_of_any_shape_can_be_shown(
    progress: object, organization: Organization, desk: Callable[..., Client]
) -> None:
    task = make_task(organization, status="running")
    Job.objects.filter(task=task).update(progress=progress)
    client = desk("viewer")
    for tab in ("overview", "progress"):
        assert client.get(page("task", task.pk, tab)).status_code == 200
    assert client.get("/admin/tasks_app/task/").status_code == 200


def test_a_huge_output_is_cut_and_says_so(organization: Organization, desk: Callable[..., Client]) -> None:
    task = make_task(organization, output={"text": "z" * 600_000})
    answer = desk("viewer").get(page("task", task.pk, "output"))
    assert len(answer.content) < 400_000
    assert "Cut here" in answer.text


def test_a_task_with_very_many_jobs_is_read_in_part(organization: Organization, desk: Callable[..., Client]) -> None:
    task = make_task(organization)
    Job.objects.bulk_create(
        Job(task=task, organization=organization, action_id="core.echo", queue_id="default") for _ in range(300)
    )
    client = desk("viewer")
    assert client.get(page("task", task.pk)).text.count('class="d-id"') < 70
    with CaptureQueriesContext(connection) as said:
        client.get("/admin/tasks_app/task/")
    assert all("jobs" not in q["sql"] or "limit" in q["sql"].lower() or "lease" in q["sql"] for q in said)


def test_ids_of_nothing_are_not_found(organization: Organization, desk: Callable[..., Client]) -> None:
    client = desk("viewer")
    for noun in ("task", "job", "execution", "event", "deadletterjob", "queue", "worker", "apikey"):
        for key in ("x", "%00", "9" * 60, "00000000-0000-0000-0000-000000000000", "task_zzz", "é"):
            assert client.get(page(noun, key)).status_code == 404, (noun, key)


def test_rows_of_another_organisation_are_not_found(
    world: World, other_organization: Organization, desk: Callable[..., Client], root: Client
) -> None:
    dead = DeadLetterJob.objects.create(
        organization=world.task.organization,
        job=world.job,
        execution_id=world.execution.id,
        action_id="core.echo",
        error={},
        fingerprint="f" * 64,
    )
    stranger = desk("admin", other_organization)
    rows = {
        "task": world.task,
        "job": world.job,
        "execution": world.execution,
        "event": world.event,
        "apikey": world.key,
        "deadletterjob": dead,
    }
    for noun, row in rows.items():
        assert stranger.get(page(noun, row.pk)).status_code == 404, noun
        assert stranger.get(page(noun, row.pk, part="live")).status_code == 404 or noun == "event"
        assert list(stranger.get(f"/admin/tasks_app/{noun}/").context["cl"].result_list) == []
        assert root.get(page(noun, row.pk)).status_code == 200, noun


def test_runtime_rows_cannot_be_added_changed_or_deleted(world: World, root: Client) -> None:
    for noun, row in {"task": world.task, "job": world.job, "execution": world.execution, "event": world.event}.items():
        assert root.get(f"/admin/tasks_app/{noun}/add/").status_code == 403
        assert root.get(page(noun, row.pk, part="delete")).status_code == 403
        before = type(row).objects.filter(pk=row.pk).values().get()
        root.post(page(noun, row.pk), {"status": "failed", "name": "changed"})
        assert type(row).objects.filter(pk=row.pk).values().get() == before
