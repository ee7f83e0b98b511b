"""`devos up`: the whole platform on this machine, under one process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer


def up(
    home: Annotated[
        Path, typer.Option(envvar="DEVOS_HOME", help="Where the data, the secrets and run.json live.")
    ] = Path(".devos"),
    port: Annotated[
        int | None,
        typer.Option(
            envvar="DEVOS_PORT", min=1, max=65535, help="Port of the web process. Default: a free one near 8000."
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            envvar="DEVOS_CONCURRENCY", min=1, max=512, help="Job processes. Default: one a core, at least two."
        ),
    ] = None,
    events: Annotated[bool, typer.Option(help="Celery events, from which Flower shows every job.")] = True,
    flower: Annotated[bool, typer.Option(help="Start Flower.")] = True,
    sample_site: Annotated[bool, typer.Option(help="Serve the small sample web site on loopback.")] = True,
    first_task: Annotated[bool, typer.Option(help="On the first start, scan the sample site as a first task.")] = True,
) -> None:
    """Start DevOS: database, broker, web, workers, beat and Flower. Stop it with Ctrl-C.

    DATABASE_URL and REDIS_URL replace the embedded servers by servers that exist.
    """
    from devos.stack import bytecode

    bytecode.use_here(home)
    from devos.conf import ConfError, load
    from devos.stack.plan import PROCESSES_MIN, Options
    from devos.stack.supervisor import up as run

    try:
        conf = load(os.environ)
    except ConfError as error:
        typer.echo(f"devos up: {error}", err=True)
        raise typer.Exit(2) from error
    options = Options(
        home=home,
        port=port,
        concurrency=concurrency or max(PROCESSES_MIN, os.cpu_count() or 1),
        events=events,
        flower=flower,
        sample_site=sample_site,
        first_task=first_task,
        shutdown_grace_s=conf.shutdown_grace_s,
    )
    raise typer.Exit(run(options))
