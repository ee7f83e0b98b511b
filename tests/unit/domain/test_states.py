"""The transition table is the one the design gives, and nothing leaves a final state but a retry."""

import pytest

from tasks_app.domain.errors import IllegalTransition
from tasks_app.domain.states import (
    JOB_FINAL,
    TASK_FINAL,
    TRANSITIONS,
    DeadLetterStatus,
    ExecutionStatus,
    JobStatus,
    TaskStatus,
    check,
    sources,
)


@pytest.mark.parametrize("kind", [TaskStatus, JobStatus, ExecutionStatus, DeadLetterStatus])
def test_every_status_has_a_row_and_targets_of_its_own_kind(kind):
    assert set(TRANSITIONS[kind]) == set(kind)
    for targets in TRANSITIONS[kind].values():
        assert all(isinstance(target, kind) for target in targets)


def test_only_a_retry_leaves_a_final_state():
    for status in TASK_FINAL:
        assert TRANSITIONS[TaskStatus][status] <= {TaskStatus.QUEUED}
    for status in JOB_FINAL:
        assert TRANSITIONS[JobStatus][status] <= {JobStatus.QUEUED, JobStatus.PENDING}
    assert TRANSITIONS[TaskStatus][TaskStatus.COMPLETED] == frozenset()
    assert TRANSITIONS[JobStatus][JobStatus.CANCELLED] == frozenset()


def test_every_execution_ends_once():
    for status in ExecutionStatus:
        if status is not ExecutionStatus.RUNNING:
            assert TRANSITIONS[ExecutionStatus][status] == frozenset()


def test_a_dead_letter_is_decided_about_once():
    for status in DeadLetterStatus:
        targets = set(DeadLetterStatus) - {status} if status is DeadLetterStatus.OPEN else set()
        assert TRANSITIONS[DeadLetterStatus][status] == targets


def test_sources_are_the_table_read_backwards():
    assert sources(JobStatus.RUNNING) == ["queued"]
    assert sources(JobStatus.COMPLETED) == ["running"]
    assert "failed" in sources(TaskStatus.QUEUED)
    assert "completed" not in sources(TaskStatus.CANCELLED)


def test_an_illegal_transition_is_an_error_that_names_both_ends():
    check(JobStatus.QUEUED, JobStatus.RUNNING)
    with pytest.raises(IllegalTransition, match="completed to running"):
        check(JobStatus.COMPLETED, JobStatus.RUNNING)
