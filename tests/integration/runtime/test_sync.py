"""Sync mode: a result in the call, an execution row and an audit entry all the same."""

import pytest

from tasks_app.actions import registry
from tasks_app.domain.errors import InvalidInput, PermissionDenied
from tasks_app.domain.principal import Actor, Principal
from tasks_app.models import AuditEntry, Event, Execution, Task
from tasks_app.runtime import sync
from tasks_app.sdk import ActionInput, Context, Plugin, action

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "runtime"])


class Nothing(ActionInput):
    pass


@action("slow.wait", permission="test.run", modes={"sync", "async"}, timeout_s=0.3)
def wait(ctx: Context, input: Nothing) -> None:
    """Waits until it is told to stop."""
    import time

    until = time.monotonic() + 20
    while time.monotonic() < until:
        ctx.raise_if_cancelled()
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def _slow():
    registry.register(Plugin("slow", actions=[wait]))
    yield
    registry.unregister("slow")


def test_the_result_is_in_the_answer_and_the_record_is_kept(principal):
    execution = sync.run(principal, "core.echo", {"value": 5})
    kept = Execution.objects.get(id=execution.id)
    assert (kept.status, kept.mode, kept.output, kept.input) == ("completed", "sync", {"value": 5}, {"value": 5})
    assert kept.job is None and not Task.objects.exists()
    events = Event.objects.filter(execution_id=kept.id).order_by("sequence").values_list("type", flat=True)
    assert list(events) == ["execution.started", "execution.completed"]
    assert AuditEntry.objects.get().verb == "action.run"


def test_a_failure_is_an_answer_too(principal):
    execution = sync.run(principal, "slow.wait", {})
    assert (execution.status, execution.error["code"]) == ("failed", "TIMEOUT")


def test_what_is_not_offered_or_allowed_is_refused_before_anything_runs(principal):
    with pytest.raises(InvalidInput, match="sync"):
        sync.run(principal, "test.talk", {})
    with pytest.raises(InvalidInput, match="typo"):
        sync.run(principal, "core.echo", {"typo": 1})
    with pytest.raises(PermissionDenied):
        sync.run(Principal(Actor("user", "1"), principal.organization_id, "viewer"), "core.echo", {"value": 1})
    assert not Execution.objects.exists()
