"""What is shown to people."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from devos.cli import lists, output, values
from devos.cli.errors import CliError

NOW = datetime(2026, 11, 30, 20, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        ("2026-11-30T19:59:48+00:00", "12s ago"),
        ("2026-11-30T19:59:59.5Z", "0.5s ago"),
        ("2026-11-30T17:55:00Z", "2h 5m ago"),
        ("2026-11-30T18:00:00Z", "2h ago"),
        ("2026-11-26T17:00:00Z", "4d 3h ago"),
        ("2026-11-30T20:05:00Z", "in 5m"),
        ("2026-11-30T20:00:00.2Z", "0.2s ago"),
        ("never", "never"),
    ],
)
def test_moments_are_told_from_now(moment: str, text: str) -> None:
    assert output.ago(moment, NOW) == text


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (None, None),
        ({}, None),
        ({"current": 3, "total": None, "percentage": None, "phase": None, "message": None}, "3"),
        ({"current": 0, "total": 4, "percentage": 0.0, "phase": "go", "message": "a\nb"}, "go 0/4 (0%) a b"),
    ],
)
def test_progress_in_one_line(progress: dict[str, object] | None, text: str | None) -> None:
    assert output.progress_line(progress) == text


def test_text_from_elsewhere_cannot_steer_the_terminal() -> None:
    hostile = "".join(map(chr, range(32))) + "\x7f\x9b31m"
    assert all(ord(c) >= 32 or c in "\t\n" for c in output.clean(hostile))
    assert "\x9b" not in output.clean(hostile)
    assert "\n" not in output.one_line(hostile)


@pytest.mark.parametrize(("text", "s"), [("90", 90), ("1.5s", 1.5), ("5m", 300), ("2 h", 7200), ("1D", 86_400)])
def test_time_spans(text: str, s: float) -> None:
    assert values.seconds(text, "--delay") == s


@pytest.mark.parametrize("text", ["", "-1", "5w", "1e3", "nan", "h"])
def test_what_is_no_time_span_is_refused(text: str) -> None:
    with pytest.raises(CliError, match="not a time span"):
        values.seconds(text, "--delay")


@pytest.mark.parametrize("text", ["tomorrow", "2026-13-01", "999999999d", "2026-01-01T00:00"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(CliError, match="--until"):
        values.moment(text, "--until")


def test_moments_are_sent_in_utc() -> None:
    assert values.moment("2027-01-31T08:00+01:00", "--until") == "2027-01-31T07:00:00+00:00"
    assert values.past("1h", "--after") < values.moment("0", "--after") < values.moment("1h", "--after")


def test_a_job_shows_the_attempts_that_count() -> None:
    [attempts] = [column for column in lists.JOB if column.title == "ATTEMPTS"]
    assert attempts.value({"attempt": 4, "counted_attempts": 1, "max_attempts": 3}) == "1/3"
