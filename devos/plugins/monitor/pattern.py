"""Matching somebody's regular expression against somebody's page, without hanging.

A pattern like ``(a+)+$`` can take longer than the universe, and Python's ``re`` neither stops nor lets other threads
run. So it runs in a small process of its own, which can be killed.
"""

from __future__ import annotations

import json
import subprocess
import sys

from tasks_app.sdk import ActionError

TIMEOUT_S = 2.0
TEXT_MAX = 200_000
_MATCH, _NO_MATCH = 10, 11
_PROGRAM = (
    "import json,re,sys;"
    "given=json.load(sys.stdin);"
    f"sys.exit({_MATCH} if re.search(given['pattern'],given['text'],re.S|re.M) else {_NO_MATCH})"
)


def matches(pattern: str, text: str, timeout_s: float = TIMEOUT_S) -> bool:
    """Whether ``pattern`` is found in the first `TEXT_MAX` characters of ``text``.

    Raises `ActionError` PATTERN_TOO_SLOW after ``timeout_s`` seconds.
    """
    given = json.dumps({"pattern": pattern, "text": text[:TEXT_MAX]})
    try:
        # -I -S: no site packages and no environment, which is quicker to start and cannot be influenced.
        ended = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _PROGRAM], input=given.encode(), timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ActionError(
            "PATTERN_TOO_SLOW",
            f"body_matches took longer than {timeout_s:g} s on this page; write a simpler pattern",
            retryable=False,
        ) from error
    if ended.returncode not in {_MATCH, _NO_MATCH}:
        raise ActionError("PATTERN_FAILED", f"body_matches could not be tried (exit {ended.returncode})")
    return ended.returncode == _MATCH
