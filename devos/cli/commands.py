"""What all commands share: --server, --key and --json after any of them, and the client behind them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperOption

from devos.cli.errors import CliError

if TYPE_CHECKING:
    from devos.cli.client import Client

# The names of the shared options, in the context and for the parser: a command may have an argument called "key".
_JSON, _SERVER, _KEY = "shared_json", "shared_server", "shared_key"


def _remember(ctx: typer.Context, param: TyperOption, value: Any) -> Any:
    # Given before and after the noun, the later one counts.
    if value:
        ctx.meta[str(param.name)] = value
    return value


def shared_options() -> list[TyperOption]:
    """Fresh options for one command. They are kept in the context instead of being passed to the function."""
    return [
        TyperOption(
            param_decls=[_JSON, "--json"],
            is_flag=True,
            expose_value=False,
            callback=_remember,
            help="Print one JSON document instead of text for people; errors too.",
        ),
        TyperOption(
            param_decls=[_SERVER, "--server"],
            metavar="URL",
            expose_value=False,
            callback=_remember,
            help="Talk to the platform at this address instead of the one on this machine. [env: DEVOS_SERVER]",
        ),
        TyperOption(
            param_decls=[_KEY, "--key"],
            metavar="KEY",
            expose_value=False,
            callback=_remember,
            help="The API key for --server. [env: DEVOS_KEY]",
        ),
    ]


class DevosCommand(TyperCommand):
    """A command that also takes the shared options."""

    def __init__(self, name: str | None, **options: Any) -> None:
        super().__init__(name, **{**options, "params": [*(options.get("params") or []), *shared_options()]})
        # The whole first sentence in lists of commands, which would be cut after 45 characters otherwise.
        self.short_help = (self.help or "").split(". ")[0].removesuffix(".") + "."


def noun(**options: Any) -> typer.Typer:
    """A Typer application for one noun."""
    return typer.Typer(rich_markup_mode=None, no_args_is_help=True, add_completion=False, **options)


def wants_json(ctx: typer.Context) -> bool:
    return bool(ctx.meta.get(_JSON))


def client(ctx: typer.Context) -> Client:
    """The client the options and the environment ask for: of a server, or of this machine."""
    server = ctx.meta.get(_SERVER) or os.environ.get("DEVOS_SERVER", "")
    key = ctx.meta.get(_KEY) or os.environ.get("DEVOS_KEY", "")
    if server:
        from devos.cli.client import remote

        return remote(server, key)
    if ctx.meta.get(_KEY):
        raise CliError("--key goes with --server URL; on the platform's own machine no key is needed.")
    from devos.cli.local import local

    return local()
