"""/api/dead-letters: the desk over REST."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr

from tasks_app.domain import ids
from tasks_app.domain.masking import MASK
from tasks_app.models import DeadLetterJob, DeadLetterResult, Job, Organization, Task
from tasks_app.queries import dead_letters as queries
from tasks_app.services import secrets
from tests.api.client import Api, refused
from tests.api.rows import make_letter, make_task
from tests.api.test_paging import walk

pytestmark = pytest.mark.django_db


@pytest.fixture
def letter(organization: Organization) -> DeadLetterJob:
    return make_letter(make_task(organization, status="failed"))


def at(letter: DeadLetterJob, verb: str = "") -> str:
    return f"dead-letters/{letter.public_id}" + (f"/{verb}" if verb else "")


def test_a_letter_says_what_failed_and_what_was_decided(operator: Api, letter: DeadLetterJob) -> None:
    body = operator.get(at(letter)).json()
    assert body["id"] == letter.public_id and body["status"] == "open"
    assert (body["code"], body["error"]["message"]) == ("BROKEN", "it broke")
    assert body["task_id"] == letter.job.task.public_id and body["job_id"] == letter.job.public_id
    assert body["execution_id"] == ids.to_text("execution", letter.execution_id)
    done = operator.post(at(letter, "retry"), {"reason": "the host is back"}).json()
    assert (done["status"], done["reason"], done["replay_task"]) == ("retried", "the host is back", None)
    assert done["decided_by"].startswith("api_key:") and done["decided_at"]
    assert Task.objects.get().status == "queued"
    again = refused(operator.post(at(letter, "discard"), {"reason": "late"}), 409, "CONFLICT")
    assert "retried by api_key:" in again["message"] and "the host is back" in again["message"]


def test_replay_answers_the_new_task(operator: Api, letter: DeadLetterJob) -> None:
    problem = refused(operator.post(at(letter, "replay"), {"input": {"valu": 1}}), 400, "INVALID_INPUT")
    assert problem["details"][0]["field"] == "input.valu"
    done = operator.post(at(letter, "replay"), {"input": {"value": "edited"}}).json()
    new = operator.get(f"tasks/{done['replay_task']}").json()
    assert (new["input"], new["replay_of"]) == ({"value": "edited"}, letter.job.task.public_id)


def test_replay_keeps_a_secret_that_was_not_touched(operator: Api, organization: Organization) -> None:
    sealed = secrets.seal(SecretStr("s3cr3t-42"), "s3cr3t-42")
    task = make_task(organization, status="failed", type="tests.login", input={"user": "ann", "password": sealed})
    letter = make_letter(task)
    done = operator.post(at(letter, "replay"), {"input": {"user": "bob", "password": MASK}})
    assert done.status_code == 200 and "s3cr3t" not in done.content.decode()
    stored = Job.objects.get(task_id=ids.from_text("task", done.json()["replay_task"])).input
    assert secrets.unseal(stored) == {"user": "bob", "password": "s3cr3t-42"}
    other = make_letter(task)
    refused(operator.post(at(other, "replay"), {"input": {"user": MASK, "password": "x", "more": {"a": MASK}}}), 400)


@pytest.mark.parametrize("reason", ["", "   "])
def test_discard_needs_a_reason(operator: Api, letter: DeadLetterJob, reason: str) -> None:
    problem = refused(operator.post(at(letter, "discard"), {"reason": reason}), 400, "INVALID_INPUT")
    assert problem["details"] == [{"field": "reason", "problem": "required"}]
    assert operator.post(at(letter, "discard"), {"reason": "a test"}).json()["status"] == "discarded"


def test_the_list_is_filtered_and_paged(viewer: Api, organization: Organization) -> None:
    made = [make_letter(make_task(organization, status="failed")) for _ in range(5)]
    closed = make_letter(make_task(organization, status="failed"), status="discarded", fingerprint="a" * 64)
    other = make_letter(make_task(organization, type="core.fail", status="failed"), error={"code": "X"})
    newest = [row.public_id for row in reversed(made)]
    assert walk(viewer, "dead-letters", status="open", code="BROKEN", limit=2) == newest
    for parameters, expected in (
        ({"status": "discarded,retried"}, [closed]),
        ({"fingerprint": "a" * 64}, [closed]),
        ({"action": "core.fail"}, [other]),
        ({"action": "core.f*"}, [other]),
        ({"code": "X"}, [other]),
        ({"job": made[2].job.public_id}, [made[2]]),
        ({"task": made[3].job.task.public_id}, [made[3]]),
        ({"created_after": other.created_at.isoformat()}, [other]),
        ({"created_before": made[0].created_at.isoformat()}, []),
    ):
        found = [row["id"] for row in viewer.get("dead-letters", **parameters).json()["results"]]
        assert found == [row.public_id for row in expected], parameters
    for wrong in ({"status": "dead"}, {"fingerprint": "x"}, {"since": "1h"}, {"limit": "0"}, {"code": "a\x00"}):
        refused(viewer.get("dead-letters", **wrong), 400, "INVALID_INPUT")


def test_groups(viewer: Api, organization: Organization, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        make_letter(make_task(organization, status="failed"), fingerprint=("a" if number < 4 else "b") * 64)
    first, second = viewer.get("dead-letters/groups").json()["results"]
    assert (first["fingerprint"][0], first["count"], first["count_exact"]) == ("a", 4, True)
    assert (second["count"], second["code"], second["error"]["message"]) == (2, "BROKEN", "it broke")
    assert "traceback" not in second["error"]
    assert second["sample"] == DeadLetterJob.objects.order_by("-id").first().public_id  # type: ignore[union-attr]
    assert viewer.get("dead-letters/groups", status="retried").json()["results"] == []
    monkeypatch.setattr(queries, "GROUP_COUNT_MAX", 3)
    capped = viewer.get("dead-letters/groups", limit=1).json()
    assert (capped["results"][0]["count"], capped["results"][0]["count_exact"]) == (3, False)
    assert viewer.get("dead-letters/groups", cursor=capped["next"]).json()["results"][0]["count"] == 2
    refused(viewer.get("dead-letters/groups", cursor="nonsense"), 400)


def test_a_bulk_is_counted_first_and_then_a_task(operator: Api, organization: Organization) -> None:
    for _ in range(3):
        make_letter(make_task(organization, status="failed"))
    body = {"verb": "retry", "filter": {"code": "BROKEN"}, "reason": "again", "canary": 1, "rate": "10/s"}
    counted = operator.post("dead-letters/bulk", {**body, "dry_run": True})
    assert (counted.status_code, counted.json()) == (200, {"count": 3, "exact": True})
    assert Task.objects.filter(type="core.dead_letters.apply").count() == 0
    done = operator.post("dead-letters/bulk", body, Idempotency_Key="night-1")
    assert done.status_code == 202
    task = done.json()
    assert done.headers["Location"] == f"/api/tasks/{task['id']}"
    assert (task["type"], task["status"], task["input"]) == ("core.dead_letters.apply", "queued", body)
    again = operator.post("dead-letters/bulk", body, Idempotency_Key="night-1")
    assert again.json()["id"] == task["id"] and again.headers["Idempotency-Replayed"] == "true"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "verb"),
        ({"verb": "retry"}, "body"),
        ({"verb": "retry", "filter": {"codes": "X"}}, "filter.codes"),
        ({"verb": "retry", "filter": {"code": "a\u0000"}}, "filter.code"),
        ({"verb": "retry", "filter": {"status": ["retried"]}}, "body"),
        ({"verb": "retry", "filter": {"created_after": 5}}, "filter.created_after"),
        ({"verb": "retry", "ids": ["nonsense"]}, "ids.0"),
        ({"verb": "retry", "filter": {}, "rate": "fast"}, "rate"),
        ({"verb": "retry", "filter": {}, "canary": 0}, "canary"),
        ({"verb": "retry", "filter": {}, "dry_run": "yes"}, "dry_run"),
        ({"verb": "retry", "filter": {}, "other": 1}, "other"),
        ({"verb": "discard", "filter": {}}, "body"),
    ],
)
def test_bulks_that_make_no_sense_name_the_field(operator: Api, body: dict[str, Any], field: str) -> None:
    problem = refused(operator.post("dead-letters/bulk", body), 400, "INVALID_INPUT")
    assert [one["field"] for one in problem["details"]] == [field]


def test_a_bulk_of_a_task_that_is_not_there(operator: Api) -> None:
    body = {"verb": "retry", "filter": {"task": ids.to_text("task", ids.new_id())}}
    refused(operator.post("dead-letters/bulk", body), 404, "NOT_FOUND")


def test_results_are_listed_in_the_order_of_the_bulk(viewer: Api, organization: Organization) -> None:
    task = make_task(organization)
    letters = sorted(ids.new_id() for _ in range(5))
    for number, letter in enumerate(letters):
        said = {"outcome": "refused", "code": "CONFLICT", "message": "late"} if number == 3 else {"outcome": "done"}
        DeadLetterResult.objects.create(task=task, dead_letter_id=letter, **said)
    path = f"dead-letters/bulk/{task.public_id}/results"
    seen, cursor = [], {}
    while True:
        body = viewer.get(path, limit=2, **cursor).json()
        seen += [row["dead_letter_id"] for row in body["results"]]
        if not body["next"]:
            break
        cursor = {"cursor": body["next"]}
    assert seen == [ids.to_text("dead_letter", one) for one in letters]
    [row] = viewer.get(path, outcome="refused").json()["results"]
    assert (row["code"], row["message"], row["job_id"]) == ("CONFLICT", "late", None)
    refused(viewer.get(path, outcome="lost"), 400)


def test_lists_take_few_statements(viewer: Api, organization: Organization, django_assert_max_num_queries: Any) -> None:
    for number in range(30):
        make_letter(make_task(organization, status="failed"), fingerprint=f"{number:064x}")
    for path in ("dead-letters", "dead-letters?status=open&action=core.*", "dead-letters/groups"):
        with django_assert_max_num_queries(8):
            assert viewer.get(path).json()["results"]
