"""The promises of the spine, with real processes that are killed: nothing is lost, nothing runs twice unseen."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
import requests

from tests.support.platform import Platform
from tests.support.waiting import until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300), pytest.mark.xdist_group("platform")]


def submit(platform: Platform, count: int, type: str, **input: Any) -> list[str]:
    """Submit ``count`` equal tasks; their ids."""
    body = {"tasks": [{"type": type, "input": input}] * count}
    answer = platform.api("POST", "/api/tasks/bulk", json=body)
    assert answer.status_code == 201, answer.text
    return [task["id"] for task in answer.json()["results"]]


def rows(platform: Platform, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(platform.database_url, autocommit=True) as connection:
        return connection.execute(statement, parameters).fetchall()


def jobs_of(platform: Platform, tasks: Sequence[str]) -> list[tuple[Any, ...]]:
    """(status, attempt, interruptions, executions, executions completed) of the tasks' jobs."""
    ids = [uuid_of(task) for task in tasks]
    return rows(
        platform,
        """select j.status, j.attempt, j.interruptions, count(e.id), count(e.id) filter (where e.status = 'completed')
           from jobs j left join executions e on e.job_id = j.id where j.task_id = any(%s) group by j.id""",
        ids,
    )


def uuid_of(task: str) -> str:
    from tasks_app.domain.ids import from_text

    return str(from_text("task", task))


def all_done(platform: Platform, tasks: Sequence[str]) -> bool:
    return all(job[0] == "completed" for job in jobs_of(platform, tasks))


def some_running(platform: Platform, tasks: Sequence[str]) -> bool:
    return any(job[0] == "running" for job in jobs_of(platform, tasks))


def assert_each_attempt_is_one_row(platform: Platform, tasks: Sequence[str]) -> None:
    for status, attempt, _, executions, completed in jobs_of(platform, tasks):
        assert (status, executions, completed) == ("completed", attempt, 1)


def lost_restarted_within(platform: Platform, tasks: Sequence[str]) -> float:
    """The longest time, in seconds, between the end of a lost attempt's process and the start of the next attempt."""
    [(longest,)] = rows(
        platform,
        """select coalesce(max(extract(epoch from next.created_at - lost.created_at)), 0)::float
           from executions lost join executions next on next.job_id = lost.job_id and next.attempt = lost.attempt + 1
           where lost.status = 'lost' and lost.task_id = any(%s)""",
        [uuid_of(task) for task in tasks],
    )
    return longest


@pytest.mark.parametrize("victim", ["parent", "pool process"])
def test_kill_while_200_jobs_run(platform: Platform, victim: str) -> None:
    tasks = submit(platform, 200, "core.sleep", seconds=0.1)
    until(lambda: some_running(platform, tasks), 30, "jobs run")
    if victim == "parent":
        platform.wait_restarted("jobs", platform.kill("jobs", signal.SIGKILL))
    else:
        os.kill(platform.pool_pids()[0], signal.SIGKILL)
    until(lambda: all_done(platform, tasks), 120, f"all end after the {victim} was killed")
    assert_each_attempt_is_one_row(platform, tasks)
    # 20 s is the promise; an attempt may have run 0.1 s before its process was killed.
    assert lost_restarted_within(platform, tasks) < 20.5
    lost = [job for job in jobs_of(platform, tasks) if job[2]]
    assert len(lost) <= 2, "only what ran when it was killed counts as interrupted"


def test_f23_a_broker_that_forgets_everything(platform: Platform) -> None:
    tasks = submit(platform, 500, "core.sleep", seconds=0.01)
    redis.Redis.from_url(platform.redis_url).flushall()
    until(lambda: all_done(platform, tasks), 90, "all complete though every bell was lost")
    assert_each_attempt_is_one_row(platform, tasks)


def test_f32_an_action_that_holds_the_gil_past_its_lease_runs_once(platform: Platform) -> None:
    [task] = submit(platform, 1, "core.spin", seconds=20)
    until(lambda: all_done(platform, [task]), 120, "it completes")
    assert jobs_of(platform, [task]) == [("completed", 1, 0, 1, 1)]


