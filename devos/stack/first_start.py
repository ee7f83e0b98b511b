"""What happens once in the life of a DEVOS_HOME: the admin user and key, and a first real task."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

from devos.stack import paths
from devos.stack.errors import StackError

BOOTSTRAP = "bootstrap.json"
FLOWER_LOGIN = "flower_login"
FIRST_TASK_DONE = "first_task.json"
_FOUND = ("pages", "broken_links", "redirects", "missing_titles", "duplicate_titles", "images_without_alt")
_KEPT = ("admin_user", "admin_password", "api_key")


def keep_bootstrap(home: Path, printed: str) -> dict[str, Any]:
    """Read what the bootstrap command printed; when it made the accounts, write them to bootstrap.json (0600)."""
    facts = _last_json_object(printed)
    if facts is None:
        raise StackError(f"The bootstrap command did not print its line of JSON:\n{printed}")
    if facts.get("created"):
        kept = {name: facts[name] for name in _KEPT}
        paths.write_private(home / BOOTSTRAP, json.dumps(kept, indent=1) + "\n")
    return facts


def has_bootstrap(home: Path) -> bool:
    """Whether the login and key of the first start are kept here."""
    return (home / BOOTSTRAP).exists()


def flower_login(home: Path) -> str:
    """``user:password`` for Flower, kept in `FLOWER_LOGIN`: the admin's of the first start, else one that is made."""
    own = home / FLOWER_LOGIN
    try:
        kept = json.loads((home / BOOTSTRAP).read_text())
        login = f"{kept['admin_user']}:{kept['admin_password']}"
    except (OSError, ValueError, KeyError):
        login = own.read_text().strip() if own.exists() else f"admin:{secrets.token_urlsafe(18)}"
    paths.write_private(own, login)
    return login


def first_task_due(home: Path) -> bool:
    """Whether the first task has not yet come to its end here."""
    return not (home / FIRST_TASK_DONE).exists()


def keep_first_task(home: Path, printed: str) -> str:
    """Note that the first task is done, and say in one line what it found."""
    result = _last_json_object(printed) or {}
    paths.write_private(home / FIRST_TASK_DONE, json.dumps(result) + "\n")
    output = result.get("output")
    return found_line(output if isinstance(output, dict) else result)


def failure_line(printed: str) -> str:
    """Code and message of the error in a failed task's JSON; what was printed, when there is none."""
    error = (_last_json_object(printed) or {}).get("error")
    return f"{error.get('code')}: {error.get('message')}" if isinstance(error, dict) else printed


def found_line(output: dict[str, Any]) -> str:
    """What the report of a scan says, in words; parts of which there are none are left out."""
    counted = {name: output.get(name) for name in _FOUND}
    numbers = {name: len(value) if isinstance(value, list) else value for name, value in counted.items()}
    return ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in numbers.items() if number) or "done"


def _last_json_object(text: str) -> dict[str, Any] | None:
    """The last JSON object in ``text``, printed on one line or over several; None when there is none."""
    decoder = json.JSONDecoder()
    lines = text.splitlines(keepends=True)
    for index in range(len(lines) - 1, -1, -1):
        if not lines[index].startswith("{"):
            continue
        try:
            found, _ = decoder.raw_decode("".join(lines[index:]))
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    return None
