"""What an outcome does to a job: the rules of attempts, interruptions and giving up."""

from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.domain.outcomes import (
    Attempt,
    Cancelled,
    ErrorInfo,
    Failed,
    HandedBack,
    Interrupted,
    Snoozed,
    Succeeded,
    Waiting,
    fingerprint,
    settle,
)
from tasks_app.domain.retry import RetryPolicy
from tasks_app.domain.states import TRANSITIONS, ExecutionStatus, JobStatus, TaskStatus

POLICY = RetryPolicy(max_attempts=3, delay_ms=1000)


def attempt(number=1, *, of=3, uncounted=0, interruptions=0):
    return Attempt(uuid4(), uuid4(), uuid4(), number, of, uncounted, interruptions, "core.echo")


outcomes = st.one_of(
    st.just(Succeeded({"a": 1})),
    st.just(Cancelled()),
    st.just(Interrupted("gone")),
    st.just(HandedBack()),
    st.builds(lambda code: Failed(ErrorInfo(code, "m"), POLICY), st.sampled_from(["NETWORK_TIMEOUT", "INVALID_INPUT"])),
    st.just(Failed(ErrorInfo("X", "m"), None)),
    st.just(Waiting(5, {"reason": "event", "wait": 1})),
    st.just(Snoozed(5)),
)


@given(outcomes, st.integers(1, 9), st.integers(1, 5), st.integers(0, 6))
def test_every_settlement_is_a_legal_transition(outcome, number, of, interruptions):
    change = settle(outcome, attempt(number, of=of, interruptions=interruptions), 5)
    assert change.job in TRANSITIONS[JobStatus][JobStatus.RUNNING]
    assert change.execution in TRANSITIONS[ExecutionStatus][ExecutionStatus.RUNNING]
    assert change.task in TRANSITIONS[TaskStatus][TaskStatus.RUNNING]
    assert (change.blocked_by is not None) == (change.job in (JobStatus.RETRYING, JobStatus.PENDING))
    assert (change.fingerprint is not None) == (change.job is JobStatus.FAILED)


def test_f38_exactly_max_attempts_whatever_the_cause():
    failure = Failed(ErrorInfo("NETWORK_TIMEOUT", "m"), POLICY)
    assert [settle(failure, attempt(n), 5).job for n in (1, 2, 3)] == ["retrying", "retrying", "failed"]
    assert settle(failure, attempt(1, of=1), 5).job == "failed"


def test_what_cannot_help_is_not_tried_again():
    change = settle(Failed(ErrorInfo("INVALID_INPUT", "m"), POLICY), attempt(), 5)
    assert change.job == "failed" and change.error["retryable"] is False


def test_f28_an_interruption_costs_no_attempt_and_has_a_budget_of_its_own():
    change = settle(Interrupted("The worker died."), attempt(2, interruptions=1), 5)
    assert (change.job, change.execution, change.uncounted, change.interruptions) == ("retrying", "lost", 1, 1)
    over = settle(Interrupted("The worker died."), attempt(6, interruptions=5), 5)
    assert over.job == "failed" and over.error["code"] == "WORKER_LOST" and over.fingerprint


def test_a_hand_back_costs_nothing():
    change = settle(HandedBack({"page": 3}), attempt(1), 5)
    assert (change.uncounted, change.interruptions, change.delay_s, change.checkpoint) == (1, 0, 0, {"page": 3})
    assert attempt(2, uncounted=1).counted == 1


def test_dead_letters_of_one_cause_share_a_fingerprint():
    one = fingerprint("a.b", "X", "Order 17 for 'Ann' failed at 0x7f")
    assert one == fingerprint("a.b", "X", "order 99 for 'Bob' failed at 0x99")
    assert one != fingerprint("a.b", "X", "Order 17 was refused")
    assert one != fingerprint("a.c", "X", "Order 17 for 'Ann' failed at 0x7f")


@pytest.mark.parametrize("outcome", [Waiting(60, {"reason": "event", "wait": 1}), Snoozed(60)])
def test_waiting_parks_the_job_and_costs_no_attempt(outcome):
    settlement = settle(outcome, attempt(3), 5)
    assert (settlement.job, settlement.execution, settlement.task) == ("pending", "paused", "waiting")
    assert (settlement.delay_s, settlement.uncounted, settlement.interruptions) == (60, 1, 0)
    assert settlement.blocked_by["reason"] in ("event", "snooze")
    assert settlement.error is None and settlement.fingerprint is None and settlement.note is None
