"""Writes docs/reference/actions.md from the actions that ship. ``--check`` only compares."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent / "reference" / "actions.md"
_HEAD = """# Actions that ship with DevOS

Made by `python docs/generate.py` from the actions themselves; do not edit. `devos action <id> --help` says the same in
a terminal. How to write one: [write an action](../how-to/write-an-action.md).
"""
_LIMITS = {
    "minimum": "≥ {}",
    "exclusiveMinimum": "> {}",
    "maximum": "≤ {}",
    "exclusiveMaximum": "< {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "maxProperties": "at most {} entries",
}


def page() -> str:
    """The whole page as Markdown."""
    from devos.plugins import core, monitor, net, web
    from tasks_app.runtime import built_in

    parts = [_HEAD]
    for plugin in (core.plugin, monitor.plugin, net.plugin, web.plugin, built_in.plugin):
        parts.append(f"## {plugin.title}\n")
        parts += [_action(action) for action in sorted(plugin.actions, key=lambda action: action.id)]
    return "\n".join(parts).rstrip() + "\n"


def _action(action: Any) -> str:
    retry = action.retry
    facts = [
        f"permission `{action.permission}`",
        f"modes {', '.join(sorted(action.modes))}",
        f"time limit {action.timeout_s:g} s",
        f"{retry.max_attempts} attempts" if retry.max_attempts > 1 else "one attempt",
    ]
    facts += ["can be paused"] if action.supports_pause else []
    facts += ["**dangerous**"] if action.dangerous else []
    lines = [f"### {action.id}\n", action.description + "\n", " · ".join(facts) + "\n"]
    lines += _fields("Input", action.input_schema())
    if action.output_schema():
        lines += _fields("Output", action.output_schema(), limits=False)
    return "\n".join(lines)


def _fields(title: str, schema: dict[str, Any], limits: bool = True) -> list[str]:
    properties = schema.get("properties", {})
    if not properties:
        return [f"{title}: none.\n"]
    rows = [f"| {title} | Type | {'Default | Limits | ' if limits else ''}Meaning |"]
    rows.append("| --- | --- | " + ("--- | --- | " if limits else "") + "--- |")
    required = set(schema.get("required", []))
    for name, field in properties.items():
        meaning = field.get("description", "").replace("|", "\\|")
        middle = f"{_default(name, field, required)} | {_limits(field)} | " if limits else ""
        rows.append(f"| `{name}` | {_type(field)} | {middle}{meaning} |")
    return ["\n".join(rows) + "\n"]


def _default(name: str, field: dict[str, Any], required: set[str]) -> str:
    if name in required:
        return "required"
    return f"`{json.dumps(field['default'], ensure_ascii=False)}`" if "default" in field else "empty"


def _type(field: dict[str, Any]) -> str:
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_type(option) for option in field["anyOf"]))
    if "$ref" in field:
        name = str(field["$ref"]).rpartition("/")[2]
        return "any JSON" if name == "JsonValue" else name
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    return str(field.get("type", "any JSON"))


def _limits(field: dict[str, Any]) -> str:
    options = [field, *field.get("anyOf", [])]
    found = [text.format(option[key]) for option in options for key, text in _LIMITS.items() if key in option]
    return ", ".join(dict.fromkeys(found))


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "devos.settings")
    import django

    django.setup()
    made = page()
    if "--check" in sys.argv:
        if not TARGET.exists() or TARGET.read_text() != made:
            sys.stderr.write(f"{TARGET} is not what the actions say: run python docs/generate.py\n")
            return 1
        return 0
    TARGET.write_text(made)
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    sys.exit(main())
