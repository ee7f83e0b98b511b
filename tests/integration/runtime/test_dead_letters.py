"""The dead-letter desk: one decision a letter, everything in one commit, and bulks that can be stopped and go on."""

import threading

import pytest
from django.db import connections
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tasks_app.domain import ids
from tasks_app.domain.dead_letters import TARGET, DeadLetterVerb
from tasks_app.domain.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from tasks_app.domain.masking import MASK
from tasks_app.domain.principal import Actor, Principal
from tasks_app.models import AuditEntry, DeadLetterJob, DeadLetterResult, Event, Job, Organization, Task
from tasks_app.queries import dead_letters as queries
from tasks_app.queries.dead_letters import DeadLetterFilter, GroupFilter
from tasks_app.services import dead_letters, tasks
from tasks_app.services.dead_letters import BulkSpec
from tasks_app.services.tasks import TaskSpec, submit, submit_many

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "runtime"])


def failing(times=1_000, message="failed as asked", **more):
    value = {"times": times, "code": "BROKEN", "retryable": False, "message": message}
    return TaskSpec(type="core.fail", input=value, **more)


@pytest.fixture
def letter(principal, drain):
    """The open dead letter of a job that fails whatever one does."""
    submit(principal, failing())
    drain()
    return DeadLetterJob.objects.get()


def status_of(letter):
    letter.refresh_from_db()
    return letter.status


def test_a_retried_job_that_fails_again_gets_a_letter_of_its_own(principal, drain, letter):
    again = dead_letters.retry(principal, letter.id, "the host is back")
    assert (again.status, again.decided_by, again.reason) == ("retried", "system:test", "the host is back")
    assert again.decided_at is not None
    assert Task.objects.get().status == "queued"
    drain()
    first, second = DeadLetterJob.objects.order_by("id")
    assert (first.status, second.status, first.job_id) == ("retried", "open", second.job_id)
    assert first.fingerprint == second.fingerprint and first.code == "BROKEN"
    assert AuditEntry.objects.filter(verb="dead_letter.retried", object_id=letter.public_id).count() == 1
    event = Event.objects.get(type="dead_letter.retried")
    assert (event.job_id, event.data["dead_letter"]) == (letter.job_id, letter.public_id)


def test_a_retry_of_the_task_or_the_job_keeps_the_letter_in_step(principal, drain, letter):
    tasks.retry(principal, letter.job.task_id, "through the task")
    assert status_of(letter) == "retried"
    assert letter.reason == "through the task"
    with pytest.raises(Conflict, match="retried by system:test"):
        dead_letters.discard(principal, letter.id, "too late")


def test_a_replay_of_the_task_keeps_the_letter_in_step(principal, letter):
    made = tasks.replay(principal, letter.job.task_id)
    assert status_of(letter) == "replayed"
    assert letter.replay_task_id == made.task_id


def test_replay_with_edited_input(principal, drain, letter):
    with pytest.raises(InvalidInput, match="times"):
        dead_letters.replay(principal, letter.id, input={"times": "many"})
    assert status_of(letter) == "open"
    done = dead_letters.replay(principal, letter.id, input={"times": 0}, reason="without failing")
    drain()
    new = Task.objects.get(id=done.replay_task_id)
    assert (new.status, new.replay_of_id, done.status) == ("completed", letter.job.task_id, "replayed")
    assert Job.objects.get(id=letter.job_id).status == "failed"


def test_discard_needs_a_reason_and_changes_nothing_else(principal, letter):
    with pytest.raises(InvalidInput, match="why"):
        dead_letters.discard(principal, letter.id, "  ")
    assert dead_letters.discard(principal, letter.id, "a test").status == "discarded"
    assert Task.objects.get().status == "failed"


def test_cancel_ends_what_is_left_of_the_task_and_below(principal, letter):
    child = Task.objects.get(id=submit(principal, TaskSpec(type="core.echo", delay_s=3_600)).task_id)
    Task.objects.filter(id=child.id).update(parent_task_id=letter.job.task_id)
    assert dead_letters.cancel(principal, letter.id, "not wanted").status == "cancelled"
    child.refresh_from_db()
    assert (child.status, child.cancel_reason) == ("cancelled", "not wanted")


