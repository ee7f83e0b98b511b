"""The dead-letter desk: groups, verbs on one, on a selection and on all that match."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin import helpers
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pydantic import SecretStr

from tasks_app.domain.masking import MASK
from tasks_app.models import AuditEntry, DeadLetterJob, Job, Organization, Task
from tasks_app.services import secrets
from tests.api.rows import make_letter, make_task

LIST = "/admin/tasks_app/deadletterjob/"


def do(letter: DeadLetterJob, verb: str) -> str:
    return f"{LIST}{letter.pk}/do/{verb}/"


def status_of(letter: DeadLetterJob) -> str:
    letter.refresh_from_db()
    return letter.status


@pytest.fixture
def letters(organization: Organization) -> list[DeadLetterJob]:
    """Three of one cause and one of another."""
    made = [make_letter(make_task(organization, status="failed")) for _ in range(3)]
    other = make_task(organization, status="failed", type="core.fail", input={"times": 3})
    return [*made, make_letter(other, fingerprint="a" * 64, error={"code": "OTHER", "message": "else"})]


def bulk_task() -> Task:
    return Task.objects.get(type="core.dead_letters.apply")


def test_groups_stand_above_the_list(letters: list[DeadLetterJob], desk: Callable[..., Client]) -> None:
    answer = desk("operator").get(LIST)
    assert [group.count.value for group in answer.context["groups"]] == [3, 1]
    assert "Open, by cause" in answer.text and "BROKEN: it broke" in answer.text
    assert f"all/retry/?fingerprint={'f' * 64}" in answer.text
    assert f"?status=open&amp;fingerprint={'a' * 64}" in answer.text
    [row] = desk("viewer").get(f"{LIST}?status=open&fingerprint={'a' * 64}").context["cl"].result_list
    assert row == letters[3]
    closed = desk("operator").get(f"{LIST}?status=retried")
    assert "Open, by cause" not in closed.text


def test_a_viewer_sees_groups_but_no_verbs(letters: list[DeadLetterJob], desk: Callable[..., Client]) -> None:
    client = desk("viewer")
    answer = client.get(LIST)
    assert "Open, by cause" in answer.text and "all/retry/" not in answer.text
    assert client.get(f"{LIST}all/retry/").status_code == 403
    assert client.post(f"{LIST}all/retry/", {"reason": "x"}).status_code == 403
    assert client.post(do(letters[0], "discard"), {"reason": "x"}).status_code == 403
    assert not Task.objects.filter(type__startswith="core.dead").exists() and status_of(letters[0]) == "open"


def test_the_page_links_to_what_belongs_to_it(letters: list[DeadLetterJob], desk: Callable[..., Client]) -> None:
    letter = letters[0]
    text = desk("operator").get(f"{LIST}{letter.pk}/change/").text
    for part in (
        f"/admin/tasks_app/task/{letter.job.task_id}/change/",
        f"/admin/tasks_app/job/{letter.job_id}/change/",
        f"/admin/tasks_app/execution/{letter.execution_id}/change/",
        "it broke",
        "?tab=logs",
        do(letter, "retry"),
        do(letter, "discard"),
    ):
        assert part in text, part


def test_retry_asks_first_and_refuses_what_is_decided(
    letters: list[DeadLetterJob], desk: Callable[..., Client]
) -> None:
    letter, client = letters[0], desk("operator")
    assert client.get(do(letter, "retry")).status_code == 200
    assert status_of(letter) == "open"
    client.post(do(letter, "retry"), {"reason": "the host is back"})
    assert (status_of(letter), letter.reason) == ("retried", "the host is back")
    assert Task.objects.get(id=letter.job.task_id).status == "queued"
    late = client.post(do(letter, "cancel"), {"reason": ""})
    assert late.status_code == 409 and "was retried by user:" in late.text
    assert do(letter, "retry") not in client.get(f"{LIST}{letter.pk}/change/").text


def test_discard_needs_a_reason(letters: list[DeadLetterJob], desk: Callable[..., Client]) -> None:
    client = desk("operator")
    assert client.post(do(letters[0], "discard"), {"reason": "  "}).status_code == 400
    client.post(do(letters[0], "discard"), {"reason": "a test"})
    assert status_of(letters[0]) == "discarded"


def test_replay_edits_the_input_and_keeps_secrets(organization: Organization, desk: Callable[..., Client]) -> None:
    from tasks_app.actions import registry
    from tests.api.actions import plugin

    registry.all_actions()
    registry.register(plugin)
    try:
        sealed = secrets.seal(SecretStr("s3cr3t-42"), "s3cr3t-42")
        task = make_task(organization, status="failed", type="tests.login", input={"user": "a", "password": sealed})
        letter, client = make_letter(task), desk("operator")
        shown = client.get(do(letter, "replay")).context["form"].initial["input"]
        assert json.loads(shown) == {"user": "a", "password": MASK}
        assert client.post(do(letter, "replay"), {"input": '{"user": 5}', "reason": ""}).status_code == 400
        client.post(do(letter, "replay"), {"input": shown.replace('"a"', '"b"'), "reason": ""})
    finally:
        registry.unregister(plugin.name)
    assert status_of(letter) == "replayed"
    new = Job.objects.get(task_id=letter.replay_task_id)
    assert secrets.unseal(new.input) == {"user": "b", "password": "s3cr3t-42"}


def test_a_selection(letters: list[DeadLetterJob], desk: Callable[..., Client]) -> None:
    client = desk("operator")
    DeadLetterJob.objects.filter(pk=letters[1].pk).update(status="retried", decided_by="user:1")
    form: dict[str, Any] = {
        "action": "bulk_discard",
        helpers.ACTION_CHECKBOX_NAME: [str(letter.pk) for letter in letters[:3]],
        "index": "0",
    }
    assert "Discard 3" in client.post(LIST, form).text
    assert client.post(LIST, {**form, "confirmed": "yes", "reason": ""}).status_code == 400
    done = client.post(LIST, {**form, "confirmed": "yes", "reason": "over"}, follow=True)
    assert "Discard: 2 done." in done.text and "1 refused" in done.text
    assert [status_of(letter) for letter in letters] == ["discarded", "retried", "discarded", "open"]
    replay = {**form, "action": "bulk_replay", helpers.ACTION_CHECKBOX_NAME: [str(letters[3].pk)], "confirmed": "yes"}
    client.post(LIST, {**replay, "reason": ""})
    assert status_of(letters[3]) == "replayed"


def test_all_that_match_are_counted_and_left_to_a_task(
    letters: list[DeadLetterJob], desk: Callable[..., Client]
) -> None:
    client, url = desk("operator"), f"{LIST}all/retry/?fingerprint={'f' * 64}"
    asked = client.get(url)
    assert "3 open dead letters" in asked.text and "fingerprint: fff" in asked.text
    assert client.post(url, {"reason": "", "rate": "fast"}).status_code == 400
    done = client.post(url, {"reason": "again", "canary": "1", "rate": "5/s"})
    task = bulk_task()
    assert done.headers["Location"] == f"/admin/tasks_app/task/{task.pk}/change/"
    filter = {"fingerprint": "f" * 64}
    assert task.input == {"verb": "retry", "filter": filter, "canary": 1, "rate": "5/s", "reason": "again"}
    assert task.created_by_type == "user"
    assert AuditEntry.objects.filter(verb="task.submit", object_id=task.public_id).exists()
    assert all(status_of(letter) == "open" for letter in letters)


def test_all_that_match_needs_a_reason_to_discard(letters: list[DeadLetterJob], desk: Callable[..., Client]) -> None:
    client, url = desk("operator"), f"{LIST}all/discard/?action=core.fail"
    assert client.post(url, {"reason": " "}).status_code == 400
    client.post(url, {"reason": "over"})
    assert bulk_task().input == {"verb": "discard", "filter": {"action": "core.fail"}, "reason": "over"}


def test_a_search_for_an_id_means_that_letter(letters: list[DeadLetterJob], desk: Callable[..., Client]) -> None:
    desk("operator").post(f"{LIST}all/cancel/?q={letters[0].public_id}", {"reason": ""})
    assert bulk_task().input == {"verb": "cancel", "ids": [letters[0].public_id]}


@pytest.mark.parametrize(
    "query",
    [
        "status=retried",
        "q=echo",
        "fingerprint=x",
        "action=" + "x" * 500,
        "code=" + "x" * 100,
        "q=%00",
        "code=%00",
        "created_at_from=0001-01-01",
        "created_at_to=9999-12-31",
        "organization=nope",
    ],
)
def test_what_no_bulk_can_mean_is_refused(
    query: str, letters: list[DeadLetterJob], desk: Callable[..., Client]
) -> None:
    client = desk("operator")
    answer = client.post(f"{LIST}all/retry/?{query}", {"reason": ""})
    assert answer.status_code in (302, 403)
    assert not Task.objects.filter(type="core.dead_letters.apply").exists()


def test_a_days_filter_means_whole_days(letters: list[DeadLetterJob], desk: Callable[..., Client]) -> None:
    day = letters[0].created_at.date().isoformat()
    asked = desk("operator").get(f"{LIST}all/retry/?created_at_from={day}&created_at_to={day}")
    assert "4 open dead letters" in asked.text
    assert "0 open dead letters" in desk("operator").get(f"{LIST}all/retry/?created_at_to=2020-01-01").text


def test_another_organisation_is_not_there(
    letters: list[DeadLetterJob], other_organization: Organization, desk: Callable[..., Client]
) -> None:
    client = desk("admin", other_organization)
    assert client.post(do(letters[0], "retry"), {"reason": ""}).status_code == 404
    assert "0 open dead letters" in client.get(f"{LIST}all/retry/").text
    theirs = f"?organization={letters[0].organization.public_id}"
    assert client.get(f"{LIST}all/retry/{theirs}").status_code == 403
    assert "it broke" not in client.get(f"{LIST}{theirs}").text


def test_a_superuser_acts_in_the_organisation_that_is_chosen(
    letters: list[DeadLetterJob], other_organization: Organization, root: Client
) -> None:
    make_letter(make_task(other_organization, status="failed"), fingerprint="b" * 64)
    chosen = f"organization={other_organization.public_id}"
    shown = root.get(f"{LIST}?{chosen}")
    assert [group.fingerprint[0] for group in shown.context["groups"]] == ["b"]
    assert f"fingerprint={'b' * 64}&amp;{chosen}" in shown.text
    root.post(f"{LIST}all/retry/?{chosen}", {"reason": ""})
    assert bulk_task().organization_id == other_organization.id


def test_the_desk_costs_few_statements(organization: Organization, desk: Callable[..., Client]) -> None:
    for number in range(30):
        make_letter(make_task(organization, status="failed"), fingerprint=f"{number:064x}")
    client = desk("operator")
    for url in (LIST, f"{LIST}?status=open&code=BROKEN", f"{LIST}all/retry/?code=BROKEN"):
        with CaptureQueriesContext(
            connection,
        ) as said:
            assert client.get(url).status_code == 200
        assert len(said) <= 12, [query["sql"][:100] for query in said]
