"""docs/reference/cli.md is what the commands say about themselves."""

from __future__ import annotations

from devos.cli import docs


def test_the_reference_is_up_to_date() -> None:
    assert docs.FILE.read_text() == docs.reference(), "run `python -m devos.cli.docs`"