def test_nobody_else_and_nobody_less_may_decide(principal, letter):
    other = Organization.objects.create(slug="other", name="Other")
    stranger = Principal(Actor("system", "x"), other.id, "admin")
    viewer = Principal(Actor("user", "1"), principal.organization_id, "viewer")
    scoped = Principal(Actor("user", "1"), principal.organization_id, "admin", ("dead_letters.*",))
    with pytest.raises(NotFound):
        dead_letters.retry(stranger, letter.id)
    for verb in (dead_letters.retry, dead_letters.replay, dead_letters.cancel):
        with pytest.raises(PermissionDenied):
            verb(viewer, letter.id)
        with pytest.raises(PermissionDenied):
            verb(scoped, letter.id)
    assert status_of(letter) == "open"
    assert dead_letters.discard(scoped, letter.id, "may do that").status == "discarded"


def test_of_concurrent_decisions_exactly_one_wins(principal, letter):
    start, said = threading.Barrier(8), []

    def decide(number):
        who = Principal(Actor("system", f"number-{number}"), principal.organization_id, "admin")
        verbs = (dead_letters.retry, dead_letters.replay, dead_letters.discard, dead_letters.cancel)
        start.wait()
        try:
            said.append(verbs[number % 4](who, letter.id, reason=f"says {number}").decided_by)
        except Conflict as error:
            said.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=decide, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [one for one in said if isinstance(one, str)]
    assert len(winners) == 1 and len(said) == 8
    assert all(winners[0] in one.message for one in said if isinstance(one, Conflict))
    letter.refresh_from_db()
    assert letter.decided_by == winners[0]
    assert AuditEntry.objects.filter(object_type="dead_letter").count() == 1
    assert Event.objects.filter(type__startswith="dead_letter.").count() == 1


def test_f76_a_replayed_secret_stays_a_secret(principal, drain):
    from pydantic import SecretStr

    from tasks_app.actions import registry
    from tasks_app.sdk import ActionError, ActionInput, Context, Plugin, action

    class Login(ActionInput):
        user: str
        password: SecretStr

    @action("leaky.refuse", permission="test.run")
    def refuse(ctx: Context, input: Login) -> int:
        if input.user == "ann":
            raise ActionError("REFUSED", "no", retryable=False)
        return len(input.password.get_secret_value())

    registry.register(Plugin("leaky", actions=[refuse]))
    try:
        submit(principal, TaskSpec(type="leaky.refuse", input={"user": "ann", "password": "s3cr3t-42"}))
        drain()
        letter = DeadLetterJob.objects.get()
        done = dead_letters.replay(principal, letter.id, input={"user": "bob", "password": MASK})
        drain()
        new = Task.objects.get(id=done.replay_task_id)
        assert new.output == 9
        assert "s3cr3t" not in str(new.input)
    finally:
        registry.unregister("leaky")


def test_f58_a_payload_is_the_same_on_every_attempt_and_after_a_replay(principal, drain):
    from tasks_app.actions import registry
    from tasks_app.sdk import ActionError, ActionInput, Context, Plugin, action

    class Payload(ActionInput):
        value: dict

    seen = []

    @action("payload.refuse", permission="test.run")
    def refuse(ctx: Context, input: Payload) -> None:
        seen.append(input.value)
        raise ActionError("REFUSED", "no", retryable=False)

    registry.register(Plugin("payload", actions=[refuse]))
    try:
        value = {"text": "é\u2028", "big": 2**53 - 1, "float": 0.1, "at": "2026-12-01T08:30:00Z", "5": [None, {}, []]}
        submit(principal, TaskSpec(type="payload.refuse", input={"value": value}))
        drain()
        dead_letters.retry(principal, DeadLetterJob.objects.get().id)
        drain()
        dead_letters.replay(principal, DeadLetterJob.objects.get(status="open").id)
        drain()
    finally:
        registry.unregister("payload")
    assert seen == [value] * 3


# -- groups


