"""The command on the platform's own machine: the real API and a real database, in one process."""

from __future__ import annotations

import getpass
import json
from typing import Any

import pytest

from tasks_app.models import AuditEntry, Task
from tests.integration.cli.conftest import Ran, Run

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "runtime"])


def _id(ran: Ran) -> str:
    assert ran.code == 0, ran.err
    return ran.json["id"]


def _submit(run: Run, *args: str) -> str:
    return _id(run("task", "submit", "core.echo", "-i", "value=1", "--json", *args))


def test_a_task_is_made_in_the_name_of_the_user_of_the_machine(run: Run) -> None:
    ran = run("action", "core.echo", "-i", 'value={"a": [1]}', "--priority", "7", "--name", "mine", "--json")
    assert (ran.code, ran.err) == (0, "")
    made = Task.objects.get()
    assert made.public_id == ran.json["id"]
    assert (made.priority, made.name, made.input) == (7, "mine", {"value": {"a": [1]}})
    assert (made.created_by_type, made.created_by_id) == ("local", getpass.getuser())


def test_a_task_is_listed_shown_and_steered(run: Run) -> None:
    task = _submit(run)
    other = _submit(run, "--delay", "1h", "--parent", task)
    assert [row["id"] for row in run("task", "list", "--json").json] == [other, task]
    assert [row["id"] for row in run("task", "list", "--oldest-first", "--json").json] == [task, other]
    assert [row["id"] for row in run("task", "list", "--status", "waiting", "--json").json] == [other]
    assert run("task", "list", "echo", "--type", "core.*", "--after", "1h").out.count("task_") == 2
    assert [row["id"] for row in run("task", "children", task, "--json").json] == [other]
    shown = run("task", "show", task)
    assert shown.code == 0
    assert "type        core.echo" in shown.out
    assert "job_" in shown.out
    assert run("task", "priority", task, "-9").code == 0
    assert run("task", "show", task, "--json").json["priority"] == -9
    ran = run("task", "cancel", task, "--reason", "not needed")
    assert ran.out == f"{task} cancelled\n"
    assert AuditEntry.objects.filter(verb__contains="cancel", reason="not needed").exists()
    again = run("task", "cancel", task, "--json")
    assert again.code in (0, 2)
    waited = run("task", "wait", task)
    assert waited.code == 1
    assert "not needed" in waited.err


def test_why_a_task_is_not_running(run: Run) -> None:
    task = _submit(run, "--delay", "1h")
    assert run("queue", "pause", "default", "--reason", "tests").code == 0
    found = run("task", "explain", task, "--json").json
    assert [reason["code"] for reason in found["reasons"]] == ["TIME", "QUEUE_PAUSED", "NO_WORKER"]
    shown = run("task", "explain", task)
    assert shown.code == 0
    assert "1. TIME  It was asked to start later." in shown.out
    assert "`devos queue resume default`." in shown.out


def test_what_was_spent(run: Run) -> None:
    project = run("project", "create", "site", "--json").json["id"]
    assert run("cost", "list", "--by", "action").code == 0
    assert run("cost", "list", "--project", "site", "--json").json == []
    shown = run("project", "show", "site")
    assert project in shown.out and "running" in shown.out
    assert run("project", "show", "site", "--from", "yesterday").code == 2


def test_what_belongs_to_a_task(run: Run) -> None:
    task = _submit(run)
    (job,) = run("task", "jobs", task, "--json").json
    assert run("job", "show", job["id"], "--json").json["task_id"] == task
    assert run("job", "list", "--task", task, "--queue", "default", "--json").json == [job]
    assert "task.created" in run("task", "events", task).out
    assert run("task", "executions", task, "--json").json == []
    assert run("task", "logs", task).code == 0
    assert run("job", "cancel", job["id"]).out == f"{job['id']} cancelled\n"
    assert run("task", "show", task, "--json").json["status"] == "cancelled"


def test_replay_takes_the_old_input_or_a_changed_one(run: Run) -> None:
    task = _submit(run)
    same = run("task", "replay", task, "--json").json
    assert (same["replay_of"], same["input"]) == (task, {"value": 1})
    changed = run("task", "replay", task, "-i", "value=two", "--json").json
    assert changed["input"] == {"value": "two"}


