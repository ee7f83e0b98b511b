"""The root of the command: which nouns there are, and how an error becomes an exit code.

A noun's module is imported when it is used, so that `devos --help` and completion stay quick.
"""

from __future__ import annotations

import importlib
import io
import sys
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer._click.exceptions import ClickException, UsageError
from typer.core import TyperGroup

from devos.cli.commands import shared_options
from devos.cli.errors import CliError, report

# name -> the line in the help. The module is devos.cli.<name>; it has an `app`, or a function called as the command.
NOUNS = {
    "up": "Start the whole platform on this machine and stay until Ctrl-C.",
    "doctor": "Say what is wrong with this installation, and what to do.",
    "action": "Run an action: devos action seo.website.scan --input url=...; list and show them.",
    "task": "Submit, watch, cancel, retry and replay tasks.",
    "job": "The jobs of tasks: list, show, retry, cancel.",
    "execution": "Attempts at running an action: list, show, logs.",
    "dlq": "Dead letters, the jobs that were given up: groups, retry, replay, discard, bulk.",
    "approval": "Decisions that work waits for: list, show, approve, reject.",
    "queue": "Queues: list, show, pause, resume.",
    "worker": "The processes that run jobs.",
    "project": "Projects: list, create, show their numbers.",
    "cost": "What work has cost, by day, project or action.",
    "retention": "Delete what is over and old, or only say what would go.",
    "key": "API keys: list, create, revoke.",
    "bench": "Measure this installation.",
}


def nouns() -> dict[str, str]:
    """Those whose module is installed: a lean image may leave out the benchmarks."""
    here = Path(__file__).parent
    return {name: line for name, line in NOUNS.items() if (here / f"{name}.py").exists()}


class RootGroup(TyperGroup):
    """Loads the module of a noun when it is called for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(nouns())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in nouns():
            return None
        if cmd_name not in self.commands:
            self.commands[cmd_name] = load(cmd_name)
        return self.commands[cmd_name]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(nouns().items()))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except UsageError as error:
            if args[0] not in nouns() and "Did you mean" not in error.message:
                error.message += " `devos --help` lists the commands."
            raise


def load(name: str) -> Any:
    """The click command behind a noun."""
    module = importlib.import_module(f"devos.cli.{name}")
    found = getattr(module, "app", None)
    if isinstance(found, typer.Typer):
        found.info.help = NOUNS[name]
        group = typer.main.get_group(found)
        group.name = name
        group.short_help = NOUNS[name]
        return group
    single = typer.Typer(rich_markup_mode=None, add_completion=False)
    single.command(name, short_help=NOUNS[name])(getattr(module, name))
    return typer.main.get_command(single)


app = typer.Typer(
    cls=RootGroup,
    name="devos",
    help="DevOS: durable tasks on Django, Celery and PostgreSQL.",
    epilog="Exit codes: 0 done, 1 the work failed, 2 wrong use, 3 the platform cannot be reached.",
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True),
) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(installed("devos"))
        raise typer.Exit(0)


def command() -> Any:
    """The click command of everything."""
    root = typer.main.get_command(app)
    root.params.extend(shared_options())
    return root


def main(args: list[str] | None = None) -> NoReturn:
    """Run the command and exit with its code."""
    given = sys.argv[1:] if args is None else args
    as_json = "--json" in given
    for stream in (sys.stdout, sys.stderr):
        # Text that the terminal's encoding lacks, or an argument that is no text at all, must not end a command.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = command().main(args=given, prog_name="devos", standalone_mode=False)
    except CliError as error:
        report(error, as_json)
        code = error.exit_code
    except ClickException as error:
        code = error.exit_code
        _report_usage(error, as_json)
    except typer.Abort:
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


def _report_usage(error: ClickException, as_json: bool) -> None:
    if as_json:
        report(CliError(error.format_message()), as_json=True)
    else:
        error.show()
