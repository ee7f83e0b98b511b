"""The reference of explain lists every code the reasons use, and no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_code_is_in_the_reference() -> None:
    used = set()
    for path in (ROOT / "tasks_app/queries/explain").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and re.fullmatch("[A-Z_]{4,}", node.value)
            ):
                used.add(node.value)
    page = (ROOT / "docs/reference/explain.md").read_text()
    listed = set(re.findall(r"`([A-Z_]{4,})`", page))
    assert used - {"ACTION_NOT_REGISTERED", "OPERATOR", "NOBODY", "HOST"} == listed
