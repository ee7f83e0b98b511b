"""The checks of `devos doctor` that need Django: plugins, migrations, clocks, workers and beat."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from devos.stack import process
from devos.stack.findings import Finding, fail, ok, warn
from devos.stack.plan import JOB_QUEUES, SYSTEM_QUEUE

SKEW_WARN_S = 1.0
SKEW_FAIL_S = 30.0
# Beat writes down its runs every three minutes.
BEAT_SILENT_MAX_S = 600.0


def findings(database_works: bool, children: Mapping[str, int]) -> Iterator[Finding]:
    """Configures Django by itself. ``children`` are those of the supervisor on this machine, by name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "devos.settings")
    import django

    django.setup()
    yield from _plugins()
    if database_works:
        yield from _clock()
        migrated = True
        for finding in _migrations():
            migrated = finding.level == "ok"
            yield finding
        if migrated:
            yield from _workers()
            yield from _beat(children.get("beat", 0))


def _plugins() -> Iterator[Finding]:
    from tasks_app.actions import registry

    problems = registry.load_problems()
    for problem in problems:
        hint = "Its actions are missing until it loads. Correct or uninstall it, then start again."
        yield fail("plugins", f"{problem.plugin} failed to load: {problem.error}", hint)
    if not problems:
        yield ok("plugins", f"{len(registry.plugins())} loaded, {len(registry.all_actions())} actions")


def _clock() -> Iterator[Finding]:
    from django.db import connection

    with connection.cursor() as cursor:
        before = datetime.now(UTC)
        cursor.execute("select clock_timestamp()")
        [there] = cursor.fetchone()
        after = datetime.now(UTC)
    # The database read its clock somewhere between; what is left after the best guess is skew.
    skew = abs((there - (before + (after - before) / 2)).total_seconds()) - (after - before).total_seconds() / 2
    skew = max(skew, 0.0)
    text = f"this machine and the database differ by {skew:.2f} s"
    hint = "Leases and timers follow the database's clock, but people read both: run a time service on each."
    if skew >= SKEW_FAIL_S:
        yield fail("clock", text, hint)
    elif skew >= SKEW_WARN_S:
        yield warn("clock", text, hint)
    else:
        yield ok("clock", text)


def _migrations() -> Iterator[Finding]:
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        names = ", ".join(f"{migration.app_label}.{migration.name}" for migration, _ in missing[:5])
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        yield fail(
            "migrations", f"not applied: {names}{more}", "Run `python manage.py migrate`; `make up` does it too."
        )
    else:
        yield ok("migrations", "all applied")


def _workers() -> Iterator[Finding]:
    from tasks_app.models import Worker
    from tasks_app.queries.workers import seen_since

    living = list(Worker.objects.filter(stopped_at__isnull=True, last_seen_at__gte=seen_since()))
    served = {queue for worker in living for queue in worker.queues}
    wanted = [*JOB_QUEUES.split(","), SYSTEM_QUEUE]
    without = [queue for queue in wanted if queue not in served]
    if not without:
        names = ", ".join(sorted(worker.hostname for worker in living))
        yield ok("workers", f"{len(living)} alive: {names}")
    elif SYSTEM_QUEUE in without:
        hint = "Start the workers (`make up`, or docker-compose.yml). Without the system worker nothing is rescued."
        yield fail("workers", f"no living worker serves {', '.join(without)}", hint)
    else:
        yield warn(
            "workers", f"no living worker serves {', '.join(without)}", "Jobs of these queues wait until one does."
        )
    last = Worker.objects.order_by("-last_seen_at").first()
    if not living and last is not None:
        yield warn(
            "last worker", f"{last.hostname} was last seen {_ago(last.last_seen_at)}", "Its log says why it ended."
        )


def _beat(pid: int) -> Iterator[Finding]:
    from django.db.models import Max
    from django_celery_beat.models import PeriodicTask

    last = PeriodicTask.objects.aggregate(last=Max("last_run_at"))["last"]
    seen = f"last written down {_ago(last)}" if last else "nothing written down yet"
    if pid and process.alive(pid):
        yield ok("beat", f"runs as process {pid}; {seen}")
    elif last and (datetime.now(UTC) - last).total_seconds() < BEAT_SILENT_MAX_S:
        yield ok("beat", seen)
    else:
        hint = "Start exactly one beat. Without it nothing that waits for a time is readied, and nothing is rescued."
        yield warn("beat", seen, hint)


def _ago(moment: datetime) -> str:
    return f"{timedelta(seconds=int((datetime.now(UTC) - moment).total_seconds()))} ago"
