"""`devos bench`: measure this installation, or fill it to see how it behaves when it is big."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Annotated

import typer

from devos.cli import local
from devos.cli.errors import WORK_FAILED, CliError

app = typer.Typer(no_args_is_help=True)


class BenchFailed(CliError):
    """The run itself did not end well."""

    exit_code = WORK_FAILED
    code = "BENCH_FAILED"


@app.command("run")
def run(
    jobs: Annotated[int, typer.Option(min=100, max=1_000_000, help="No-op jobs in each round.")] = 20_000,
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="Pool processes.")] = 2,
    rounds: Annotated[int, typer.Option(min=1, max=20, help="Rounds; medians are reported.")] = 3,
    each: Annotated[bool, typer.Option("--each", help="Claim and finish every job alone.")] = False,
    latency_s: Annotated[float, typer.Option(min=1, max=600, help="Seconds of the latency part.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Measure throughput, submit rate and latency against raw Celery on the same broker and pool.

    Works in a scratch database beside the platform's own; needs nothing running.
    """
    from devos.bench.scratch import environment

    argv = [sys.executable, "-m", "devos.bench.run", f"--jobs={jobs}", f"--concurrency={concurrency}"]
    argv += [f"--rounds={rounds}", f"--latency-s={latency_s}", *(["--each"] if each else [])]
    with environment() as env:
        done = subprocess.run(argv, env=env, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise BenchFailed("The bench run failed; what it said is above.")
    _show(json.loads(done.stdout), as_json)


@app.command("seed")
def seed(
    executions: Annotated[int, typer.Option(min=1, max=50_000_000, help="Finished executions to add.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Add finished executions (with tasks, jobs and events) to the running platform's database."""
    local.prepare()
    from devos.bench.seed import seed as fill

    _show(fill(executions), as_json)


def _show(result: Mapping[str, object], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(result))
        return
    width = max(map(len, result))
    for name, value in result.items():
        typer.echo(f"{name:<{width}}  {value}")
