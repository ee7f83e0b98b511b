"""The commands over real HTTP: what they send, what they print and how they exit."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.loopback import KEY, TASK, Platform, error, line, progress, task

Rows = list[dict[str, Any]]


def _page(*rows: dict[str, Any], next: str | None = None) -> tuple[int, Any]:
    return 200, {"results": list(rows), "next": next}


def test_an_action_is_submitted_with_typed_input(run: Run, server: Platform) -> None:
    ran = run("action", "seo.website.scan", "--input", "url=http://a.test", "-i", "max_pages=3", "--priority", "-5")
    assert (ran.code, ran.out) == (0, f"{TASK} queued\n")
    assert server.sent("POST /api/tasks") == {
        "type": "seo.website.scan",
        "input": {"url": "http://a.test", "max_pages": 3},
        "priority": -5,
    }


def test_every_option_of_an_action_reaches_the_api(run: Run, server: Platform) -> None:
    options = shlex.split("--queue high --delay 2m --name N --project web --idempotency-key once --json")
    ran = run("action", "run", "seo.website.scan", "--input-json", '{"url": "x"}', *options)
    assert ran.json == task()
    sent = {"type": "seo.website.scan", "input": {"url": "x"}, "queue": "high", "delay_s": 120, "name": "N"}
    assert server.sent("POST /api/tasks") == {**sent, "project": "web"}
    assert server.calls[-1][3]["Idempotency-Key"] == "once"


def test_every_option_of_a_task_reaches_the_api(run: Run, server: Platform, tmp_path: Path) -> None:
    (tmp_path / "input.json").write_text('{"url": "y"}')
    options = shlex.split("--parent task_p --max-attempts 2 --resource site:a:b --run-at 2027-01-01T01:00:00+01:00")
    ran = run("task", "submit", "seo.website.scan", "--input-file", str(tmp_path / "input.json"), *options)
    assert ran.code == 0
    assert server.sent("POST /api/tasks") == {
        "type": "seo.website.scan",
        "input": {"url": "y"},
        "parent_task": "task_p",
        "max_attempts": 2,
        "resource": {"type": "site", "id": "a:b"},
        "run_at": "2027-01-01T00:00:00+00:00",
    }


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["action", "seo.website.scan", "-i", "max_pages=many"], "not a whole number"),
        (["action", "seo.website.scan", "-i", "ulr=x"], "Did you mean url?"),
        (["action", "seo.website.scan", "--input-json", "{"], "not valid JSON"),
        (["action", "seo.website.scan", "--input-json", "{}", "--input-file", "x"], "once"),
        (["action", "seo.website.scan", "--input-file", "/no/such"], "cannot be read"),
        (["action", "seo.website.scan", "--delay", "soon"], "not a time span"),
        (["action", "seo.website.scan", "--mode", "later"], "must be sync or async"),
        (
            ["action", "seo.website.scan", "--mode", "sync", "--delay", "5", "--follow"],
            "--follow, --delay make no sense",
        ),
        (["action", "seo.website.scan", "--priority", "101"], "range"),
        (["action", "seo.website.scna", "-i", "url=x"], "Did you mean seo.website.scan?"),
        (["task", "submit", "x.y", "--run-at", "2027-01-01T00:00"], "no time zone"),
        (["task", "submit", "x.y", "--resource", "site"], "TYPE:ID"),
        (["task", "show"], "Missing argument"),
        (["task", "list", "--limit", "0"], "range"),
        (["nothing"], "No such command"),
        (["action", "\udcff.x", "-i", "a=1"], "not valid text"),
        (["task", "show", "\udcff"], "not valid text"),
        (["task", "list", "--type", "\udcff"], "not valid text"),
        (["action", "seo.website.scan", "--idempotency-key", "ž"], "not valid text"),
        (["action", "seo.website.scan", "--idempotency-key", "a\nb"], "cannot be sent"),
        (["task", "list", "--what"], "No such option"),
    ],
)
def test_wrong_use_is_said_and_exits_2(run: Run, arguments: list[str], says: str) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
    assert run(*arguments, "--json").code == 2


def test_errors_with_json_have_the_shape_of_the_api(run: Run, server: Platform) -> None:
    details = [{"field": "input.url", "problem": "is required"}]
    server.routes["POST /api/tasks"] = (400, error("INVALID_INPUT", "The input does not fit.", details))
    ran = run("action", "seo.website.scan", "--json")
    assert (ran.code, ran.out) == (2, "")
    assert json.loads(ran.err) == error("INVALID_INPUT", "The input does not fit.", details)
    spoken = run("action", "seo.website.scan")
    assert spoken.err == "Error: The input does not fit.\n  input.url: is required\n"
    usage = run("task", "--json", "shwo")
    assert set(json.loads(usage.err)) == {"code", "message", "details", "request_id"}


@pytest.mark.parametrize(
    ("answer", "code", "says"),
    [
        ((500, error("INTERNAL", "Something broke.")), 3, "Something broke"),
        ((503, error("UNAVAILABLE", "The database is away.")), 3, "req_1"),
        ((404, "<html>nothing</html>"), 3, "no DevOS API"),
        ((200, "<html>hello</html>"), 3, "no DevOS API"),
        ((302, "https://elsewhere.test/"), 3, "https://elsewhere.test/"),
        ((403, error("PERMISSION_DENIED", "You may not.")), 2, "You may not."),
        ((409, error("CONFLICT", "It has ended.")), 2, "It has ended."),
        ((0, None), 3, "does not answer"),
    ],
)
def test_exit_codes_of_answers(run: Run, server: Platform, answer: Any, code: int, says: str) -> None:
    server.routes[f"GET /api/tasks/{TASK}"] = answer
    ran = run("task", "show", TASK)
    assert (ran.code, ran.out) == (code, "")
    assert says in ran.err


def test_a_server_that_is_not_there_exits_3(bare: Run) -> None:
    ran = bare("task", "list", "--server", "http://127.0.0.1:1", "--key", "k")
    assert (ran.code, ran.out) == (3, "")
    assert "http://127.0.0.1:1 does not answer" in ran.err


def test_nothing_running_here_says_how_to_start(bare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVOS_HOME", str(tmp_path))
    ran = bare("task", "list")
    assert (ran.code, ran.out) == (3, "")
    assert "Nothing is running here" in ran.err
    assert "make up" in ran.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--server", "devos.test", "--key", "k"], "not an address"),
        (["--server", "http://", "--key", "k"], "not an address"),
        (["--server", "http://127.0.0.1:1"], "needs a key"),
        (["--server", "http://127.0.0.1:1", "--key", "a\nb"], "no key has"),
        (["--key", "k"], "goes with --server"),
    ],
)
def test_a_wrong_server_or_key_exits_2(bare: Run, options: list[str], says: str) -> None:
    ran = bare("task", "list", *options)
    assert ran.code == 2
    assert says in ran.err


def test_server_and_key_may_stand_anywhere(bare: Run, server: Platform) -> None:
    server.routes["GET /api/workers"] = _page()
    where = ["--server", f"{server.url}/api/", "--key", KEY]
    assert bare(*where, "worker", "list").code == 0
    assert bare("worker", "list", *where).code == 0
    assert bare("--json", *where, "worker", "list").json == []
    wrong = bare("worker", "list", "--server", server.url, "--key", "other")
    assert wrong.code == 2
    assert "This key is not known" in wrong.err


def test_lists_walk_over_pages_up_to_the_limit(run: Run, server: Platform) -> None:
    rows = [task(id=f"task_{n}") for n in range(5)]
    pages = {None: (rows[:2], "c1"), "c1": ([], "c2"), "c2": (rows[2:], None)}

    def answer(query: dict[str, list[str]], _: Any) -> tuple[int, Any]:
        found, following = pages[query.get("cursor", [None])[0]]
        return _page(*found, next=following)

    server.routes["GET /api/tasks"] = answer
    assert [row["id"] for row in run("task", "list", "--json").json] == [f"task_{n}" for n in range(5)]
    assert len(run("task", "list", "--json", "-n", "3").json) == 3
    assert len(run("task", "list", "--json", "--all").json) == 5


def test_filters_reach_the_api(run: Run, server: Platform) -> None:
    server.routes["GET /api/tasks"] = _page()
    run(
        "task",
        "list",
        "word",
        *shlex.split("--status failed --status cancelled --type seo.* --project p --oldest-first"),
    )
    query = server.calls[-1][1]
    assert query == {
        "status": ["failed", "cancelled"],
        "type": ["seo.*"],
        "project": ["p"],
        "q": ["word"],
        "ordering": ["created_at"],
        "limit": ["25"],
    }
    run("task", "list", "--after", "2026-01-01T00:00Z", "--before", "1h")
    assert server.calls[-1][1]["created_after"] == ["2026-01-01T00:00:00+00:00"]
    assert server.calls[-1][1]["created_before"][0].endswith("+00:00")


def test_a_piped_list_is_tab_separated(run: Run, server: Platform) -> None:
    server.routes["GET /api/tasks"] = _page(task("running", name="a\tb\n\x1b[31mred", progress=progress(2)))
    header, row = run("task", "list").out.splitlines()
    assert header.split("\t")[:4] == ["ID", "STATUS", "TYPE", "NAME"]
    cells = row.split("\t")
    assert cells[:5] == [TASK, "running", "seo.website.scan", "a b \\x1b[31mred", "fetch 2/4 (50%)"]
    assert cells[-1] == "2026-11-30T20:00:00+00:00"


def test_a_task_is_shown_with_its_error_and_jobs(run: Run, server: Platform) -> None:
    failed = task("failed", error={"code": "NOT_FOUND", "message": "no\x1b[2Jpage"}, output={"pages": 1})
    server.routes[f"GET /api/tasks/{TASK}"] = (200, failed)
    server.routes[f"GET /api/tasks/{TASK}/jobs"] = _page({"id": "job_1", "status": "failed", "attempt": 2})
    ran = run("task", "show", TASK)
    assert ran.code == 0
    assert "error     NOT_FOUND: no\\x1b[2Jpage" in ran.out
    assert '"pages": 1' in ran.out
    assert "job_1\tfailed" in ran.out


@pytest.mark.parametrize(
    ("arguments", "path", "body"),
    [
        (["cancel", TASK, "--reason", "why"], "cancel", {"reason": "why"}),
        (["retry", TASK], "retry", {"reason": ""}),
        (["priority", TASK, "-7"], "priority", {"priority": -7}),
    ],
)
def test_verbs_of_a_task(run: Run, server: Platform, arguments: list[str], path: str, body: Any) -> None:
    server.routes[f"POST /api/tasks/{TASK}/{path}"] = (200, task("cancelled"))
    ran = run("task", *arguments)
    assert (ran.code, ran.out) == (0, f"{TASK} cancelled\n")
    assert server.sent(f"POST /api/tasks/{TASK}/{path}") == body


def test_replay_edits_single_fields_of_the_old_input(run: Run, server: Platform) -> None:
    server.routes[f"GET /api/tasks/{TASK}"] = (200, task("failed"))
    server.routes[f"POST /api/tasks/{TASK}/replay"] = (202, task(id="task_new"))
    assert run("task", "replay", TASK).out == "task_new queued\n"
    assert server.sent(f"POST /api/tasks/{TASK}/replay") == {"reason": ""}
    run("task", "replay", TASK, "-i", "max_pages=9", "--reason", "r")
    assert server.sent(f"POST /api/tasks/{TASK}/replay") == {
        "reason": "r",
        "input": {"url": "http://a.test", "max_pages": 9},
    }
    run("task", "replay", TASK, "--input-json", '{"url": "z"}')
    assert server.sent(f"POST /api/tasks/{TASK}/replay")["input"] == {"url": "z"}


def test_replay_sends_a_covered_secret_back_as_it_was_shown(run: Run, server: Platform) -> None:
    """The platform puts the secret back where its cover stands."""
    server.routes[f"GET /api/tasks/{TASK}"] = (200, task("failed", input={"url": "x", "auth": [{"token": "*" * 10}]}))
    server.routes[f"POST /api/tasks/{TASK}/replay"] = (202, task(id="task_new"))
    assert run("task", "replay", TASK, "-i", "max_pages=9").code == 0
    sent = server.sent(f"POST /api/tasks/{TASK}/replay")["input"]
    assert sent == {"url": "x", "auth": [{"token": "*" * 10}], "max_pages": 9}


def test_a_sync_run_prints_the_result_and_its_exit_code(run: Run, server: Platform) -> None:
    done = {"id": "exec_1", "status": "completed", "output": {"text": "hi"}, "duration_ms": 12.0}
    server.routes["POST /api/actions/seo.website.scan"] = (200, done)
    ran = run("action", "seo.website.scan", "-i", "url=x", "--mode", "sync")
    assert ran.code == 0
    assert '"text": "hi"' in ran.out
    assert server.sent("POST /api/actions/seo.website.scan") == {"input": {"url": "x"}, "mode": "sync"}
    failed = {**done, "status": "failed", "error": {"code": "BOOM", "message": "It broke."}}
    server.routes["POST /api/actions/seo.website.scan"] = (200, failed)
    ran = run("action", "seo.website.scan", "-i", "url=x", "--mode", "sync")
    assert ran.code == 1
    assert "BOOM: It broke." in ran.err


def test_actions_are_listed_searched_and_shown(run: Run, server: Platform) -> None:
    assert [row["id"] for row in run("action", "list", "--json").json] == ["seo.website.scan", "core.echo"]
    assert run("action", "list", "echo").out.splitlines()[1].startswith("core.echo\tEcho")
    shown = run("action", "show", "seo.website.scan").out
    assert "url\tstring\trequired; Where to start." in shown
    helped = run("action", "seo.website.scan", "--help")
    assert helped.code == 0
    assert "Input of seo.website.scan" in helped.out
    assert "max_pages=integer" in helped.out


def test_logs_are_printed_in_order_without_what_steers_a_terminal(run: Run, server: Platform) -> None:
    first, second = line(1, "one"), {**line(2, "two\x1b]0;x\x07", "warn"), "metadata": {"n": 1}}
    path = f"GET /api/tasks/{TASK}/logs"
    server.routes[path] = lambda query, _: _page(second) if "cursor" in query else _page(first, next="c")
    assert run("task", "logs", TASK).out == ('20:00:01 info  one\n20:00:01 warn  two\\x1b]0;x\\x07  {"n": 1}\n')
    assert [found["id"] for found in run("task", "logs", TASK, "--json").json] == [1, 2]


def test_keys_are_shown_once_and_revoked(run: Run, server: Platform) -> None:
    made = {"id": "key_1", "key": "dk_secret", "active": True, "revoked_at": None}
    server.routes["POST /api/keys"] = (201, made)
    ran = run("key", "create", "ci", "--role", "viewer", "--scope", "tasks.*", "--expires", "90d")
    assert ran.out == "dk_secret\n"
    assert "devos key revoke key_1" in ran.err
    sent = server.sent("POST /api/keys")
    assert {**sent, "expires_at": ""} == {"name": "ci", "role": "viewer", "scopes": ["tasks.*"], "expires_at": ""}
    server.routes["DELETE /api/keys/key_1"] = (200, {**made, "active": False, "revoked_at": "2026-11-30T20:00:00Z"})
    ran = run("key", "revoke", "key_1")
    assert (ran.out, ran.err) == ("key_1 revoked\n", "")


def test_queues_and_projects(run: Run, server: Platform) -> None:
    paused = {"name": "low", "paused": True, "paused_by": "user a", "pause_reason": "r"}
    server.routes["POST /api/queues/low/pause"] = (200, paused)
    assert run("queue", "pause", "low", "--reason", "r", "--until", "30m").out == "low paused\n"
    assert set(server.sent("POST /api/queues/low/pause")) == {"reason", "until"}
    server.routes["POST /api/queues/low/resume"] = (200, {"name": "low", "paused": False})
    assert run("queue", "resume", "low").out == "low active\n"
    server.routes["POST /api/projects"] = (201, {"id": "proj_1", "slug": "web"})
    assert run("project", "create", "web").out == "web proj_1\n"
    assert server.sent("POST /api/projects") == {"slug": "web", "name": "web", "description": ""}
