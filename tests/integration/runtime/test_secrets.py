"""Secrets of an input: sealed in the rows, opened for the action only, masked in all it says."""

import pytest
from django.db import connection
from pydantic import SecretStr

from tasks_app.actions import registry
from tasks_app.domain.errors import InvalidInput
from tasks_app.domain.masking import MASK
from tasks_app.models import Event, ExecutionLog, Job, Task
from tasks_app.sdk import ActionInput, Context, Plugin, RetryPolicy, action
from tasks_app.services import tasks
from tasks_app.services.tasks import TaskSpec, submit

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "runtime"])

SECRET = "s3cr3t-42"


class Login(ActionInput):
    user: str
    password: SecretStr
    fail: bool = False


@action("leaky.login", permission="test.run")
def login(ctx: Context, input: Login) -> dict:
    """Says its secret in every way there is."""
    said = input.password.get_secret_value()
    ctx.log.info(f"using {said}", header=said)
    ctx.progress(1, 2, message=f"with {said}")
    if input.fail:
        raise RuntimeError(f"refused: {said}")
    return {"echo": said, said: [said], "length": len(said)}


@action("leaky.names", permission="test.run")
def names(ctx: Context, input: Login) -> None:
    """Names things by its secret."""
    said = input.password.get_secret_value()
    ctx.emit("leaky.named", {"by": said}, resource=("leaky.thing", said))
    ctx.spawn("core.noop", name=f"for {said}", description=said, delay_s=90.0)


@action("leaky.keys", permission="test.run", retry=RetryPolicy(max_attempts=1))
def keys(ctx: Context, input: Login) -> None:
    """Takes its secret for a key."""
    if input.fail:
        ctx.emit("leaky.named", key=input.password.get_secret_value())
    else:
        ctx.wait_event("leaky.named", key=input.password.get_secret_value())


@pytest.fixture(autouse=True)
def _leaky():
    registry.register(Plugin("leaky", actions=[login, names, keys]))
    yield
    registry.unregister("leaky")


def everything_stored() -> str:
    found = []
    with connection.cursor() as cursor:
        for table in (
            "tasks", "jobs", "job_steps", "executions", "events", "execution_logs", "audit_entries", "dead_letter_jobs",
        ):  # fmt: skip
            cursor.execute(f"select coalesce(string_agg(t::text, ' '), '') from {table} t")
            found.append(cursor.fetchone()[0])
    return " ".join(found)


def test_f76_what_is_named_by_a_secret_is_masked(principal, drain):
    done = submit(principal, TaskSpec(type="leaky.names", input={"user": "ann", "password": SECRET}))
    drain()
    assert Task.objects.get(id=done.task_id).status == "completed"
    assert Task.objects.get(parent_task_id=done.task_id).name == f"for {MASK}"
    assert Event.objects.get(type="leaky.named").resource_id == MASK
    assert SECRET not in everything_stored()


@pytest.mark.parametrize("emits", [False, True])
def test_f76_a_secret_is_refused_as_a_key(principal, drain, emits):
    done = submit(principal, TaskSpec(type="leaky.keys", input={"user": "ann", "password": SECRET, "fail": emits}))
    drain()
    assert "cannot be a secret" in Task.objects.get(id=done.task_id).error["message"]
    assert SECRET not in everything_stored()


@pytest.mark.parametrize("fail", [False, True])
def test_f76_a_secret_is_nowhere_in_the_rows(principal, drain, fail):
    done = submit(principal, TaskSpec(type="leaky.login", input={"user": "ann", "password": SECRET, "fail": fail}))
    drain()
    task = Task.objects.get(id=done.task_id)
    assert SECRET not in everything_stored()
    assert MASK in ExecutionLog.objects.first().message
    if fail:
        assert task.error["message"] == f"refused: {MASK}"
    else:
        assert task.output == {"echo": MASK, MASK: [MASK], "length": len(SECRET)}


def test_a_replay_uses_the_secret_again_and_a_mask_means_that_secret(principal, drain):
    done = submit(principal, TaskSpec(type="leaky.login", input={"user": "ann", "password": SECRET}))
    drain()
    again = tasks.replay(principal, done.task_id)
    drain()
    assert Task.objects.get(id=again.task_id).output["length"] == len(SECRET)
    edited = tasks.replay(principal, done.task_id, input={"user": "bob", "password": MASK})
    drain()
    assert Task.objects.get(id=edited.task_id).output["length"] == len(SECRET)
    assert SECRET not in everything_stored()


def test_a_mask_where_no_secret_was_is_refused(principal):
    with pytest.raises(InvalidInput, match="mask"):
        submit(principal, TaskSpec(type="leaky.login", input={"user": "ann", "password": MASK}))


def test_a_replay_says_when_the_secret_key_has_changed(principal):
    done = submit(principal, TaskSpec(type="leaky.login", input={"user": "ann", "password": SECRET}))
    Job.objects.filter(id=done.job_id).update(input={"user": "ann", "password": {"$secret": "of another key"}})
    with pytest.raises(InvalidInput, match="secret key has changed"):
        tasks.replay(principal, done.task_id)


def test_an_empty_secret_masks_nothing(principal, drain):
    done = submit(principal, TaskSpec(type="leaky.login", input={"user": "ann", "password": ""}))
    drain()
    assert ExecutionLog.objects.first().message == "using "
    assert Task.objects.get(id=done.task_id).status == "completed"
