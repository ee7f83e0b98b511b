"""What authors of actions test with: it fails where it should, and the how-to shows what is run here."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
import structlog

from tasks_app.domain import clock
from tasks_app.models import Job, Queue
from tasks_app.sdk import ActionInput, Context, action
from tasks_app.services import queues, tasks
from tasks_app.services.tasks import TaskSpec, submit
from tasks_app.testing import assert_enqueued, drain, fake_clock, registered, silent_bells

pytest_plugins = ["tasks_app.testing.fixtures"]
with_jobs = pytest.mark.django_db(transaction=True, databases=["default", "runtime"])
ECHO = TaskSpec(type="core.echo", input={"value": {"a": 1, "b": [2]}})
HERE = Path(__file__).parent


def test_the_how_to_shows_the_example_as_it_is_run():
    page = (HERE.parents[2] / "docs" / "how-to" / "test-an-action.md").read_text()
    assert (HERE / "test_example.py").read_text() in page


def test_a_clock_goes_on_and_never_back():
    before = clock.now()
    with fake_clock() as fake:
        assert fake.advance(days=1) - before >= timedelta(days=1)
        assert clock.shift_s() == pytest.approx(86_400, abs=5)
        instant = clock.now()
        assert clock.now() >= instant
        fake.move_to(before)
        assert clock.now() >= instant
        with pytest.raises(ValueError):
            fake.advance(-1)
    assert clock.shift_s() == 0


@with_jobs
def test_an_assertion_that_fails_says_what_is_there(devos_principal):
    submit(devos_principal, ECHO)
    assert_enqueued("core.echo", input={"value": {"a": 1}}, priority=0)
    for wrong in ({"input": {"value": {"a": 2}}}, {"queue": "low"}, {"count": 2}, {"count": 0}, {"priority": 1}):
        with pytest.raises(AssertionError, match="core.echo on default, queued"):
            assert_enqueued("core.echo", **wrong)
    with pytest.raises(AssertionError, match="at least one of no.such"):
        assert_enqueued("no.such")


@with_jobs
def test_what_does_not_run_is_told(devos_principal):
    submit(devos_principal, ECHO.model_copy(update={"delay_s": 60.0}))
    done = drain()
    assert done.jobs_run == 0
    assert [job.blocked_by for job in done.waiting] == [{"reason": "time"}]


@with_jobs
def test_paused_and_other_queues_are_left_alone(devos_principal):
    for queue in ("default", "low", "high"):
        submit(devos_principal, ECHO.model_copy(update={"queue": queue}))
    queues.pause(devos_principal, "low", "tests")
    assert drain("high").jobs_run == 1
    assert drain().jobs_run == 1
    assert Job.objects.get(status="queued").queue_id == "low"
    assert Queue.objects.get(name="low").paused_at


class Nothing(ActionInput):
    pass


@action("endless.again", permission="test.run")
def again(ctx: Context, input: Nothing) -> None:
    """Asks for itself."""
    from tasks_app.services.principals import of_actor

    principal = of_actor(ctx.actor, ctx._identity.organization_id)
    submit(principal, TaskSpec(type="endless.again"))


@with_jobs
def test_work_that_never_ends_is_cut(devos_principal):
    with registered(again):
        submit(devos_principal, TaskSpec(type="endless.again"))
        with pytest.raises(AssertionError, match="more than 5 jobs"):
            drain(most=5)


@with_jobs
def test_no_broker_is_needed(devos_principal, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    with silent_bells(), structlog.testing.capture_logs() as said:
        task = submit(devos_principal, ECHO)
        tasks.cancel(devos_principal, task.task_id)
        submit(devos_principal, ECHO)
        assert drain().jobs_run == 1
    assert not [line for line in said if line["event"] == "bell.not_sent"]
