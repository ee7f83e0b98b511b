"""Submit: what is written, what is refused, and that all of it is one commit."""

import threading

import pytest
from django.db import connection, transaction

from tasks_app.domain.errors import Conflict, InvalidInput, PayloadTooLarge, PermissionDenied
from tasks_app.domain.principal import Actor, Principal
from tasks_app.models import AuditEntry, Event, IdempotencyKey, Job, Organization, Project, Task
from tasks_app.services.tasks import TaskSpec, submit, submit_many

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "runtime"])

ECHO = TaskSpec(type="core.echo", input={"value": {"a": [1, "é", None]}})


def test_task_job_events_and_audit_are_written_together(principal):
    done = submit(principal, ECHO.model_copy(update={"priority": 7}))
    task, job = Task.objects.get(id=done.task_id), Job.objects.get(id=done.job_id)
    assert (task.status, task.priority, task.type, task.input) == ("queued", 7, "core.echo", ECHO.input)
    assert (job.status, job.priority, job.queue_id, job.input) == ("queued", 7, "default", ECHO.input)
    assert task.correlation_id == task.public_id and task.request_id == "req-1"
    events = list(Event.objects.filter(task_id=task.id).order_by("sequence"))
    assert [event.type for event in events] == ["task.created", "job.queued"]
    assert events[0].id == task.id and events[1].causation_id == task.id
    assert {event.correlation_id for event in events} == {task.correlation_id}
    entry = AuditEntry.objects.get(verb="task.submit")
    assert (entry.object_id, entry.actor_id, entry.request_id) == (task.public_id, "test", "req-1")


def test_one_submit_is_one_statement(principal, django_assert_num_queries):
    submit(principal, ECHO)  # the queue's name is known after the first
    with django_assert_num_queries(1):
        submit(principal, ECHO)
    with django_assert_num_queries(1):
        submit_many(principal, [ECHO] * 500)
    assert Job.objects.count() == 502


def test_a_delayed_task_waits_and_says_until_when(principal):
    done = submit(principal, ECHO.model_copy(update={"delay_s": 60.0}))
    job = Job.objects.get(id=done.job_id)
    assert (job.status, job.blocked_by) == ("pending", {"reason": "time"})
    assert (job.available_at - job.created_at).total_seconds() == pytest.approx(60)
    assert Task.objects.get(id=done.task_id).status == "waiting" == done.status


def test_f50_nothing_is_left_of_a_submit_that_was_rolled_back(principal):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        submit(principal, ECHO)
        raise ZeroDivisionError
    assert not Task.objects.exists() and not Event.objects.exists() and not AuditEntry.objects.exists()


@pytest.mark.parametrize(
    ("change", "error", "word"),
    [
        ({"input": {"value": 1, "typo": 2}}, InvalidInput, "typo"),
        ({"input": {"value": "a\x00"}}, InvalidInput, "NUL"),
        ({"input": {"value": float("nan")}}, InvalidInput, "NaN"),
        ({"input": {"value": "x" * 2_000_000}}, PayloadTooLarge, "limit"),
        ({"queue": "nowhere"}, InvalidInput, "no queue"),
        ({"project": "nowhere"}, InvalidInput, "no project"),
        ({"mode": "stream", "type": "core.noop", "input": {}}, InvalidInput, "mode"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_stored(principal, change, error, word):
    with pytest.raises(error, match=word):
        submit(principal, ECHO.model_copy(update=change))
    assert not Task.objects.exists()


def test_a_bulk_is_all_or_nothing_and_names_the_bad_ones(principal):
    bad = ECHO.model_copy(update={"type": "no.such_action"})
    with pytest.raises(InvalidInput) as caught:
        submit_many(principal, [ECHO, bad, ECHO, bad])
    assert [problem["field"] for problem in caught.value.details] == ["tasks[1]", "tasks[3]"]
    assert not Task.objects.exists()


def test_roles_and_scopes_decide(principal):
    org = principal.organization_id
    with pytest.raises(PermissionDenied):
        submit(Principal(Actor("user", "1"), org, "viewer"), ECHO)
    with pytest.raises(PermissionDenied):
        submit(Principal(Actor("user", "1"), org, "operator", ("seo.*",)), ECHO)
    with pytest.raises(PermissionDenied, match="dangerous"):
        submit(Principal(Actor("user", "1"), org, "operator"), TaskSpec(type="core.crash"))


def test_a_project_of_another_organisation_does_not_exist_here(principal):
    other = Organization.objects.create(slug="other", name="Other")
    theirs = Project.objects.create(organization=other, slug="theirs", name="Theirs")
    for name in ("theirs", theirs.public_id):
        with pytest.raises(InvalidInput, match="no project"):
            submit(principal, ECHO.model_copy(update={"project": name}))


def test_an_idempotency_key_answers_the_first_result(principal):
    first = submit(principal, ECHO, idempotency_key="k")
    again = submit(principal, ECHO, idempotency_key="k")
    assert again.replayed and (again.task_id, again.job_id) == (first.task_id, first.job_id)
    assert Task.objects.count() == 1
    with pytest.raises(Conflict, match="another request"):
        submit(principal, ECHO.model_copy(update={"priority": 1}), idempotency_key="k")
    other = Principal(Actor("user", "other"), principal.organization_id, "admin")
    assert not submit(other, ECHO, idempotency_key="k").replayed


def test_an_expired_key_is_forgotten(principal):
    first = submit(principal, ECHO, idempotency_key="k")
    IdempotencyKey.objects.update(expires_at="2020-01-01T00:00:00Z")
    assert submit(principal, ECHO, idempotency_key="k").task_id != first.task_id


def test_f61_twenty_at_once_with_one_key_make_one_task(principal):
    answers, barrier = [], threading.Barrier(20)

    def ask():
        barrier.wait()
        try:
            answers.append(submit(principal, ECHO, idempotency_key="same").task_id)
        finally:
            connection.close()

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 20 and len(set(answers)) == 1
    assert Task.objects.count() == 1