def test_groups_are_of_one_cause(principal, drain):
    submit_many(principal, [failing(message=f"host {n} is away") for n in range(3)] + [failing(message="other words")])
    drain()
    groups = queries.groups(principal, GroupFilter()).rows
    assert sorted(group.count.value for group in groups) == [1, 3]
    big = max(groups, key=lambda group: group.count.value)
    newest = DeadLetterJob.objects.filter(fingerprint=big.fingerprint).order_by("-id").first()
    assert (big.action_id, big.code, big.sample_id) == ("core.fail", "BROKEN", newest.id)
    assert big.error["message"].startswith("host") and "traceback" not in big.error
    assert big.first_seen_at <= big.last_seen_at == newest.created_at
    walked, cursor = [], None
    while True:
        page = queries.groups(principal, GroupFilter(limit=1, cursor=cursor))
        walked += page.rows
        cursor = page.next
        if cursor is None:
            break
    assert walked == groups
    assert queries.groups(principal, GroupFilter(action="seo.*")).rows == []


# -- bulks


def open_letters(principal, drain, count, **more):
    submit_many(principal, [failing(**more) for _ in range(count)])
    drain()
    return list(DeadLetterJob.objects.order_by("id"))


def bulk(principal, **given):
    return dead_letters.bulk(principal, BulkSpec.model_validate(given))[1]


def test_a_bulk_decides_about_what_matches_and_says_what_it_did(principal, drain):
    letters = open_letters(principal, drain, 5)
    dead_letters.discard(principal, letters[0].id, "by hand")
    spec = BulkSpec(verb="retry", filter={"code": "BROKEN"}, reason="all again")
    assert dead_letters.preview(principal, spec).value == 4
    task_id = dead_letters.bulk(principal, spec)[1].task_id
    drain()
    task = Task.objects.get(id=task_id)
    assert (task.status, task.output) == ("completed", {"done": 4, "refused": 0})
    # Each failed again: the new letters were not there when the bulk was asked for, so it let them be.
    assert DeadLetterJob.objects.filter(status="open").count() == 4
    results = DeadLetterResult.objects.filter(task_id=task_id)
    assert set(results.values_list("dead_letter_id", flat=True)) == {letter.id for letter in letters[1:]}
    assert AuditEntry.objects.filter(verb="dead_letter.retried", reason="all again").count() == 4


def test_a_selection_says_why_it_was_refused(principal, drain):
    first, second = open_letters(principal, drain, 2)
    dead_letters.discard(principal, first.id, "by hand")
    unknown = Task.objects.first().id
    chosen = [first.public_id, second.public_id, ids.to_text("dead_letter", unknown)]
    task_id = bulk(principal, verb="replay", ids=chosen).task_id
    drain()
    found = {r.dead_letter_id: (r.outcome, r.code) for r in DeadLetterResult.objects.filter(task_id=task_id)}
    assert found == {
        first.id: ("refused", "CONFLICT"),
        second.id: ("done", ""),
        unknown: ("refused", "NOT_FOUND"),
    }
    assert Task.objects.get(id=task_id).output == {"done": 1, "refused": 2}


@pytest.mark.parametrize("verb", ["discard", "cancel"])
def test_bulks_that_run_nothing(principal, drain, verb):
    open_letters(principal, drain, 3)
    bulk(principal, verb=verb, filter={"action": "core.*"}, reason="over")
    drain()
    assert set(DeadLetterJob.objects.values_list("status", "reason")) == {
        (f"{verb}{'l' * (verb == 'cancel')}ed", "over")
    }


@pytest.mark.parametrize(
    "given",
    [
        {"verb": "retry"},
        {"verb": "retry", "filter": {}, "ids": ["dlq_01h"]},
        {"verb": "retry", "ids": []},
        {"verb": "retry", "ids": ["task_01h45ytscbebyvny4gc8cr8ma2"]},
        {"verb": "retry", "filter": {"status": ["retried"]}},
        {"verb": "retry", "filter": {"limit": 5}},
        {"verb": "retry", "filter": {}, "rate": "0/s"},
        {"verb": "retry", "filter": {}, "rate": "5/d"},
        {"verb": "discard", "filter": {}},
        {"verb": "discard", "filter": {}, "reason": "x", "canary": 3},
        {"verb": "cancel", "filter": {}, "stop_after": 3},
        {"verb": "delete", "filter": {}},
        {"verb": "retry", "filter": {}, "reason": "a\x00"},
    ],
)
def test_bulks_that_make_no_sense(given):
    with pytest.raises(ValidationError):
        BulkSpec.model_validate(given)


