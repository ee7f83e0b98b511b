"""Bulks under way: ten thousand letters stopped half way, killed workers, canaries, rates, and failures that repeat."""

import threading
import time

import pytest
from django.db import connection, connections

from tasks_app.domain import ids
from tasks_app.models import AuditEntry, DeadLetterJob, DeadLetterResult, Event, Execution, Job, Task
from tasks_app.queries import dead_letter_results as results
from tasks_app.runtime.slots import Signal, SlotTable
from tasks_app.runtime.work_loop import WorkLoop
from tasks_app.services import dead_letters, workers
from tasks_app.services.dead_letters import BulkSpec, batch
from tasks_app.services.jobs.claim import claim
from tasks_app.services.jobs.rescue import rescue_expired
from tests.support.dead_letters import FAILS, SEED, SUCCEEDS
from tests.support.waiting import until

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "runtime"])


def seed(principal, count, *, queue="low", input=SUCCEEDS, groups=1):
    parameters = {"org": principal.organization_id, "count": count, "queue": queue, "input": input, "groups": groups}
    with connection.cursor() as cursor:
        cursor.execute(SEED, parameters)


def submit(principal, **given):
    return dead_letters.bulk(principal, BulkSpec.model_validate(given))[1].task_id


def open_ids():
    return set(DeadLetterJob.objects.filter(status="open").values_list("id", flat=True))


class Beside:
    """A second pool process, as a thread: works on a queue while the test's own runs the bulk."""

    def __init__(self, queue):
        self.queue, self.over = queue, threading.Event()
        self.thread = threading.Thread(target=self.work)

    def work(self):
        loop = WorkLoop(ids.new_id(), SlotTable(2), 0)
        workers.register(loop.worker_id, "beside", 2, [self.queue], 1)
        while not self.over.wait(0.05):
            loop.turn(self.queue)
        connections.close_all()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.over.set()
        self.thread.join()


def test_a_bulk_of_ten_thousand_is_stopped_half_way_and_the_rest_is_untouched(principal, loop):
    seed(principal, 10_000, groups=7)
    assert dead_letters.preview(principal, BulkSpec(verb="retry", filter={})).value == 10_000
    task_id = submit(principal, verb="retry", filter={}, reason="the host is back")

    def stop():
        until(lambda: DeadLetterResult.objects.filter(task_id=task_id).count() >= 2_000, 60, "2,000 are decided")
        loop.slots.signal(0, Execution.objects.get(task_id=task_id).id, Signal.CANCEL)
        connections.close_all()

    stopper = threading.Thread(target=stop)
    stopper.start()
    loop.turn("default")
    stopper.join()
    task = Task.objects.get(id=task_id)
    done = set(
        DeadLetterResult.objects.filter(task_id=task_id, outcome="done").values_list("dead_letter_id", flat=True)
    )
    assert task.status == "cancelled"
    assert 2_000 <= len(done) < 10_000
    progress = Job.objects.get(task_id=task_id).progress
    assert progress["total"] == 10_000 and 0 < progress["current"] <= len(done)
    assert len(open_ids()) == 10_000 - len(done) and not open_ids() & done
    assert Job.objects.filter(action_id="core.fail", status="queued").count() == len(done)
    assert Job.objects.filter(action_id="core.fail", status="failed").count() == 10_000 - len(done)
    assert AuditEntry.objects.filter(verb="dead_letter.retried").count() == len(done)
    assert Event.objects.filter(type="dead_letter.retried").count() == len(done)


def test_a_batch_costs_the_same_few_statements_for_one_and_for_a_hundred(principal, django_assert_max_num_queries):
    seed(principal, 201)
    spec = BulkSpec(verb="retry", filter={})
    task_id = dead_letters.bulk(principal, spec)[1].task_id
    every = sorted(open_ids())
    with django_assert_max_num_queries(22):
        batch.apply(principal, task_id, every[:1], spec)
    with django_assert_max_num_queries(22):
        batch.apply(principal, task_id, every[1:101], spec)
    with django_assert_max_num_queries(22):
        batch.apply(principal, task_id, every[101:], BulkSpec(verb="replay", filter={}))


def test_a_bulk_goes_on_after_its_worker_was_killed(principal, loop):
    seed(principal, 30)
    spec = BulkSpec(verb="retry", filter={})
    task_id = dead_letters.bulk(principal, spec)[1].task_id
    # What a killed worker leaves: a claimed job, and a batch that is committed.
    claim("default", loop.worker_id, 1)
    first = batch.following(principal, spec, Task.objects.get(id=task_id).created_at, None, 10)
    batch.apply(principal, task_id, first, spec)
    Job.objects.filter(task_id=task_id).update(lease_expires_at="2020-01-01T00:00:00Z")
    assert rescue_expired(0) == 1
    loop.turn("default")
    assert Task.objects.get(id=task_id).output == {"done": 30, "refused": 0}
    assert DeadLetterResult.objects.filter(task_id=task_id).count() == 30
    assert AuditEntry.objects.filter(verb="dead_letter.retried").count() == 30
    assert Event.objects.filter(type="task.retried").count() == 30


def test_a_result_is_written_with_the_decision_or_not_at_all(principal):
    from django.db import IntegrityError

    seed(principal, 2)
    spec = BulkSpec(verb="retry", filter={})
    task_id = dead_letters.bulk(principal, spec)[1].task_id
    one, other = sorted(open_ids())
    DeadLetterResult.objects.create(task_id=task_id, dead_letter_id=other, outcome="done")
    with pytest.raises(IntegrityError):
        batch.apply(principal, task_id, [one, other], spec)
    assert open_ids() == {one, other}
    assert Job.objects.filter(status="failed").count() == 2


