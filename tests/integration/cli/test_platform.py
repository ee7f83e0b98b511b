"""The command against a running platform: over HTTP with a key, and beside it without one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from devos.cli import main
from tests.integration.cli.conftest import Ran
from tests.support.platform import REPOSITORY, Platform
from tests.support.waiting import until

pytestmark = pytest.mark.xdist_group("platform")

Run = Callable[..., Ran]


@pytest.fixture
def remote(platform: Platform, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command over HTTP with the key of the first start."""
    monkeypatch.setenv("DEVOS_SERVER", platform.url)
    monkeypatch.setenv("DEVOS_KEY", platform.api_key)

    def command(*args: str) -> Ran:
        with pytest.raises(SystemExit) as ended:
            main(list(args))
        printed = capsys.readouterr()
        return Ran(int(ended.value.code or 0), printed.out, printed.err)

    return command


@pytest.fixture
def local(platform: Platform) -> Run:
    """Run the command in a process of its own that knows nothing but DEVOS_HOME."""

    def command(*args: str) -> Ran:
        ended = platform.devos(*args)
        return Ran(ended.returncode, ended.stdout, ended.stderr)

    return command


@pytest.fixture(params=["remote", "local"])
def run(request: pytest.FixtureRequest) -> Run:
    """The same command both ways."""
    return request.getfixturevalue(request.param)


def test_a_site_is_scanned_to_the_end(run: Run, platform: Platform) -> None:
    ran = run("action", "seo.website.scan", "-i", f"url={platform.sample_site_url}", "--follow", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["status"] == "completed"
    assert ran.json["output"]
    assert ran.json["progress"]["current"] > 0


def test_work_that_fails_exits_1(run: Run) -> None:
    ran = run("action", "core.fail", "-i", "times=9", "-i", "code=NO_LUCK", "-i", "retryable=false", "--follow")
    assert ran.code == 1
    assert "NO_LUCK" in ran.err


def test_lines_progress_and_attempts_of_a_task(remote: Run) -> None:
    ran = remote("action", "core.sleep", "-i", "seconds=1.5", "--follow")
    assert ran.code == 0
    assert " running\n" in ran.out
    assert " completed after " in ran.out
    task = ran.out.split()[0]
    followed = remote("task", "logs", task, "--follow")
    assert (followed.code, followed.err) == (0, "")
    (execution,) = remote("task", "executions", task, "--json").json
    assert execution["attempt"] == 1
    assert remote("execution", "logs", execution["id"]).code == 0
    assert "task.completed" in remote("task", "events", task).out


def test_workers_and_queues_are_alive(run: Run) -> None:
    workers = run("worker", "list", "--json").json
    assert all(worker["alive"] for worker in workers)
    assert {"default", "system"} <= {queue for worker in workers for queue in worker["queues"]}


def test_ctrl_c_leaves_the_task_alone_and_cancel_ends_it(platform: Platform, remote: Run) -> None:
    environment = {**platform.env, "DEVOS_SERVER": platform.url, "DEVOS_KEY": platform.api_key}
    following = subprocess.Popen(
        [sys.executable, "-u", "-m", "devos.cli", "action", "core.sleep", "-i", "seconds=600", "--follow"],
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    try:
        assert following.stdout
        task = following.stdout.readline().split()[0]
        until(lambda: remote("task", "show", task, "--json").json["status"] == "running", 30, "the task runs")
        following.send_signal(signal.SIGINT)
        _, err = following.communicate(timeout=30)
    finally:
        following.kill()
        following.wait()
    assert following.returncode == 130
    assert f"devos task cancel {task}" in err
    assert remote("task", "show", task, "--json").json["status"] == "running"
    assert remote("task", "cancel", task, "--reason", "test is over").code == 0
    waited = remote("task", "wait", task, "--timeout", "60s")
    assert waited.code == 1
    assert "test is over" in waited.err


def test_a_wrong_key_is_refused(platform: Platform, remote: Run) -> None:
    ran = remote("task", "list", "--key", "dv_wrong", "--json")
    assert (ran.code, ran.out) == (2, "")
    assert json.loads(ran.err)["code"] == "NOT_AUTHENTICATED"
