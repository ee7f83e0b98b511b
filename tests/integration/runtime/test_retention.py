"""Retention: old and over goes, everything else stays; batch by batch, from several processes, killed in the middle."""

import os
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, connection, connections, transaction

from tasks_app.domain import clock
from tasks_app.maintenance import retention
from tasks_app.maintenance.retention import partitions
from tasks_app.models import (
    DeadLetterJob,
    Event,
    Execution,
    ExecutionCost,
    ExecutionLog,
    Job,
    JobStep,
    RetentionMark,
    Task,
    TaskLog,
)
from tasks_app.runtime import sync
from tasks_app.services import tasks
from tasks_app.services.tasks import TaskSpec, submit, submit_many

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "runtime"])
NOOP = TaskSpec(type="core.noop")
FAIL = TaskSpec(type="test.raise", input={"what": "x"})


@pytest.fixture(autouse=True)
def _this_month_is_there_again():
    """Far enough in the future the present is old as well: its partitions are dropped by some of these tests."""
    yield
    with connection.cursor() as cursor:
        cursor.execute("truncate events, execution_logs")
        cursor.execute("select devos_ensure_partitions('events', 2) + devos_ensure_partitions('execution_logs', 2)")


@pytest.fixture
def later():
    """``with later(days)``: the clock stands that far ahead."""

    def shifted(days: float):
        return clock.using(lambda: datetime.now(UTC) + timedelta(days=days))

    return shifted


@pytest.fixture
def small(settings):
    """Batches of three."""
    settings.DEVOS = settings.DEVOS.model_copy(update={"retention_batch": 3})
    return settings


def child_of(task_id, **more):
    return NOOP.model_copy(update={"parent_task": Task.objects.get(id=task_id).public_id, **more})


def left():
    return {model.__name__: model.objects.count() for model in (Task, Job, Execution, JobStep, DeadLetterJob, TaskLog)}


def test_successes_go_before_failures_with_all_that_is_theirs(principal, drain, later):
    submit_many(principal, [NOOP, NOOP])
    failed = submit(principal, FAIL)
    drain()
    JobStep.objects.create(job_id=failed.job_id, ordinal=1, name="one")
    dead = DeadLetterJob.objects.get()
    assert retention.run()["tasks"] == 0
    with later(31):
        assert retention.run()["tasks"] == 2
    assert Task.objects.get().id == failed.task_id
    DeadLetterJob.objects.update(status="discarded")
    with later(91):
        assert retention.run()["tasks"] == 1
    assert dead and left() == dict.fromkeys(left(), 0)


def test_an_open_dead_letter_keeps_its_job_for_as_long_as_it_takes(principal, drain, later):
    submit(principal, FAIL)
    drain()
    with later(4_000):
        assert retention.run()["tasks"] == 0
        DeadLetterJob.objects.update(status="discarded")
        assert retention.run()["tasks"] == 1


def test_a_failure_that_was_made_good_is_kept_as_a_failure(principal, drain, later):
    done = submit(principal, FAIL)
    drain()
    DeadLetterJob.objects.update(status="retried")
    Task.objects.update(status="completed")
    Job.objects.update(status="completed")
    with later(60):
        assert retention.run()["tasks"] == 0
    with later(91):
        assert retention.run()["tasks"] == 1
    assert not Task.objects.filter(id=done.task_id).exists()


def test_f64_a_tree_with_one_live_member_stays_whole(principal, drain, later, settings):
    root = submit(principal, NOOP)
    middle, other = submit_many(principal, [child_of(root.task_id)] * 2)
    drain()
    leaf = submit(principal, child_of(middle.task_id, delay_s=86_400.0 * 300))
    settings.DEVOS = settings.DEVOS.model_copy(update={"keep_completed_d": 0, "keep_failed_d": 0, "keep_events_d": 0})
    before = left()
    with later(100):
        assert retention.preview()["tasks"] == 0
        assert retention.run()["tasks"] == 0
    assert left() == before
    tasks.cancel(principal, leaf.task_id)
    with later(100):
        assert retention.preview()["tasks"] == 4
        assert retention.run()["tasks"] == 4
    assert left()["Task"] == 0 and other


def test_f64_what_was_replayed_stays_with_its_replay(principal, drain, later):
    old = submit(principal, NOOP)
    drain()
    new = tasks.replay(principal, old.task_id)
    with later(31):
        assert retention.run()["tasks"] == 0
    drain()
    with later(31):
        assert retention.run()["tasks"] == 1
        assert Task.objects.get().id == old.task_id
        assert retention.run()["tasks"] == 1
    assert new