def test_the_permission_is_asked_for_again_inside_the_task(principal, drain):
    from tasks_app.services import api_keys

    open_letters(principal, drain, 2)
    row, _ = api_keys.create(principal, "night", "operator")
    who = Principal(Actor("api_key", row.public_id), principal.organization_id, "operator")
    task_id = bulk(who, verb="retry", filter={}).task_id
    api_keys.revoke(principal, row.id)
    drain()
    assert Task.objects.get(id=task_id).error["code"] == "PERMISSION_DENIED"
    assert DeadLetterJob.objects.filter(action_id="core.fail", status="open").count() == 2


def test_every_letter_does_not_mean_bulks_that_were_stopped(principal, drain):
    open_letters(principal, drain, 2)
    DeadLetterJob.objects.filter(id=DeadLetterJob.objects.first().id).update(action_id="core.dead_letters.apply")
    for filter, expected in (({}, 1), ({"code": "BROKEN"}, 1), ({"action": "core.dead_letters.apply"}, 1)):
        assert dead_letters.preview(principal, BulkSpec(verb="retry", filter=filter)).value == expected


def test_a_viewer_cannot_ask_for_a_bulk_or_its_preview(principal):
    viewer = Principal(Actor("user", "1"), principal.organization_id, "viewer")
    spec = BulkSpec(verb="retry", filter={})
    for verb in (dead_letters.bulk, dead_letters.preview):
        with pytest.raises(PermissionDenied):
            verb(viewer, spec)


def test_the_list_and_the_bulk_mean_the_same(principal, drain):
    letters = open_letters(principal, drain, 3)
    other = open_letters(principal, drain, 1, message="other words")[-1]
    for criteria, expected in (
        ({"fingerprint": other.fingerprint}, {other.id}),
        ({"job": letters[0].job.public_id}, {letters[0].id}),
        ({"task": letters[1].job.task.public_id}, {letters[1].id}),
        ({"action": "core.f*", "code": "BROKEN"}, {one.id for one in [*letters, other]}),
        ({"action": "core.echo"}, set()),
        ({"created_after": other.created_at.isoformat()}, {other.id}),
        ({"created_before": other.created_at.isoformat()}, {one.id for one in letters}),
    ):
        listed = queries.page(principal, DeadLetterFilter(**criteria)).rows
        assert {row.id for row in listed} == expected, criteria
        counted = dead_letters.preview(principal, BulkSpec(verb="retry", filter=criteria))
        assert (counted.value, counted.exact) == (len(expected), True)


# -- whatever happens, in whatever order

DECISIONS = {
    "retry": dead_letters.retry,
    "replay": dead_letters.replay,
    "discard": dead_letters.discard,
    "cancel": dead_letters.cancel,
}
STEPS = st.lists(st.sampled_from([*DECISIONS, "task retry", "task replay", "work"]), min_size=1, max_size=8)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whatever_is_decided_the_letters_tell_one_story(principal, drain, steps):
    """The newest letter of a job against a model of it: open, or closed for ever by the verb that came first."""
    made = submit(principal, failing())
    drain()
    closed, expected = 0, "open"
    for step in steps:
        letter = DeadLetterJob.objects.filter(job_id=made.job_id).order_by("-id").first()
        task_failed = Task.objects.get(id=made.task_id).status == "failed"
        if step == "work":
            drain()
            if not task_failed:
                closed, expected = closed + 1, "open"
        elif step == "task retry":
            if task_failed:
                tasks.retry(principal, made.task_id)
                expected = "retried" if expected == "open" else expected
            else:
                with pytest.raises(Conflict):
                    tasks.retry(principal, made.task_id)
        elif step == "task replay":
            tasks.replay(principal, made.task_id)
            expected = "replayed" if expected == "open" else expected
        elif expected == "open":
            expected = DECISIONS[step](principal, letter.id, reason="model").status
            assert expected == TARGET[DeadLetterVerb(step)]
        else:
            with pytest.raises(Conflict):
                DECISIONS[step](principal, letter.id, reason="model")
        letters = list(DeadLetterJob.objects.filter(job_id=made.job_id).order_by("id"))
        assert len(letters) == closed + 1
        assert letters[-1].status == expected
        assert all(one.status != "open" for one in letters[:-1])
        for one in letters:
            assert (one.status == "open") == (one.decided_at is None) == (one.decided_by == "")
            decisions = AuditEntry.objects.filter(object_id=one.public_id).count()
            assert decisions == (0 if one.status == "open" else 1)
    drain()