def test_an_idempotency_key_makes_one_task_of_two(run: Run) -> None:
    first = _submit(run, "--idempotency-key", "once")
    assert _submit(run, "--idempotency-key", "once") == first
    assert Task.objects.count() == 1
    ran = run("task", "submit", "core.echo", "-i", "value=2", "--idempotency-key", "once", "--json")
    assert ran.code == 2
    assert json.loads(ran.err)["code"]


def test_a_sync_run_gives_the_result(run: Run) -> None:
    ran = run("action", "core.echo", "-i", "value=hello", "--mode", "sync", "--json")
    assert ran.code == 0
    assert (ran.json["status"], ran.json["mode"]) == ("completed", "sync")
    assert "hello" in json.dumps(ran.json["output"])
    shown = run("execution", "show", ran.json["id"])
    assert "core.echo" in shown.out
    assert [row["id"] for row in run("execution", "list", "--mode", "sync", "--json").json] == [ran.json["id"]]
    failed = run("action", "core.fail", "--mode", "sync", "--json")
    assert (failed.code, failed.json["status"]) == (1, "failed")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["action", "core.ecoh", "-i", "value=1"], "ACTION_NOT_REGISTERED"),
        (["action", "seo.website.scan"], "INVALID_INPUT"),
        (["action", "core.echo", "--queue", "nowhere"], "INVALID_INPUT"),
        (["action", "core.echo", "--project", "nowhere"], "INVALID_INPUT"),
        (["task", "show", "task_01h455vb4pex5vsknk084sn02q"], "NOT_FOUND"),
        (["task", "show", "../../me"], "NOT_FOUND"),
        (["task", "list", "--status", "nonsense"], "INVALID_INPUT"),
        (["job", "retry", "job_01h455vb4pex5vsknk084sn02q"], "NOT_FOUND"),
        (["execution", "logs", "exec_nothing"], "NOT_FOUND"),
        (["queue", "pause", "nowhere", "--reason", "r"], "NOT_FOUND"),
        (["key", "create", "k", "--role", "king"], "INVALID_INPUT"),
        (["project", "create", "Not A Slug"], "INVALID_INPUT"),
    ],
)
def test_refusals_exit_2_with_the_code_of_the_api(run: Run, arguments: list[str], code: str) -> None:
    ran = run(*arguments, "--json")
    assert (ran.code, ran.out) == (2, "")
    error = json.loads(ran.err)
    assert set(error) == {"code", "message", "details", "request_id"}
    assert error["code"] == code
    assert Task.objects.count() == 0
    assert run(*arguments).err.startswith("Error: ")


def test_queues(run: Run) -> None:
    assert "default\tactive" in run("queue", "list").out
    assert run("queue", "pause", "low", "--reason", "upgrade", "--until", "1h").out == "low paused\n"
    shown = run("queue", "show", "low").out
    assert "upgrade" in shown
    assert getpass.getuser() in shown
    assert run("queue", "resume", "low").out == "low active\n"


def test_keys(run: Run) -> None:
    made: dict[str, Any] = run("key", "create", "ci", "--role", "viewer", "--expires", "30d", "--json").json
    assert made["key"]
    listed = run("key", "list")
    assert "ci" in listed.out
    assert made["key"] not in listed.out
    assert run("key", "revoke", made["id"]).out == f"{made['id']} revoked\n"
    assert run("key", "list", "--json").json[0]["active"] is False


def test_projects_and_workers(run: Run) -> None:
    assert run("project", "create", "web", "--name", "The web").code == 0
    assert "web\tThe web\tproj_" in run("project", "list").out
    assert _submit(run, "--project", "web")
    assert len(run("task", "list", "--project", "web", "--json").json) == 1
    assert run("worker", "list", "--json").json == []
    assert run("worker", "list", "--gone").code == 0


def test_actions(run: Run) -> None:
    assert "seo.website.scan\tScan a website" in run("action", "list").out
    assert "url" in run("action", "show", "seo.website.scan").out
    assert "url=string" in run("action", "seo.website.scan", "--help").out
    schema = run("action", "show", "core.echo", "--json").json["input_schema"]
    assert schema["properties"]["value"] is not None