def test_cancel_of_a_running_job_takes_a_moment(platform: Platform) -> None:
    [task] = submit(platform, 1, "core.sleep", seconds=60)
    until(lambda: some_running(platform, [task]), 30, "it runs")
    answer = platform.api("POST", f"/api/tasks/{task}/cancel", json={"reason": "try"})
    assert answer.status_code == 200, answer.text
    until(lambda: jobs_of(platform, [task])[0][0] == "cancelled", 10, "it is cancelled")
    shown = platform.api("GET", f"/api/tasks/{task}").json()
    assert (shown["status"], shown["cancel_reason"]) == ("cancelled", "try")


def test_f43_cancel_of_a_job_that_ignores_it_kills_it_after_its_grace(platform: Platform) -> None:
    [task] = submit(platform, 1, "core.sleep", seconds=90, ignore_cancel=True)
    until(lambda: some_running(platform, [task]), 30, "it runs")
    started = time.monotonic()
    platform.api("POST", f"/api/tasks/{task}/cancel", json={})
    until(lambda: jobs_of(platform, [task])[0][0] == "cancelled", 30, "it is killed and cancelled")
    assert time.monotonic() - started > 4, "it had its grace"
    after = submit(platform, 4, "core.echo", value=1)
    until(lambda: all_done(platform, after), 30, "the pool works on")


def test_f28_a_job_that_kills_its_process_ends_as_a_dead_letter(platform: Platform) -> None:
    [task] = submit(platform, 1, "core.crash")
    others = submit(platform, 20, "core.echo", value=1)
    until(lambda: jobs_of(platform, [task])[0][0] == "failed", 120, "the poison job is given up")
    until(lambda: all_done(platform, others), 30, "the others end")
    assert all(job[2] == 0 for job in jobs_of(platform, others)), "no neighbour was taken along"
    shown = platform.api("GET", f"/api/tasks/{task}").json()
    assert shown["error"]["code"] == "WORKER_LOST"
    [(open_letters,)] = rows(
        platform,
        "select count(*) from dead_letter_jobs d join jobs j on j.id = d.job_id where j.task_id = %s",
        uuid_of(task),
    )
    assert open_letters == 1


def test_f25_short_jobs_do_not_wait_behind_long_ones(platform: Platform) -> None:
    long = submit(platform, 1, "core.sleep", seconds=25)
    until(lambda: some_running(platform, long), 30, "the long one runs")
    short = submit(platform, 10, "core.echo", value=1)
    until(lambda: all_done(platform, short), 15, "the short ones end while the long one runs")
    assert some_running(platform, long)
    platform.api("POST", f"/api/tasks/{long[0]}/cancel", json={})


def test_a_worker_that_is_told_to_stop_costs_nothing(platform: Platform) -> None:
    tasks = submit(platform, 60, "core.sleep", seconds=0.2)
    until(lambda: some_running(platform, tasks), 30, "jobs run")
    platform.wait_restarted("jobs", platform.kill("jobs", signal.SIGTERM))
    until(lambda: all_done(platform, tasks), 90, "all end")
    assert all(interruptions == 0 for _, _, interruptions, _, _ in jobs_of(platform, tasks))


@pytest.mark.parametrize("how", ["sleep", "socket", "swallow", "child"])
def test_f41_a_time_limit_holds_whatever_the_action_does(platform: Platform, how: str) -> None:
    marker = f"stubborn-child-{os.getpid()}"
    [task] = submit(platform, 1, "stubborn.hang", how=how, marker=marker)
    until(lambda: jobs_of(platform, [task])[0][0] == "failed", 30, "it is ended at its limit")
    assert platform.api("GET", f"/api/tasks/{task}").json()["error"]["code"] == "TIMEOUT"
    until(lambda: not processes_with(marker), 10, "what it had started is gone too")
    after = submit(platform, 4, "core.echo", value=1)
    until(lambda: all_done(platform, after), 30, "the pool works on")


