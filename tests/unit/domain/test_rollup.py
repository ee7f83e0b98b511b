"""A task is as its jobs are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.domain.rollup import rollup
from tasks_app.domain.states import JOB_FINAL, TASK_FINAL, JobStatus, TaskStatus

statuses = st.lists(st.sampled_from(list(JobStatus)), min_size=1, max_size=6)


@given(statuses)
def test_a_task_is_over_exactly_when_all_its_jobs_are(jobs):
    assert (rollup(jobs) in TASK_FINAL) == all(job in JOB_FINAL for job in jobs)


@given(statuses, st.randoms())
def test_the_order_of_jobs_does_not_matter(jobs, random):
    shuffled = list(jobs)
    random.shuffle(shuffled)
    assert rollup(shuffled) == rollup(jobs)


@given(statuses)
def test_a_running_job_shows_and_a_failure_is_not_hidden(jobs):
    if JobStatus.RUNNING in jobs:
        assert rollup(jobs) is TaskStatus.RUNNING
    elif all(job in JOB_FINAL for job in jobs) and JobStatus.FAILED in jobs:
        assert rollup(jobs) is TaskStatus.FAILED


@given(st.sampled_from(list(JobStatus)), st.integers(1, 5))
def test_equal_jobs_are_as_one(job, count):
    assert rollup([job] * count) == rollup([job])


def test_between_two_jobs_the_task_still_runs():
    assert rollup([JobStatus.COMPLETED, JobStatus.QUEUED]) is TaskStatus.RUNNING
    assert rollup([JobStatus.QUEUED]) is TaskStatus.QUEUED


def test_no_jobs_is_an_error():
    with pytest.raises(ValueError, match="at least one"):
        rollup([])
