"""`devos dlq` against the real API."""

from __future__ import annotations

import pytest

from tasks_app.models import DeadLetterJob, DeadLetterResult, Organization, Task
from tests.api.rows import make_letter, make_task
from tests.integration.cli.conftest import Run


@pytest.fixture
def letters(run: Run) -> list[DeadLetterJob]:
    """Three of one cause and one of another."""
    organization = Organization.objects.get(slug="default")
    made = [make_letter(make_task(organization, status="failed")) for _ in range(3)]
    other = make_task(organization, status="failed", type="core.fail", input={"times": 3})
    return [*made, make_letter(other, fingerprint="a" * 64, error={"code": "OTHER", "message": "else"})]


def test_letters_are_listed_grouped_and_shown(run: Run, letters: list[DeadLetterJob]) -> None:
    ids = [letter.public_id for letter in letters]
    assert [row["id"] for row in run("dlq", "list", "--json").json] == ids[::-1]
    assert [row["id"] for row in run("dlq", "list", "--code", "OTHER", "--status", "open", "--json").json] == ids[3:]
    assert [row["count"] for row in run("dlq", "groups", "--json").json] == [3, 1]
    table = run("dlq", "groups").out.splitlines()
    assert len(table) == 3 and "BROKEN" in table[1] and "it broke" in table[1]
    shown = run("dlq", "show", ids[0]).out
    assert "BROKEN: it broke" in shown and "Traceback" in shown and letters[0].job.public_id in shown
    assert run("dlq", "show", ids[0], "--json").json["status"] == "open"
    assert run("dlq", "show", "dlq_nonsense").code == 2


def test_one_letter_is_decided_about(run: Run, letters: list[DeadLetterJob]) -> None:
    first, second, third, fourth = (letter.public_id for letter in letters)
    assert run("dlq", "retry", first, "--reason", "again").out == f"{first} retried\n"
    late = run("dlq", "cancel", first)
    assert late.code == 2 and "was retried by local:" in late.err
    assert run("dlq", "discard", second).code == 2
    assert run("dlq", "discard", second, "--reason", "a test", "--json").json["status"] == "discarded"
    assert run("dlq", "cancel", third).out == f"{third} cancelled\n"
    replayed = run("dlq", "replay", fourth, "-i", "code=SPECIAL")
    new = Task.objects.get(replay_of=letters[3].job.task)
    assert replayed.out == f"{fourth} replayed {new.public_id}\n"
    assert new.input == {"times": 3, "code": "SPECIAL"}


def test_a_bulk_is_counted_and_submitted(run: Run, letters: list[DeadLetterJob]) -> None:
    counted = run("dlq", "bulk", "retry", "--code", "BROKEN", "--dry-run")
    assert counted.out == "retry would be done to 3 dead letters\n"
    assert run("dlq", "bulk", "retry", "--every", "--dry-run", "--json").json == {"count": 4, "exact": True}
    made = run("dlq", "bulk", "retry", "--code", "BROKEN", "--canary", "1", "--rate", "5/s", "--reason", "x", "--json")
    assert made.code == 0, made.err
    expected = {"verb": "retry", "filter": {"code": "BROKEN"}, "canary": 1, "rate": "5/s", "reason": "x"}
    assert Task.objects.get(type="core.dead_letters.apply").input == expected
    chosen = run("dlq", "bulk", "discard", letters[0].public_id, "--reason", "x", "--json").json
    assert chosen["input"]["ids"] == [letters[0].public_id]


@pytest.mark.parametrize(
    "args",
    [
        ["retry"],
        ["retry", "--every", "--code", "X"],
        ["delete", "--every"],
        ["retry", "--every", "--rate", "fast"],
        ["discard", "--every"],
        ["retry", "dlq_nonsense"],
    ],
)
def test_bulks_that_make_no_sense(run: Run, args: list[str]) -> None:
    ran = run("dlq", "bulk", *args)
    assert ran.code == 2 and ran.err
    assert not Task.objects.exists()


def test_results(run: Run, letters: list[DeadLetterJob]) -> None:
    task = letters[0].job.task
    for letter, outcome in zip(letters, ("done", "refused", "done", "done"), strict=True):
        DeadLetterResult.objects.create(task=task, dead_letter_id=letter.id, outcome=outcome)
    rows = run("dlq", "results", task.public_id, "--json").json
    assert [row["dead_letter_id"] for row in rows] == [letter.public_id for letter in letters]
    assert len(run("dlq", "results", task.public_id, "--outcome", "refused").out.splitlines()) == 2
