"""`devos bench run`: the platform against raw Celery, on the same broker and the same pool, in one run.

Run as a module inside the environment that `devos.bench.scratch` makes; prints one JSON document.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from typing import Any

import django
import psycopg

django.setup()

import redis
from django.conf import settings
from django.db import connection

from devos.bench.workers import PLAIN_CELERY, Pool, pool
from devos.celery import app
from tasks_app.domain.principal import SYSTEM, Principal
from tasks_app.models import Execution, Job, Organization, Worker
from tasks_app.runtime.process import rss_mb
from tasks_app.services.bells import bells
from tasks_app.services.tasks import TaskSpec, submit, submit_many

QUEUE = "default"
CELERY_QUEUE = "low"
BULK = 1_000
NOOP = TaskSpec(type="core.noop")
GIVE_UP_S = 600
# Each look steps over what the index still holds of ended jobs: looking often would be part of what is measured.
POLL_S = 0.05


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency-s", type=float, default=10)
    parser.add_argument("--each", action="store_true")
    options = parser.parse_args()
    organization = Organization.objects.get(slug="default")
    principal = Principal(SYSTEM, organization.id, "admin")
    with (
        pool(QUEUE, options.concurrency, each=options.each) as worker,
        pool(CELERY_QUEUE, options.concurrency, settings=PLAIN_CELERY) as plain,
    ):
        plain.hold()
        result = _measure(worker, plain, principal, options)
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


def _measure(worker: Pool, plain: Pool, principal: Principal, options: argparse.Namespace) -> dict[str, Any]:
    drains, celery, bulk = [], [], []
    _drain(worker, principal, min(options.jobs, 500))  # connections, caches and prepared statements are warm after this
    _raw_celery(plain, min(options.jobs, 500))
    for _ in range(options.rounds):  # interleaved, so that a change of the machine's mood meets both
        celery.append(_raw_celery(plain, max(options.jobs // 4, 1_000)))
        drains.append(_drain(worker, principal, options.jobs))
        bulk.append(drains[-1]["bulk_submit_per_s"])
    single = _single_submit(worker, principal, min(options.jobs, 2_000))
    latency = _latency(principal, options.latency_s)
    jobs_per_s = statistics.median(d["jobs_per_s"] for d in drains)
    celery_per_s = statistics.median(celery)
    return {
        "jobs": options.jobs,
        "rounds": options.rounds,
        "each": options.each,
        "jobs_per_s": round(jobs_per_s, 1),
        "celery_jobs_per_s": round(celery_per_s, 1),
        "ratio": round(jobs_per_s / celery_per_s, 2),
        "bulk_submit_per_s": round(statistics.median(bulk), 1),
        "single_submit_per_s": round(single, 1),
        "enqueue_to_start_ms": latency,
        "statements_per_job": round(statistics.median(d["statements_per_job"] for d in drains), 3),
        "commits_per_job": round(statistics.median(d["commits_per_job"] for d in drains), 3),
        "worker_rss_mb": rss_mb(worker.pids()),
        "worker_processes": len(worker.pids()),
        "workers_seen": Worker.objects.count(),
    }


def _raw_celery(plain: Pool, count: int) -> float:
    """No-op Celery tasks per second: a backlog is published while the worker is held, then drained."""
    client = redis.Redis.from_url(settings.REDIS_URL)
    with app.producer_pool.acquire(block=True) as producer:
        for _ in range(count):
            app.send_task("devos.bench_noop", queue=CELERY_QUEUE, ignore_result=True, producer=producer)
    started = time.monotonic()
    plain.go()
    _wait(lambda: client.llen(CELERY_QUEUE) == 0)
    per_s = count / (time.monotonic() - started)
    plain.hold()
    return per_s


def _drain(worker: Pool, principal: Principal, count: int) -> dict[str, float]:
    """No-op jobs per second, with statements and commits per job while draining."""
    worker.hold()
    first = Job.objects.order_by("-id").values_list("id", flat=True).first()
    started = time.monotonic()
    for start in range(0, count, BULK):
        submit_many(principal, [NOOP] * min(BULK, count - start))
    submitted = count / (time.monotonic() - started)
    mine = Job.objects.filter(id__gt=first) if first else Job.objects.all()
    before = _statistics()
    resumed = time.monotonic()
    worker.go()
    bells().ring(QUEUE)
    looks = _wait(_nothing_left)
    per_s = count / (time.monotonic() - resumed)
    failed = mine.exclude(status="completed").count()
    if failed:
        raise RuntimeError(f"{failed} of {count} no-op jobs did not complete")
    time.sleep(1.5)  # PostgreSQL's statistics are written when a backend has been idle for a second
    after = _statistics()
    return {
        "jobs_per_s": per_s,
        "bulk_submit_per_s": submitted,
        "statements_per_job": max(0, after[0] - before[0] - looks - 1) / count,
        "commits_per_job": max(0, after[1] - before[1] - looks - 2) / count,
    }


def _nothing_left() -> bool:
    """Whether no job waits or runs. Asked of the indexes that hold only such jobs: a look at all of them would be
    half of what is measured."""
    with connection.cursor() as cursor:
        cursor.execute(
            """select exists (select 1 from jobs where queue = %s and status = 'queued')
               or exists (select 1 from jobs where lease_expires_at is not null)
               or exists (select 1 from jobs where status in ('pending', 'retrying'))""",
            [QUEUE],
        )
        return not cursor.fetchone()[0]


def _single_submit(worker: Pool, principal: Principal, count: int) -> float:
    """Submits per second, one by one, with nothing else going on: the worker is held meanwhile."""
    worker.hold()
    started = time.monotonic()
    for _ in range(count):
        submit(principal, NOOP)
    elapsed = time.monotonic() - started
    worker.go()
    bells().ring(QUEUE)
    _wait(_nothing_left)
    return count / elapsed


def _latency(principal: Principal, seconds: float, rate: float = 20) -> dict[str, float]:
    """From the commit of the submit to the start of the action, at a steady ``rate`` of jobs per second."""
    started = time.monotonic()
    jobs = []
    for index in range(max(int(seconds * rate), 20)):
        time.sleep(max(0.0, started + index / rate - time.monotonic()))
        jobs.append(submit(principal, NOOP).job_id)
    _wait(_nothing_left)
    rows = Execution.objects.filter(job_id__in=jobs).values_list("started_at", "job__created_at")
    waits = sorted(max(0.0, (start - created).total_seconds() * 1000) for start, created in rows)
    cuts = statistics.quantiles(waits, n=100)
    return {"p50": round(cuts[49], 1), "p95": round(cuts[94], 1), "p99": round(cuts[98], 1)}


def _statistics() -> tuple[int, int]:
    """Statements and commits of this database so far. Without pg_stat_statements a statement counts as its commit."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_stat_clear_snapshot()")
        cursor.execute("select xact_commit, datid from pg_stat_database where datname = current_database()")
        commits, database = cursor.fetchone()
    try:
        with psycopg.connect(os.environ["DEVOS_BENCH_BASE_URL"]) as base:
            row = base.execute("select sum(calls) from pg_stat_statements where dbid = %s", [database]).fetchone()
    except psycopg.Error:
        return int(commits), int(commits)
    return int(row[0] or 0) if row else 0, int(commits)


def _wait(done: Any) -> int:
    """Poll until ``done()``; returns how often it was asked."""
    until, looks = time.monotonic() + GIVE_UP_S, 1
    while not done():
        if time.monotonic() > until:
            raise RuntimeError("The jobs were not done in time; see the worker's log.")
        time.sleep(POLL_S)
        looks += 1
    return looks


if __name__ == "__main__":
    sys.exit(main())
