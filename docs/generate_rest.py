"""Writes the table of endpoints in docs/reference/rest.md from the API's own description. ``--check`` only compares."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent / "reference" / "rest.md"
_BEGIN, _END = "<!-- endpoints: python docs/generate_rest.py -->\n", "<!-- end of endpoints -->"


def page(schema: dict[str, Any], now: str) -> str:
    """The page ``now`` with its table made new from an OpenAPI document."""
    before, _, rest = now.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return before + _BEGIN + "\n".join(_table(schema)) + "\n" + _END + after


def _table(schema: dict[str, Any]) -> list[str]:
    rows = ["| | | query parameters |", "| --- | --- | --- |"]
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            named = [p["name"] for p in operation.get("parameters", []) if p["in"] == "query"]
            shown = " ".join(f"`{name}`" for name in named)
            rows.append(f"| `{method.upper()} {path}` | {operation['summary']} | {shown} |")
    return rows


def main() -> int:
    sys.path.insert(0, str(Path(__file__).parent.parent))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "devos.settings")
    import django

    django.setup()
    from drf_spectacular.generators import SchemaGenerator

    now = TARGET.read_text()
    text = page(SchemaGenerator().get_schema(request=None, public=True), now)
    if "--check" in sys.argv:
        return int(now != text)
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