def test_a_canary_that_goes_well_lets_the_rest_follow(principal, loop):
    seed(principal, 20)
    with Beside("low"):
        task_id = submit(principal, verb="retry", filter={}, canary=3)
        loop.turn("default")
        assert Task.objects.get(id=task_id).output == {"done": 20, "refused": 0}
        until(lambda: Job.objects.filter(action_id="core.fail", status="completed").count() == 20, 30, "all are run")


@pytest.mark.parametrize("verb", ["retry", "replay"])
def test_a_canary_that_fails_again_stops_the_bulk(principal, loop, verb):
    seed(principal, 20, input=FAILS)
    before = open_ids()
    with Beside("low"):
        task_id = submit(principal, verb=verb, filter={}, canary=3)
        loop.turn("default")
    task = Task.objects.get(id=task_id)
    assert (task.status, task.error["code"]) == ("failed", "FAILS_AGAIN")
    assert DeadLetterResult.objects.filter(task_id=task_id).count() == 3
    assert len(open_ids() & before) == 17
    assert task.error["details"]["fingerprint"] in DeadLetterJob.objects.values_list("fingerprint", flat=True)


def test_a_canary_may_be_allowed_some_failures(principal, loop):
    seed(principal, 6, input=FAILS)
    with Beside("low"):
        task_id = submit(principal, verb="retry", filter={}, canary=3, stop_after=100)
        loop.turn("default")
    assert Task.objects.get(id=task_id).output == {"done": 6, "refused": 0}


def test_a_canary_that_takes_too_long_stops_the_bulk(principal, loop):
    seed(principal, 5)
    task_id = submit(principal, verb="retry", filter={}, canary=2, canary_wait_s=1)
    loop.turn("default")
    assert Task.objects.get(id=task_id).error["code"] == "CANARY_UNDECIDED"
    assert DeadLetterResult.objects.filter(task_id=task_id).count() == 2


def test_a_rate_holds_back_and_a_failure_that_repeats_stops(principal, loop):
    seed(principal, 100, input=FAILS)
    began = time.monotonic()
    with Beside("low"):
        task_id = submit(principal, verb="retry", filter={}, rate="5/s", stop_after=4)
        loop.turn("default")
    decided = DeadLetterResult.objects.filter(task_id=task_id).count()
    assert Task.objects.get(id=task_id).error["code"] == "FAILS_AGAIN"
    assert 5 < decided < 60
    assert decided <= 5 * (time.monotonic() - began) + 5
    assert results.most_repeated(task_id)[1] > 4


def stop_when(loop, task_id, count):
    until(lambda: DeadLetterResult.objects.filter(task_id=task_id).count() >= count, 30, f"{count} are decided")
    loop.slots.stop()
    connections.close_all()


def test_a_worker_that_stops_hands_the_bulk_over(principal, loop):
    seed(principal, 30)
    task_id = submit(principal, verb="retry", filter={}, rate="20/s")

    stopper = threading.Thread(target=stop_when, args=(loop, task_id, 1))
    stopper.start()
    loop.turn("default")
    stopper.join()
    assert Execution.objects.get(task_id=task_id).error["code"] == "HANDED_BACK"
    later = WorkLoop(ids.new_id(), SlotTable(2), 0)
    workers.register(later.worker_id, "later", 3, ["default"], 1)
    later.turn("default")
    assert Task.objects.get(id=task_id).output == {"done": 30, "refused": 0}
    assert AuditEntry.objects.filter(verb="dead_letter.retried").count() == 30


def test_a_canary_that_went_well_is_not_waited_for_again(principal, loop):
    seed(principal, 30)
    with Beside("low"):
        task_id = submit(principal, verb="retry", filter={}, canary=2, canary_wait_s=20, rate="20/s")
        stopper = threading.Thread(target=stop_when, args=(loop, task_id, 5))
        stopper.start()
        loop.turn("default")
        stopper.join()
    # Nobody runs the rest any more: waiting for it would never end.
    later = WorkLoop(ids.new_id(), SlotTable(2), 0)
    workers.register(later.worker_id, "later", 3, ["default"], 1)
    later.turn("default")
    assert Task.objects.get(id=task_id).output == {"done": 30, "refused": 0}


def test_f49_two_bulks_and_single_decisions_over_the_same_letters(principal):
    seed(principal, 120)
    every = sorted(open_ids())
    specs = [BulkSpec(verb=verb, filter={}, reason="at once") for verb in ("retry", "cancel", "replay", "discard")]
    tasks = [dead_letters.bulk(principal, spec)[1].task_id for spec in specs]
    start, errors = threading.Barrier(4), []

    def run(spec, task_id, order):
        start.wait()
        try:
            for begin in range(0, 120, 20):
                batch.apply(principal, task_id, order[begin : begin + 20], spec)
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [
        threading.Thread(target=run, args=(spec, task, every if number % 2 else every[::-1]))
        for number, (spec, task) in enumerate(zip(specs, tasks, strict=True))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and open_ids() == set()
    done = DeadLetterResult.objects.filter(outcome="done").values_list("dead_letter_id", flat=True)
    assert sorted(done) == every
    assert AuditEntry.objects.filter(object_type="dead_letter").count() == 120
