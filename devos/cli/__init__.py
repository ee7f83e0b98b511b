"""The `devos` command: a client of the REST API, over HTTP or inside this process."""

from devos.cli.app import main

__all__ = ["main"]
