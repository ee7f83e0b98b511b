"""The life of one `devos up`, in order: first start, second start refused, work, Ctrl-C, kill -9, start again."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
import requests

from devos.stack import process
from tests.support.platform import REPOSITORY, Platform
from tests.support.waiting import until

# One story told in steps: they share the home and go in this order.
pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(400), pytest.mark.xdist_group("stack-life")]
CHILDREN = {"postgres", "valkey", "web", "jobs", "system", "beat", "flower", "sample"}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Generator[Platform]:
    one = Platform(tmp_path_factory.mktemp("life") / "home", DEVOS_SHUTDOWN_GRACE_S="2")
    yield one
    if one.process is not None and one.process.poll() is None:
        one.stop()


@pytest.fixture
def running(own: Platform) -> Platform:
    if own.process is None or own.process.poll() is not None:
        own.start()
    return own


def task(platform: Platform, task_id: str) -> dict:
    answer = platform.api("GET", f"/api/tasks/{task_id}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def submit(platform: Platform, action: str, **given: object) -> str:
    answer = platform.api("POST", "/api/tasks", json={"type": action, "input": given})
    assert answer.status_code in (200, 201, 202), answer.text
    return answer.json()["id"]


def gone(pids: list[int]) -> bool:
    return not any(process.alive(pid) for pid in pids)


def test_first_start_tells_how_to_get_in(own: Platform) -> None:
    own.start()
    shown = own.log()
    assert re.search(rf"^READY {own.url} in [\d.]+ s$", shown, re.MULTILINE)
    assert f"sign in as {own.bootstrap['admin_user']} with password {own.bootstrap['admin_password']}" in shown
    assert set(own.run) == {
        "url", "flower_url", "sample_site_url", "database_url", "redis_url", "plugins", "children", "pid"
    }  # fmt: skip
    assert set(own.children) == CHILDREN
    assert own.home.stat().st_mode & 0o777 == 0o700
    for name in ("run.json", "bootstrap.json"):
        assert (own.home / name).stat().st_mode & 0o777 == 0o600


def test_first_task_was_run(running: Platform) -> None:
    found = re.search(rf"First task: scanned {running.sample_site_url}/ \((.+)\)", running.log())
    assert found, running.log()
    assert re.search(r"pages", found[1])
    listed = running.api("GET", "/api/tasks").json()
    assert [row["type"] for row in listed["results"]] == ["seo.website.scan"]
    assert listed["results"][0]["status"] == "completed"


def test_doors_and_their_locks(running: Platform) -> None:
    assert requests.get(f"{running.url}/health", timeout=10).json() == {"status": "ok"}
    assert requests.get(f"{running.url}/api/tasks", timeout=10).status_code in (401, 403)
    assert requests.get(f"{running.flower_url}/workers", timeout=10).status_code == 401
    login = (running.bootstrap["admin_user"], running.bootstrap["admin_password"])
    assert requests.get(f"{running.flower_url}/workers", auth=login, timeout=10).status_code == 200


def test_password_is_in_no_command_line(running: Platform) -> None:
    secrets = [running.bootstrap["admin_password"], running.redis_url.split(":")[2].split("@")[0]]
    for name, pid in running.children.items():
        shown = Path(f"/proc/{pid}/cmdline").read_bytes().decode()
        assert not [secret for secret in secrets if secret in shown], name


def test_second_start_in_the_same_home_is_refused(running: Platform) -> None:
    second = running.devos("up")
    assert second.returncode == 1
    assert f"already running in {running.home} (process {running.run['pid']})" in second.stderr
    assert gone([running.run["pid"]]) is False


def test_doctor_finds_nothing_wrong(running: Platform) -> None:
    answer = running.devos("doctor", "--json")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    checks = {one["check"]: one["level"] for one in json.loads(answer.stdout)["checks"]}
    for name in (
        "home",
        "supervisor",
        "children",
        "database",
        "broker policy",
        "migrations",
        "workers",
        "plugins",
        "beat",
    ):
        assert checks[name] == "ok", answer.stdout


def test_ctrl_c_hands_back_what_runs_and_leaves_nothing(running: Platform) -> None:
    long = submit(running, "core.sleep", seconds=6)
    until(lambda: task(running, long)["status"] == "running", 30, "the task runs")
    pids = [*running.children.values(), *running.pool_pids("jobs")]
    assert running.stop(signal.SIGINT) == 0
    assert gone(pids)
    assert running.run == {}
    assert "Stopped." in running.log()
    running.start()
    until(lambda: task(running, long)["status"] == "completed", 90, "the task that was handed back has ended")
    attempts = running.api("GET", f"/api/tasks/{long}/executions").json()["results"]
    assert {one["attempt"] for one in attempts} <= {1, 2}, attempts
    assert sum(one["status"] == "completed" for one in attempts) == 1


def test_later_start_shows_no_password_and_runs_no_first_task(running: Platform) -> None:
    shown = running.log().rpartition("READY")[2]
    assert "password" not in shown
    assert "First task" not in shown


def test_killed_supervisor_takes_its_children_along(running: Platform) -> None:
    pids = [*running.children.values(), *running.pool_pids("jobs"), *running.pool_pids("system")]
    before = running.bootstrap
    running.kill_supervisor()
    until(lambda: gone(pids), 30, "all children have ended")
    assert running.run, "run.json is left, as after any kill -9"
    stale = running.devos("doctor")
    assert "was killed" in stale.stdout
    running.start()
    assert running.bootstrap == before
    done = submit(running, "core.echo", value="again")
    until(lambda: task(running, done)["status"] == "completed", 30, "work is done again")


def test_left_children_of_a_killed_supervisor_are_ended(running: Platform, tmp_path: Path) -> None:
    """Where the death signal is not to be had, run.json names what is left."""
    running.stop()
    left = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], env=running.env, process_group=0, cwd=REPOSITORY
    )
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], process_group=0)
    try:
        children = f'{{"pid": 1, "children": {{"web": {left.pid}, "jobs": {stranger.pid}, "beat": {os.getpid()}}}}}'
        (running.home / "run.json").write_text(children)
        running.start()
        assert left.wait(10) != 0
        assert "Ended the process 'web', left by a DevOS that was killed." in running.log()
        assert stranger.poll() is None, "a process that is not ours is left alone"
    finally:
        for one in (left, stranger):
            one.kill()
            one.wait()
        running.stop(signal.SIGTERM)