def test_f73_a_tree_larger_than_a_batch_goes_leaves_first(principal, drain, later, small):
    root = submit(principal, NOOP)
    for _ in range(8):
        submit(principal, child_of(root.task_id))
    drain()
    with later(31):
        trees, sizes = retention.runs.WALKS[0], []
        trees.prepare()
        while (done := trees.step()) and done.deleted:
            sizes.append(done.deleted)
            assert len(sizes) == 3 or Task.objects.filter(id=root.task_id).exists()
    assert sizes == [3, 3, 3]
    assert Task.objects.count() == 0


def test_f73_each_batch_is_a_commit_and_a_tick_goes_on_where_the_last_one_was(principal, drain, later, small):
    submit_many(principal, [NOOP] * 10)
    drain()
    small.DEVOS = small.DEVOS.model_copy(update={"retention_bite_s": 0.000_001})
    sizes = []
    with later(31):
        while done := retention.tick().get("tasks"):
            sizes.append(done)
    assert sizes == [3, 3, 3, 1]


def test_f73_two_pruners_share_the_work(principal, drain, later, small):
    submit_many(principal, [NOOP] * 40)
    drain()
    counts, errors = [], []

    def prune():
        try:
            counts.append(retention.run()["tasks"])
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    with later(31):
        threads = [threading.Thread(target=prune) for _ in range(3)]
        [thread.start() for thread in threads]
        [thread.join(60) for thread in threads]
    assert not errors
    assert sum(counts) == 40
    assert left()["Task"] == 0


def test_f49_f73_pruning_beside_work_disturbs_neither(principal, drain, small):
    small.DEVOS = small.DEVOS.model_copy(update={"keep_completed_d": 0, "retention_batch": 20})
    errors, stop = [], threading.Event()

    def prune():
        try:
            while not stop.is_set():
                retention.run()
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=prune) for _ in range(2)]
    [thread.start() for thread in threads]
    try:
        for _ in range(10):
            submit_many(principal, [NOOP] * 30)
            drain()
    finally:
        stop.set()
        [thread.join(60) for thread in threads]
    assert not errors
    retention.run()
    assert left() == dict.fromkeys(left(), 0)