def processes_with(marker: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes()
        except OSError:
            continue
        if marker.encode() in command:
            found.append(entry.parent.name)
    return found


def test_a_durable_step_is_done_once(platform: Platform) -> None:
    [task] = submit(platform, 1, "stubborn.effect", how="", marker="paid")
    until(lambda: all_done(platform, [task]), 30, "the second attempt ends it")
    executions = platform.api("GET", f"/api/tasks/{task}/executions").json()["results"]
    first = min(executions, key=lambda one: one["attempt"])
    assert len(executions) == 2
    assert platform.api("GET", f"/api/tasks/{task}").json()["output"] == f"paid by {first['id']}"


def test_f22_a_broker_that_drops_every_connection(platform: Platform) -> None:
    tasks = submit(platform, 50, "core.sleep", seconds=0.3)
    broker = redis.Redis.from_url(platform.redis_url)
    ends_at = time.monotonic() + 8

    def dropped_long_enough() -> bool:
        broker.client_kill_filter(_type="normal", skipme=True)
        return time.monotonic() > ends_at

    until(dropped_long_enough, 20, "connections are dropped for a while", every_s=1)
    until(lambda: all_done(platform, tasks), 90, "all end without help")
    assert_each_attempt_is_one_row(platform, tasks)


def test_f31_a_worker_whose_row_is_gone_too(platform: Platform) -> None:
    tasks = submit(platform, 4, "core.sleep", seconds=1)
    until(lambda: some_running(platform, tasks), 30, "jobs run")
    old = platform.kill("jobs", signal.SIGKILL)
    rows(platform, "delete from workers where pid = %s returning 1", old)
    until(lambda: all_done(platform, tasks), 90, "rescue looks at leases, not at workers")
    assert_each_attempt_is_one_row(platform, tasks)


def test_flower_shows_jobs_by_action_and_id(platform: Platform) -> None:
    [task] = submit(platform, 1, "core.sleep", seconds=0.2)
    until(lambda: all_done(platform, [task]), 30, "it ends")
    job = platform.api("GET", f"/api/tasks/{task}/jobs").json()["results"][0]["id"]
    login = (platform.bootstrap["admin_user"], platform.bootstrap["admin_password"])

    def shown() -> bool:
        answer = requests.get(f"{platform.flower_url}/api/tasks", auth=login, timeout=10)
        known = answer.json() if answer.status_code == 200 else {}
        return known.get(job, {}).get("name") == "core.sleep"

    assert until(shown, 30, "Flower knows it")


def test_an_idle_platform_is_quiet(platform: Platform) -> None:
    """Under 150 statements a minute, all processes together."""
    until(lambda: not rows(platform, "select 1 from jobs where status in ('queued', 'running')"), 60, "nothing runs")
    before, at = _calls(platform), time.monotonic()
    until(lambda: time.monotonic() - at >= 15, 60, "a quarter of a minute passes")
    per_minute = (_calls(platform) - before - 1) * 60 / (time.monotonic() - at)
    assert per_minute < 150


def _calls(platform: Platform) -> int:
    [(calls,)] = rows(
        platform,
        """select coalesce(sum(calls), 0)::bigint from pg_stat_statements
           where dbid = (select oid from pg_database where datname = current_database())""",
    )
    return calls


def test_f67_a_waiting_job_outlives_its_workers_and_keeps_its_times(platform: Platform) -> None:
    [task] = submit(platform, 1, "stubborn.patient", how="", marker="order-1")

    def parked_at(kind: str) -> bool:
        found = rows(
            platform,
            "select worker_id, blocked_by ->> 'reason' from jobs where task_id = %s and status = 'pending'",
            uuid_of(task),
        )
        return found == [(None, kind)]

    def kill_the_worker() -> None:
        platform.wait_restarted("jobs", platform.kill("jobs", signal.SIGKILL))

    until(lambda: parked_at("sleep"), 30, "it sleeps")
    kill_the_worker()
    until(lambda: parked_at("event"), 60, "the sleep is over and it waits for the event")
    [(slept_s,)] = rows(
        platform,
        """select extract(epoch from resolved_at - s.created_at)::float from job_steps s join jobs j on j.id = s.job_id
           where j.task_id = %s and kind = 'sleep'""",
        uuid_of(task),
    )
    assert slept_s >= 6, "counted from its first start"
    kill_the_worker()
    body = {"type": "patient.paid", "key": "order-1", "data": {"n": 7}}
    assert platform.api("POST", "/api/events", json=body).status_code == 201
    until(lambda: parked_at("approval"), 60, "event and child have come")
    [asked] = platform.api("GET", f"/api/approvals?task={task}").json()["results"]
    kill_the_worker()
    platform.api("POST", f"/api/approvals/{asked['id']}/approve", json={"comment": "go"})
    until(lambda: all_done(platform, [task]), 60, "it is done")
    output = platform.api("GET", f"/api/tasks/{task}").json()["output"]
    assert (output["child"], output["approved"]) == ({"value": {"n": 7}}, True)
    [(status, attempt, interruptions, executions, completed)] = jobs_of(platform, [task])
    assert (status, interruptions, completed, attempt) == ("completed", 0, 1, executions)
