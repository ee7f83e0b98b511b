"""What a project may be called."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tasks_app.domain import jsonsafe
from tasks_app.domain.errors import Conflict, InvalidInput

_SLUG = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def check(slug: str | None, name: str | None, description: str | None) -> None:
    """Raise `InvalidInput` naming each field that is wrong; None is not looked at."""
    problems = [{"field": field, "problem": problem} for field, problem in _problems(slug, name, description)]
    if problems:
        raise InvalidInput("; ".join(f"{p['field']}: {p['problem']}" for p in problems), problems)


def _problems(slug: str | None, name: str | None, description: str | None) -> Iterator[tuple[str, str]]:
    if slug is not None and not _SLUG.fullmatch(slug):
        yield "slug", "must be 1 to 63 lower-case letters, digits and hyphens"
    if name is not None and (not name.strip() or len(name) > 200 or jsonsafe.text_problem(name)):
        yield "name", "must be 1 to 200 characters of text"
    if description is not None and (len(description) > 10_000 or jsonsafe.text_problem(description)):
        yield "description", "must be at most 10,000 characters of text"


def slug_taken(slug: str) -> Conflict:
    return Conflict(
        f"There is a project {slug!r} already. Choose another slug.", [{"field": "slug", "problem": "taken"}]
    )
