"""Costs of attempts: written when they are spent, once each, and summed without a second table."""

from decimal import Decimal

import pytest
from django.db import OperationalError

from tasks_app.actions import registry
from tasks_app.domain.costs import cost
from tasks_app.models import Execution, ExecutionCost, Project
from tasks_app.runtime import sync
from tasks_app.sdk import ActionError, ActionInput, Context, Plugin, RetryPolicy, action
from tasks_app.services import costs
from tasks_app.services.tasks import TaskSpec, submit
from tasks_app.testing import RecordingReporter, run_action

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "runtime"])


class Nothing(ActionInput):
    pass


@action("cost.thrice", permission="test.run", retry=RetryPolicy(max_attempts=3, strategy="fixed", delay_ms=0))
def thrice(ctx: Context, input: Nothing) -> str:
    """Spends in each attempt, once under a key, and succeeds in the third."""
    ctx.cost("acme", "large", input_tokens=100, output_tokens=10, amount=0.1, currency="EUR")
    ctx.cost("acme", amount=Decimal("5.000000000001"), currency="USD", key="set-up")
    if ctx.attempt < 3:
        raise ActionError("NOT_YET", "later", retryable=True)
    return "done"


@action("cost.negative", permission="test.run", modes={"async", "sync"})
def negative(ctx: Context, input: Nothing) -> None:
    ctx.cost("acme", credits=2)
    ctx.cost("acme", amount=-1, currency="EUR")


@pytest.fixture(autouse=True)
def _actions():
    registry.register(Plugin("costs", actions=[thrice, negative]))
    yield
    registry.unregister("costs")


def test_what_failed_attempts_have_spent_counts_and_a_key_counts_once(principal, drain):
    project = Project.objects.create(organization_id=principal.organization_id, slug="site", name="Site")
    done = submit(principal, TaskSpec(type="cost.thrice", project="site"))
    drain()
    rows = ExecutionCost.objects.filter(task_id=done.task_id)
    in_euro = rows.filter(currency="EUR")
    assert [row.amount for row in in_euro] == [Decimal("0.1")] * 3
    assert set(in_euro.values_list("execution_id", flat=True)) == set(Execution.objects.values_list("id", flat=True))
    [once] = rows.filter(currency="USD")
    assert (once.amount, once.project_id, once.action_id) == (Decimal("5.000000000001"), project.id, "cost.thrice")


def test_a_cost_written_again_is_there_once(principal, drain):
    submit(principal, TaskSpec(type="core.noop"))
    drain()
    spent, execution = [cost("acme", credits=1)], Execution.objects.get()
    for _ in range(3):
        costs.record(execution.id, spent)
    assert ExecutionCost.objects.count() == 1


def test_a_database_that_blinks_costs_neither_the_attempt_nor_the_bill(principal, drain, monkeypatch):
    record, failures = costs.record, iter([OperationalError("away"), OperationalError("away")])

    def blinking(*given):
        if error := next(failures, None):
            raise error
        record(*given)

    monkeypatch.setattr(costs, "record", blinking)
    submit(principal, TaskSpec(type="cost.thrice"))
    drain()
    assert Execution.objects.filter(status="completed").count() == 1
    assert ExecutionCost.objects.filter(currency="EUR").count() == 3


def test_a_wrong_cost_fails_the_attempt_for_good_and_what_was_spent_before_stays(principal, drain):
    submit(principal, TaskSpec(type="cost.negative"))
    drain()
    assert Execution.objects.get().error["code"] == "INVALID_COST"
    assert ExecutionCost.objects.get().credits == 2


def test_sync_mode_spends_too(principal):
    execution = sync.run(principal, "cost.negative", {})
    row = ExecutionCost.objects.get()
    assert (row.execution_id, row.job_id, row.task_id) == (execution.id, None, None)


def test_authors_see_what_their_action_spends():
    reporter = RecordingReporter()
    with pytest.raises(ActionError):
        run_action(negative, {}, reporter=reporter)
    assert [one.credits for one in reporter.costs] == [2]
