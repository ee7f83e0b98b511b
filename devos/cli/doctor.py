"""`devos doctor`: what is wrong with this installation, and what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from devos.cli.commands import wants_json

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def doctor(
    ctx: typer.Context,
    home: Annotated[Path, typer.Option(envvar="DEVOS_HOME", help="Where the platform keeps its data.")] = Path(
        ".devos"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check this installation. Exit code 0 when nothing fails, 1 otherwise; warnings do not count."""
    from devos.stack.doctor import findings

    quiet = as_json or wants_json(ctx)
    found = []
    for finding in findings(home.absolute()):
        found.append(finding)
        if not quiet:
            typer.echo(
                f"{typer.style(f'{finding.level:<5}', fg=_COLOURS[finding.level])} {finding.check}: {finding.message}"
            )
            if finding.hint:
                typer.echo(f"      -> {finding.hint}")
    failed = sum(finding.level == "fail" for finding in found)
    warned = sum(finding.level == "warn" for finding in found)
    if quiet:
        typer.echo(json.dumps({"ok": not failed, "checks": [finding.as_dict() for finding in found]}, indent=2))
    else:
        typer.echo(f"\n{len(found)} checks, {failed} failed, {warned} warnings")
    raise typer.Exit(1 if failed else 0)
