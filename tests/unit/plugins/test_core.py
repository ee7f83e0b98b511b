"""core.*: actions for trying the platform."""

import os
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise

import pytest

from devos.plugins.core import crash, echo, fail, noop, sleep, spin
from tasks_app.domain.errors import ActionError, InvalidInput
from tasks_app.runtime.context import Cancelled, HandBack
from tasks_app.runtime.slots import Signal
from tasks_app.testing import RecordingReporter, run_action


@pytest.mark.parametrize("value", [None, True, 0, -1.5, "text ü \U0001f600", [1, [2]], {"a": {"b": [None]}}])
def test_echo_gives_back_any_json(value):
    assert run_action(echo, {"value": value}).model_dump()["value"] == value


def test_noop_takes_and_returns_nothing():
    assert run_action(noop, {}) is None
    with pytest.raises(InvalidInput, match="anything"):
        run_action(noop, {"anything": 1})


def test_sleep_sleeps_and_says_how_far():
    reporter = RecordingReporter()
    started = time.monotonic()
    output = run_action(sleep, {"seconds": 0.2}, reporter=reporter)
    assert 0.2 <= time.monotonic() - started < 1
    assert (output.resumed, output.slept_s >= 0.2) == (False, True)
    assert reporter.progress[-1]["percentage"] == 100
    assert run_action(sleep, {"seconds": 0}).slept_s < 0.1


def test_sleep_ends_at_once_when_cancelled():
    reporter = RecordingReporter()
    threading.Timer(0.1, lambda: setattr(reporter, "asked", Signal.CANCEL)).start()
    started = time.monotonic()
    with pytest.raises(Cancelled):
        run_action(sleep, {"seconds": 60}, reporter=reporter)
    assert time.monotonic() - started < 1


def test_sleep_can_be_deaf():
    assert run_action(sleep, {"seconds": 0.1, "ignore_cancel": True}, reporter=RecordingReporter(Signal.CANCEL)).slept_s


def test_sleep_goes_on_from_its_checkpoint():
    reporter = RecordingReporter()
    threading.Timer(0.1, lambda: setattr(reporter, "shutting_down", True)).start()
    with pytest.raises(HandBack) as paused:
        run_action(sleep, {"seconds": 60}, reporter=reporter)
    assert paused.value.checkpoint["slept_s"] >= 0.1
    output = run_action(sleep, {"seconds": 60}, checkpoint={"slept_s": 59.95})
    assert (output.resumed, output.slept_s >= 60) == (True, True)


def test_fail_fails_a_number_of_times_then_succeeds():
    value = {"times": 2, "code": "RATE_LIMIT", "message": "slow down", "retry_after_s": 3, "retryable": True}
    for attempt in (1, 2):
        with pytest.raises(ActionError, match="slow down") as failed:
            run_action(fail, value, attempt=attempt)
        assert (failed.value.code, failed.value.retry_after_s, failed.value.retryable) == ("RATE_LIMIT", 3, True)
    assert run_action(fail, value, attempt=3).attempt == 3
    assert run_action(fail, {"times": 0}).attempt == 1


@pytest.mark.parametrize(
    ("action", "value", "field"),
    [
        (fail, {"code": "not upper"}, "code"),
        (fail, {"times": -1}, "times"),
        (sleep, {}, "seconds"),
        (sleep, {"seconds": -1}, "seconds"),
        (sleep, {"seconds": 1e9}, "seconds"),
        (spin, {"seconds": 601}, "seconds"),
        (crash, {"signal": "HUP"}, "signal"),
    ],
)
def test_bad_input_is_named(action, value, field):
    with pytest.raises(InvalidInput) as refused:
        run_action(action, value)
    assert [detail["field"] for detail in refused.value.details] == [f"input.{field}"]


def test_spin_holds_the_lock_and_is_deaf_to_signals():
    """A thread that wants to tick every millisecond, and an alarm clock, both have to wait for the end."""
    seconds = 0.4
    gaps, stop, alarms = [], threading.Event(), []

    def tick():
        last = time.monotonic()
        while not stop.wait(0.001):
            gaps.append(time.monotonic() - last)
            last = time.monotonic()

    thread = threading.Thread(target=tick)
    thread.start()
    before = signal.signal(signal.SIGALRM, lambda *_: alarms.append(time.monotonic()))
    alarms.append(time.monotonic())
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    try:
        output = run_action(spin, {"seconds": seconds})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        stop.set()
        thread.join()
    assert output.held_s >= seconds / 2  # a busy machine makes it longer
    assert max(gaps) >= output.held_s * 0.9
    assert max(later - one for one, later in pairwise(alarms)) >= output.held_s * 0.9


def test_crash_kills_its_process():
    program = "from tasks_app.testing import run_action; from devos.plugins.core import crash; run_action(crash, {})"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "devos.settings"},
        timeout=60,
        capture_output=True,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()


def test_the_dangerous_one_says_so():
    assert crash.dangerous
    assert not any(action.dangerous for action in (echo, noop, sleep, fail, spin))
