"""The probe and its sweeps, the clock that tests may move, and the hourly tidy-up."""

from datetime import timedelta

import pytest
from django.db import connection, connections

from tasks_app.domain import clock
from tasks_app.maintenance import hourly, probe
from tasks_app.models import Job, Queue, Task
from tasks_app.services import queues
from tasks_app.services.tasks import TaskSpec, submit

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "runtime"])

NOOP = TaskSpec(type="core.noop")


def test_an_idle_probe_is_one_statement(django_assert_num_queries):
    with django_assert_num_queries(1, connection=connections["runtime"]):
        assert probe.tick() == {}


def test_a_delayed_job_is_readied_when_its_time_has_come(principal):
    submit(principal, NOOP.model_copy(update={"delay_s": 3600.0}))
    assert probe.tick() == {}
    later = clock.now() + timedelta(hours=1, seconds=5)
    with clock.using(lambda: later):
        assert probe.tick() == {"timers": 1}
    assert (Job.objects.get().status, Task.objects.get().status) == ("queued", "queued")


def test_dead_leases_are_rescued_by_the_probe(principal, loop, settings):
    from tasks_app.services.jobs.claim import claim

    submit(principal, NOOP)
    claim("default", loop.worker_id, 1)
    Job.objects.update(lease_expires_at="2020-01-01T00:00:00Z")
    settings.DEVOS = settings.DEVOS.model_copy(update={"lease_s": 0.0})
    assert probe.tick() == {"rescue": 1}
    assert Job.objects.get().status == "queued"


def test_a_pause_ends_by_itself(principal):
    queues.pause(principal, "low", "until later", until=clock.now() + timedelta(minutes=5))
    assert probe.tick() == {}
    later = clock.now() + timedelta(minutes=6)
    with clock.using(lambda: later):
        assert probe.tick() == {"queue_pauses": 1}
    assert Queue.objects.get(name="low").paused_at is None


def test_f34_a_sweep_that_fails_does_not_stop_the_others(caplog):
    from tasks_app.maintenance.sweep import Sweep, run_all

    def broken():
        raise RuntimeError("broken")

    assert run_all([Sweep("broken", broken), Sweep("fine", lambda: 3)]) == {"fine": 3}


def test_the_tidy_up_makes_partitions_and_repairs_tasks(principal):
    done = submit(principal, NOOP)
    Task.objects.filter(id=done.task_id).update(status="running", check_at="2020-01-01T00:00:00Z")
    Job.objects.update(status="completed", completed_at=clock.now())
    with connection.cursor() as cursor:
        month = clock.now() + timedelta(days=62)
        cursor.execute(f"drop table if exists events_{month:%Y_%m}")
    result = hourly.tick()
    assert result["task_repair"] == 1 and result["partitions"] >= 1
    assert Task.objects.get(id=done.task_id).status == "completed"
    assert hourly.tick()["task_repair"] == 0


def test_what_exists_after_migrate_is_there_once():
    from django_celery_beat.models import PeriodicTask

    from tasks_app.services import setup

    for _ in range(3):
        setup.ensure_defaults()
        setup.ensure_ticks()
    assert PeriodicTask.objects.filter(name="devos.probe", queue="system").count() == 1
    assert set(Queue.objects.values_list("name", flat=True)) >= {"default", "high", "low", "system"}
