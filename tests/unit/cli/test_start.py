"""The command starts quickly: nothing slow is imported before it is needed."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

SLOW = {"django", "celery", "requests", "rich", "pydantic", "rest_framework"}


@pytest.mark.parametrize("arguments", [["--help"], ["task", "--help"], ["action", "run", "--help"]])
def test_help_imports_nothing_slow(arguments: list[str]) -> None:
    program = (
        "import sys\nfrom devos.cli import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit as ended:\n"
        f"    print(ended.code, sorted({SLOW!r} & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "0 []"


def test_help_is_quick() -> None:
    took = []
    for _ in range(5):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "devos.cli", "--help"], capture_output=True, check=True)
        took.append(time.perf_counter() - started)
    # 0.3 s on two idle cores; the best of five, because other tests run beside this one.
    assert min(took) < 0.8


@pytest.mark.parametrize(
    ("words", "offered"),
    [("devos wo", {"worker"}), ("devos task re", {"retry", "replay"}), ("devos queue p", {"pause"})],
)
def test_completion_knows_nouns_and_verbs(words: str, offered: set[str]) -> None:
    instruction = {"_DEVOS_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    ran = subprocess.run(
        [sys.executable, "-m", "devos.cli"], env=os.environ | instruction, capture_output=True, text=True, check=False
    )
    assert set(ran.stdout.split()) == offered
