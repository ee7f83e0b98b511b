"""docs/reference/cli.md, made from the commands themselves: `python -m devos.cli.docs` writes it."""

from __future__ import annotations

from pathlib import Path

import typer
from typer.cli import get_docs_for_click

from devos.cli.app import command

FILE = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "cli.md"
INTRODUCTION = "<!-- Made by `python -m devos.cli.docs`. Change the help in devos/cli/ instead of this file. -->\n\n"


def reference() -> str:
    """The whole reference as Markdown."""
    root = command()
    context = typer.Context(root, info_name="devos")
    return (
        INTRODUCTION + get_docs_for_click(obj=root, ctx=context, name="devos", title="The devos command").strip() + "\n"
    )


if __name__ == "__main__":
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(reference())
