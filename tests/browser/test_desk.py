"""The desk in a browser: what an operator does all day, by mouse, by keyboard, in the dark and on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import expect

from tasks_app.admin.tasks import TaskAdmin
from tasks_app.models import ApiKey, AuditEntry, ExecutionLog, Job, Organization, Task
from tests.api.rows import World, add_log, make_execution, make_task, make_world
from tests.support.waiting import until

Visit = Callable[..., Any]


@pytest.fixture
def world(organization: Organization) -> World:
    for status in ("queued", "running", "failed", "waiting"):
        make_task(organization, status=status, name=f"A {status} one")
    failed = Task.objects.get(status="failed")
    Task.objects.filter(pk=failed.pk).update(error={"code": "NETWORK_TIMEOUT", "message": "no answer"})
    make_execution(failed, status="failed")
    return make_world(organization)


def test_a_wrong_password_is_refused_and_the_right_one_opens_the_dashboard(
    visit: Visit, world: World, person: Callable[..., User]
) -> None:
    visitor = visit()
    page = visitor.go("/admin/")
    assert "/admin/login/" in page.url
    expect(page).to_have_title(re.compile("DevOS"))
    page.fill("#id_username", "nobody")
    page.fill("#id_password", "wrong")
    page.click("button[type=submit]")
    expect(page.get_by_text("Please enter the correct username")).to_be_visible()
    visitor.picture("login")
    page = visitor.login(person("viewer"))
    expect(page).to_have_title(re.compile("Dashboard"))
    expect(page.get_by_text("Open dead letters")).to_be_visible()


def test_the_dashboard_follows_what_happens(visit: Visit, world: World, person: Callable[..., User]) -> None:
    visitor = visit()
    page = visitor.login(person("viewer"))
    queued = page.locator(".d-tile", has_text="Ready in queues").locator("strong")
    expect(queued).to_have_text("1")
    drawn = page.evaluate(
        "(() => { const c = document.getElementById('throughput'), d = c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data; return d.some((v) => v !== 0); })()"
    )
    assert drawn, "the chart has been drawn"
    for _ in range(3):
        make_task(world.task.organization, status="queued")
    expect(queued).to_have_text("4", timeout=15_000)
    expect(page.locator("[data-live-sign] span").first).to_have_text("live")
    visitor.picture("dashboard")
    assert not visitor.overflows()


def test_lists_tabs_and_every_tab_of_a_task(visit: Visit, world: World, person: Callable[..., User]) -> None:
    visitor = visit()
    page = visitor.login(person("viewer"))
    page.locator("#nav-sidebar").get_by_role("link", name="Tasks", exact=True).click()
    expect(page).to_have_title(re.compile("^Tasks|Tasks"))
    visitor.picture("tasks")
    page.locator("#tabs-items").get_by_text("Failed", exact=True).click()
    expect(page.locator("#result_list tbody")).to_have_count(1)
    page.locator("#result_list tbody a").first.click()
    expect(page.get_by_text("NETWORK_TIMEOUT: no answer")).to_be_visible()
    for tab in TaskAdmin.tabs:
        page.locator(".d-tabs").get_by_role("link", name=tab.title, exact=True).click()
        expect(page.locator(".d-tabs [aria-current=page]")).to_have_text(tab.title)
        expect(page.locator(f"#tab-{tab.name} .d-card").first).to_be_visible()
        assert not visitor.overflows(), tab.name
    visitor.picture("task_error")


def test_filters_narrow_the_list(visit: Visit, world: World, person: Callable[..., User]) -> None:
    visitor = visit()
    visitor.login(person("viewer"))
    page = visitor.go("/admin/tasks_app/task/")
    page.get_by_role("button", name="Filters").click()
    page.locator("#changelist-filter select[name=status]").select_option("running")
    visitor.picture("filters")
    page.locator("#filter-form").evaluate("form => form.submit()")
    page.wait_for_url("**status=running**")
    expect(page.locator("#result_list tbody")).to_have_count(1)


def test_cancel_with_a_reason(visit: Visit, world: World, person: Callable[..., User]) -> None:
    task = Task.objects.get(status="queued")
    visitor = visit()
    visitor.login(person("operator"))
    page = visitor.go(f"/admin/tasks_app/task/{task.pk}/change/")
    page.get_by_role("link", name="Cancel").click()
    expect(page.get_by_role("heading", name="Cancel this task?")).to_be_visible()
    visitor.picture("confirm")
    page.get_by_label("Reason").fill("the order was withdrawn")
    page.get_by_role("button", name="Yes, cancel it").click()
    expect(page.get_by_text("The task is cancelled.")).to_be_visible()
    expect(page.locator(".d-summary .d-badge")).to_have_text("Cancelled")
    assert AuditEntry.objects.get(verb="task.cancel").reason == "the order was withdrawn"


def test_retry_a_failed_task(visit: Visit, world: World, person: Callable[..., User]) -> None:
    task = Task.objects.get(status="failed")
    visitor = visit()
    visitor.login(person("operator"))
    page = visitor.go(f"/admin/tasks_app/task/{task.pk}/change/")
    page.get_by_role("link", name="Retry").click()
    page.get_by_label("Reason").fill("the host is back")
    page.get_by_role("button", name="Retry").click()
    expect(page.locator(".d-summary .d-badge")).to_have_text("Queued")
    assert AuditEntry.objects.get(verb="task.retry").reason == "the host is back"


def test_bulk_cancel_from_the_list(visit: Visit, world: World, person: Callable[..., User]) -> None:
    visitor = visit()
    visitor.login(person("operator"))
    page = visitor.go("/admin/tasks_app/task/?status=queued")
    page.locator("#result_list input.action-select").first.check()
    page.locator("#changelist-actions select[name=action]").select_option("bulk_cancel")
    page.locator("#changelist-actions").get_by_role("button", name="Run").click()
    page.get_by_label("Reason").fill("clean up")
    page.get_by_role("button", name="Cancel 1").click()
    expect(page.get_by_text("Cancel: 1 done.")).to_be_visible()
    assert not Task.objects.filter(status="queued").exists()


def test_a_running_task_is_watched_live(visit: Visit, world: World, person: Callable[..., User]) -> None:
    task = Task.objects.get(status="running")
    job = task.jobs.get()
    execution = make_execution(task, status="running")
    visitor = visit()
    visitor.login(person("viewer"))
    page = visitor.go(f"/admin/tasks_app/task/{task.pk}/change/?tab=logs")
    expect(page.locator(".d-summary progress")).to_have_attribute("value", "50.0")
    add_log(execution, "the second page")
    Job.objects.filter(pk=job.pk).update(progress={"current": 9, "total": 10, "percentage": 90.0, "phase": "last"})
    expect(page.get_by_text("the second page")).to_be_visible(timeout=15_000)
    expect(page.locator(".d-summary progress")).to_have_attribute("value", "90.0")
    now = timezone.now()
    Job.objects.filter(pk=job.pk).update(status="completed", completed_at=now, worker_id=None, lease_expires_at=None)
    Task.objects.filter(pk=task.pk).update(status="completed", completed_at=now)
    expect(page.locator(".d-summary .d-badge")).to_have_text("Completed", timeout=15_000)
    expect(page.locator("[data-live-sign] span").first).to_have_text("finished")
    assert ExecutionLog.objects.count() >= 1


def test_json_is_copied(visit: Visit, world: World, person: Callable[..., User]) -> None:
    visitor = visit()
    visitor.login(person("viewer"))
    visitor.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = visitor.go(f"/admin/tasks_app/task/{world.task.pk}/change/?tab=input")
    page.get_by_role("button", name="Copy").last.click()
    copied = until(lambda: page.evaluate("navigator.clipboard.readText()"), 5, "the clipboard holds the input")
    assert copied.split() == ["{", '"value":', "1", "}"]


def test_an_api_key_is_made_and_shown_once(visit: Visit, world: World, person: Callable[..., User]) -> None:
    visitor = visit()
    visitor.login(person("admin"))
    page = visitor.go("/admin/tasks_app/apikey/add/")
    page.get_by_label("Name").fill("CI")
    visitor.picture("key_form")
    page.get_by_role("button", name="Make the key").click()
    expect(page.locator("#new-secret")).to_contain_text("devos_")
    visitor.picture("key_made")
    assert ApiKey.objects.filter(name="CI").exists()


def test_a_queue_is_paused_and_resumed(visit: Visit, world: World, person: Callable[..., User]) -> None:
    visitor = visit()
    visitor.login(person("operator"))
    page = visitor.go("/admin/tasks_app/queue/default/change/")
    page.get_by_role("link", name="Pause").click()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Say why")).to_be_visible()
    page.get_by_label("Reason").fill("upgrade")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".d-summary .d-badge")).to_have_text("Paused")
    visitor.picture("queue_paused")
    page.get_by_role("link", name="Resume").click()
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".d-summary .d-badge")).to_have_text("Active")


def test_dark_mode_is_switched_and_kept(visit: Visit, world: World, person: Callable[..., User]) -> None:
    visitor = visit(dark=True)
    page = visitor.login(person("viewer"))
    expect(page.locator("html")).to_have_class(re.compile("dark"))
    background = page.locator(".d-card").first.evaluate("card => getComputedStyle(card).backgroundColor")
    assert background not in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)")
    visitor.picture("dashboard_dark")
    page.keyboard.press("Control+e")
    page.keyboard.press("Control+e")
    chosen = page.locator("html").get_attribute("class")
    page.reload()
    expect(page.locator("html")).to_have_class(re.compile(chosen or "^$"))


PHONE_PAGES = [
    "/admin/",
    "/admin/tasks_app/task/",
    "/admin/tasks_app/job/",
    "/admin/tasks_app/execution/",
    "/admin/tasks_app/event/",
    "/admin/tasks_app/queue/",
    "/admin/tasks_app/worker/",
    "/admin/tasks_app/queue/default/change/",
    "/admin/tasks_app/queue/default/do/pause/",
    "/admin/tasks_app/apikey/add/",
]


def test_nothing_scrolls_sideways_on_a_phone(visit: Visit, world: World, person: Callable[..., User]) -> None:
    visitor = visit(390, 844)
    page = visitor.login(person("admin"))
    task = f"/admin/tasks_app/task/{world.task.pk}/change/"
    for path in [*PHONE_PAGES, *(f"{task}?tab={tab.name}" for tab in TaskAdmin.tabs)]:
        visitor.go(path)
        page.wait_for_load_state("networkidle")
        assert not visitor.overflows(), path
        visitor.picture(
            "phone_" + (re.sub(r"[^a-z]+", "_", path.split("?")[-1].split("admin/")[-1]).strip("_") or "home")
        )


def test_the_desk_can_be_used_from_the_keyboard(visit: Visit, world: World, person: Callable[..., User]) -> None:
    visitor = visit()
    page = visitor.login(person("viewer"))
    page.keyboard.press("Control+k")
    page.locator("#search-input-command").type(world.task.public_id)
    found = page.locator("#command-results-list a").first
    expect(found).to_be_visible()
    visitor.picture("palette")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/task/{world.task.pk}/change/**")
    reached = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.textContent.trim().split('\\n').pop().trim()"))
    assert {"Overview", "Executions", "Tasks"} <= reached
    assert any("Replay" in text or "Priority" in text for text in reached) or "Error" in reached
    visitor.go("/admin/tasks_app/task/")
    page.get_by_role("button", name="Filters").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#changelist-filter")).to_be_visible()