def test_f73_a_killed_pruner_loses_nothing_but_its_batch(principal, drain):
    submit_many(principal, [NOOP] * 12)
    drain()
    environment = {
        **os.environ,
        "DATABASE_URL": _test_database(),
        "DEVOS_FAULT": "retention.before_commit:kill@3",
        "DEVOS_RETENTION_BATCH": "3",
        "DEVOS_KEEP_COMPLETED_D": "0",
    }
    killed = subprocess.run([sys.executable, "-m", "devos.cli", "retention"], env=environment, check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert left()["Task"] == left()["Job"] == 6
    del environment["DEVOS_FAULT"]
    again = subprocess.run(
        [sys.executable, "-m", "devos.cli", "retention", "--json"], env=environment, check=True, timeout=60,
        capture_output=True, text=True,
    )  # fmt: skip
    assert '"tasks": 6' in again.stdout
    assert left()["Task"] == 0


def _test_database() -> str:
    known = connection.settings_dict
    return (
        f"postgresql://{known['USER']}:{known['PASSWORD']}@/{connection.get_connection_params()['dbname']}"
        f"?host={known['HOST']}&port={known['PORT']}"
    )


def test_a_task_somebody_holds_is_left_alone(principal, drain, later):
    held, free = submit_many(principal, [NOOP] * 2)
    drain()
    with transaction.atomic():
        Job.objects.select_for_update().get(id=held.job_id)
        with later(31):
            assert retention.run()["tasks"] == 1
    assert Task.objects.get().id == held.task_id and free
    with later(31):
        assert retention.run()["tasks"] == 1


def test_sync_runs_and_costs(principal, later):
    sync.run(principal, "core.echo", {"value": 1})
    cost = ExecutionCost(
        organization_id=principal.organization_id, action_id="core.echo", execution_id=Execution.objects.get().id,
        provider="acme", day=clock.now().date(), created_at=clock.now(),
    )  # fmt: skip
    cost.save()
    with later(31):
        assert retention.preview()["sync_runs"] == 1
        assert retention.run()["sync_runs"] == 1
    assert Execution.objects.count() == 0
    assert ExecutionCost.objects.count() == 1


@pytest.fixture
def months():
    """Partitions of long ago, which hold a row of each kind."""
    with connection.cursor() as cursor:
        for parent in ("events", "execution_logs"):
            for month in ("2026_01", "2026_02"):
                first, second = month.replace("_", "-") + "-01", f"2026-{int(month[-2:]) + 1:02}-01"
                cursor.execute(
                    f"create table {parent}_{month} partition of {parent} for values from ('{first}') to ('{second}')"
                )
    yield
    with connection.cursor() as cursor:
        for parent in ("events", "execution_logs"):
            for month in ("2026_01", "2026_02"):
                cursor.execute(f"drop table if exists {parent}_{month}")


def there() -> set[str]:
    from tasks_app.maintenance.retention.cutoffs import Cutoffs

    return {month.name for month in partitions.old(Cutoffs.now())}


JANUARY, FEBRUARY = datetime(2026, 1, 15, tzinfo=UTC), datetime(2026, 2, 15, tzinfo=UTC)


def test_months_are_dropped_but_not_those_of_a_live_task_or_its_tree(principal, drain, months):
    root = submit(principal, NOOP)
    drain()
    child = submit(principal, child_of(root.task_id, delay_s=86_400.0))
    execution = Execution.objects.get(task_id=root.task_id)
    said = {"organization_id": principal.organization_id, "correlation_id": "c", "actor_type": "x", "actor_id": "x"}
    Event(type="test.old", timestamp=JANUARY, task_id=root.task_id, **said).save(force_insert=True)
    Event(type="test.old", timestamp=FEBRUARY, task_id=None, **said).save(force_insert=True)
    ExecutionLog.objects.create(execution_id=execution.id, level="info", message="old", timestamp=FEBRUARY)
    assert there() == {"events_2026_01", "events_2026_02", "execution_logs_2026_01", "execution_logs_2026_02"}
    assert retention.preview()["partitions"] == 2
    assert retention.tick()["partitions"] == 2
    assert there() == {"events_2026_01", "execution_logs_2026_02"}
    tasks.cancel(principal, child.task_id)
    assert retention.tick()["partitions"] == 2
    assert there() == set()
    assert Event.objects.filter(type="task.created").exists()


def test_a_month_that_is_read_is_dropped_the_next_time(months):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("select count(*) from events_2026_01")
        assert partitions.drop_old() == 3
    assert partitions.drop_old() == 1


def test_events_outside_of_their_month_go_and_all_others_are_for_ever(principal, later):
    said = {"organization_id": principal.organization_id, "correlation_id": "c", "actor_type": "x", "actor_id": "x"}
    waiting = submit(principal, NOOP.model_copy(update={"delay_s": 86_400.0}))
    for task_id in (None, None, waiting.task_id):
        Event(type="test.old", timestamp=JANUARY, task_id=task_id, **said).save(force_insert=True)
    ExecutionLog.objects.create(execution_id=waiting.job_id, level="info", message="old", timestamp=JANUARY)
    assert retention.run() == {"partitions": 0, "tasks": 0, "sync_runs": 0, "stray_events": 2, "stray_logs": 1}
    assert Event.objects.get(type="test.old").task_id == waiting.task_id
    with pytest.raises(IntegrityError), transaction.atomic():
        Event.objects.all().delete()
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("set local devos.retention = 'on'")
        cursor.execute("delete from events where type = 'task.created'")


def test_what_was_kept_is_looked_at_again_after_a_day(principal, drain, later):
    submit(principal, FAIL)
    drain()
    with later(91):
        retention.tick()
        DeadLetterJob.objects.update(status="discarded")
        assert "tasks" not in retention.tick()
    with later(92.1):
        assert retention.tick()["tasks"] == 1


def test_an_idle_tick_is_one_statement(django_assert_num_queries):
    retention.tick()
    assert RetentionMark.objects.count() == 4
    with django_assert_num_queries(1, connection=connections["runtime"]):
        assert retention.tick() == {}


def test_nothing_takes_longer_than_a_statement_may(principal, drain, later, small):
    submit_many(principal, [NOOP] * 20)
    drain()
    with connections["runtime"].cursor() as cursor:
        cursor.execute("set statement_timeout = '5s'")
    try:
        with later(31):
            assert retention.run()["tasks"] == 20
    finally:
        connections["runtime"].close()


def test_the_command_counts_and_deletes(principal, drain, capsys):
    from devos.cli import main

    submit_many(principal, [NOOP] * 3)
    drain()
    future = clock.now() + timedelta(days=31)
    with clock.using(lambda: future):
        for arguments, words in ((["--dry-run"], "Would be deleted:"), ([], "Deleted:")):
            with pytest.raises(SystemExit) as ended:
                main(["retention", *arguments])
            assert ended.value.code == 0
            out = capsys.readouterr().out
            assert words in out and "3  tasks" in out
    assert left()["Task"] == 0
