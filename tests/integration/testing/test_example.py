import pytest

from tasks_app.models import Task
from tasks_app.sdk import ActionError, ActionInput, ActionOutput, Context, Plugin, RetryPolicy, action
from tasks_app.services.tasks import TaskSpec, submit
from tasks_app.testing import RecordingReporter, assert_enqueued, drain, registered, run_action

pytest_plugins = ["tasks_app.testing.fixtures"]  # in a project of your own: in its conftest.py


class InvoiceInput(ActionInput):
    number: int
    pages: int = 1


class InvoiceOutput(ActionOutput):
    text: str


@action("invoice.print", permission="invoice.print", retry=RetryPolicy(max_attempts=3, delay_ms=60_000))
def print_invoice(ctx: Context, input: InvoiceInput) -> InvoiceOutput:
    if input.pages > 100:
        raise ActionError("TOO_LONG", "An invoice has 100 pages at most.", retryable=False)
    if ctx.attempt == 1 and input.number == 13:
        raise ActionError("PRINTER_BUSY", "The printer is busy.", retryable=True)
    ctx.log.info("printed", number=input.number)
    ctx.progress(input.pages, input.pages, phase="print")
    ctx.cost("printer", credits=input.pages)
    return InvoiceOutput(text=f"Invoice {input.number}")


plugin = Plugin("invoice", actions=[print_invoice])


# Alone: no database, no worker. What it says is recorded.
def test_it_prints():
    said = RecordingReporter()
    assert run_action(print_invoice, {"number": 7, "pages": 2}, reporter=said).text == "Invoice 7"
    assert said.logs[0]["message"] == "printed"
    assert said.progress[-1]["percentage"] == 100.0
    assert said.costs[0].credits == 2


def test_it_refuses_a_book():
    with pytest.raises(ActionError) as refused:
        run_action(print_invoice, {"number": 7, "pages": 101})
    assert refused.value.code == "TOO_LONG"


# As a job: the real queue, executor, retry and finish, in the test's own process.
@pytest.fixture
def invoices(devos_principal):
    with registered(*plugin.actions):
        yield devos_principal


with_jobs = pytest.mark.django_db(transaction=True, databases=["default", "runtime"])


@with_jobs
def test_it_is_asked_for(invoices):
    submit(invoices, TaskSpec(type="invoice.print", input={"number": 1, "pages": 3}))
    [job] = assert_enqueued("invoice.print", input={"pages": 3}, count=1, queue="default")
    assert job.input["number"] == 1
    assert drain().jobs_run == 1
    assert_enqueued("invoice.print", count=0)


@with_jobs
def test_it_tries_again_after_a_minute(invoices, devos_clock):
    done = submit(invoices, TaskSpec(type="invoice.print", input={"number": 13}))
    assert drain().jobs_run == 1
    assert Task.objects.get(id=done.task_id).status == "waiting"
    devos_clock.advance(minutes=2)
    assert drain().jobs_run == 1
    assert Task.objects.get(id=done.task_id).output == {"text": "Invoice 13"}


@with_jobs
def test_it_comes_to_its_end_however_long_it_waits(invoices, devos_clock):
    spec = TaskSpec(type="invoice.print", input={"number": 13}, delay_s=86_400.0)
    done = submit(invoices, spec)
    assert drain(clock=devos_clock).jobs_run == 2
    assert Task.objects.get(id=done.task_id).status == "completed"
