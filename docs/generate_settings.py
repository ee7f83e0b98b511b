"""Writes docs/reference/settings.md from devos/conf.py. ``python docs/generate_settings.py``; a test compares."""

from __future__ import annotations

from pathlib import Path

from devos.conf import Conf

TARGET = Path(__file__).parent / "reference" / "settings.md"
_HEAD = """# Settings

Made by `python docs/generate_settings.py` from `devos/conf.py`; do not edit. Each is an environment variable, read once
when a process starts; a value that makes no sense stops it with a message. `devos doctor` names variables that nothing
reads.

Beside these: `DATABASE_URL` and `REDIS_URL` (servers of your own instead of the embedded ones), `DEVOS_PORT` (the web
process), `DEVOS_CONCURRENCY` (pool processes of `make up`).

| Variable | Default | Meaning |
| --- | --- | --- |
"""


def page() -> str:
    """The whole page as Markdown."""
    rows = []
    for name, field in Conf.model_fields.items():
        default = field.default if str(field.default) else "empty"
        rows.append(f"| `DEVOS_{name.upper()}` | `{default}` | {field.description} |")
    return _HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page())
