"""The desk at night, with real workers: a bulk survives a kill, shows progress, and is stopped half way."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import psycopg
import pytest

from tests.support.dead_letters import SEED, SUCCEEDS
from tests.support.platform import Platform
from tests.support.waiting import until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300), pytest.mark.xdist_group("platform")]

COUNT = 3_000


def value(platform: Platform, statement: str, *parameters: Any) -> Any:
    with psycopg.connect(platform.database_url, autocommit=True) as connection:
        return connection.execute(statement, parameters).fetchone()[0]


def seed(platform: Platform) -> None:
    with psycopg.connect(platform.database_url, autocommit=True) as connection:
        [org] = connection.execute("select id from organizations where slug = 'default'").fetchone()
        parameters = {"org": org, "count": COUNT, "queue": "low", "input": SUCCEEDS, "groups": 5}
        connection.execute(SEED, parameters)


def test_a_bulk_retry_survives_a_kill_and_is_stopped_half_way(platform: Platform) -> None:
    seed(platform)
    counted = platform.devos("dlq", "bulk", "retry", "--code", "BROKEN", "--action", "core.fail", "--dry-run", "--json")
    assert json.loads(counted.stdout) == {"count": COUNT, "exact": True}, counted.stderr
    chosen = ["--code", "BROKEN", "--action", "core.fail"]
    made = platform.devos("dlq", "bulk", "retry", *chosen, "--rate", "200/s", "--reason", "the host is back", "--json")
    assert made.returncode == 0, made.stderr
    task = json.loads(made.stdout)["id"]
    decided = """select count(*) from dead_letter_results r join tasks t on t.id = r.task_id
        where t.input ->> 'reason' = 'the host is back'"""

    until(lambda: value(platform, decided) >= 200, 60, "it has begun")
    for pid in platform.pool_pids():
        os.kill(pid, signal.SIGKILL)
    killed_at = value(platform, decided)
    until(lambda: value(platform, decided) >= killed_at + 400, 60, "it goes on after its process was killed")
    progress = platform.api("GET", f"/api/tasks/{task}").json()["progress"]
    assert progress["total"] == COUNT and 0 < progress["current"] < COUNT

    assert platform.api("POST", f"/api/tasks/{task}/cancel", json={"reason": "enough"}).status_code == 200
    until(lambda: platform.api("GET", f"/api/tasks/{task}").json()["status"] == "cancelled", 20, "it is stopped")
    done = value(platform, decided)
    still_open = value(platform, "select count(*) from dead_letter_jobs where code = 'BROKEN' and status = 'open'")
    assert 600 <= done < COUNT and still_open == COUNT - done
    untouched = """select count(*) from dead_letter_jobs d join jobs j on j.id = d.job_id
        where d.code = 'BROKEN' and d.status = 'open' and (j.status <> 'failed' or j.attempt <> 1)"""
    assert value(platform, untouched) == 0
    audited = "select count(*) from audit_entries where verb = 'dead_letter.retried' and reason = 'the host is back'"
    assert value(platform, audited) == done
    run = """select count(*) from dead_letter_results r join jobs j on j.id = r.job_id
        where r.outcome = 'done' and j.status = 'completed' and j.attempt - j.uncounted = 1"""
    until(lambda: value(platform, run) == done, 90, "each that was retried is run again, once")

    shown = platform.devos("dlq", "results", task, "--limit", "5", "--json")
    assert [row["outcome"] for row in json.loads(shown.stdout)] == ["done"] * 5
    rest = ["--code", "BROKEN", "--reason", "a test", "--follow", "--json"]
    over = platform.devos("dlq", "bulk", "discard", *rest)
    assert over.returncode == 0 and json.loads(over.stdout)["output"] == {"done": COUNT - done, "refused": 0}
