"""A client of the platform on this machine. Everything slow (Django, the API) is imported here and only here."""

from __future__ import annotations

import getpass
import json
import logging
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devos.cli.errors import CliError, NotReachable

if TYPE_CHECKING:
    from devos.cli.client import Client
    from tasks_app.domain.principal import Principal

# Width of the column that keeps who created a task.
ACTOR_ID_MAX = 64


def local() -> Client:
    """The API of this machine, called in this process as an admin of the default organisation.

    Whoever can read the database's address owns the platform already, so no key is asked for.
    """
    prepare()
    import requests
    from django.conf import settings
    from django.core.handlers.wsgi import WSGIHandler

    from devos.cli.client import Client
    from devos.cli.inprocess import PRINCIPAL, InProcessAdapter

    with warnings.catch_warnings():
        # The middleware for static files misses its directory on a machine that only runs commands.
        warnings.filterwarnings("ignore", message="No directory at")
        application = WSGIHandler()
    adapter = InProcessAdapter(application, {PRINCIPAL: _principal()})
    session = requests.Session()
    # Neither proxies nor .netrc of the environment have a say in a call that never leaves the process.
    session.trust_env = False
    session.headers["Accept"] = "application/json"
    base_url = f"http://{_host(settings.ALLOWED_HOSTS)}"
    session.mount(base_url, adapter)
    return Client(session, base_url, "The platform on this machine")


def prepare() -> None:
    """Make Django usable in this process. Raises `NotReachable` when nothing runs here."""
    _servers_are_known()
    _setup_django()


def _servers_are_known() -> None:
    """Refuse early when neither the environment nor a running platform names the servers."""
    home = Path(os.environ.get("DEVOS_HOME", ".devos"))
    running = _read_json(home / "run.json")
    for variable, name in (("DATABASE_URL", "database_url"), ("REDIS_URL", "redis_url")):
        if not os.environ.get(variable) and not running.get(name):
            raise NotReachable(
                f"Nothing is running here: {home.resolve() / 'run.json'} does not exist and {variable} is not set. "
                "Run `make up` (or `devos up`) in the folder of DevOS, set DEVOS_HOME to that of a running platform, "
                "or name a server with --server URL --key KEY."
            )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _setup_django() -> None:
    from devos.conf import ConfError

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "devos.settings")
    try:
        import django

        django.setup()
    except ConfError as error:
        raise CliError(str(error)) from error
    # Who runs a command wants its result; what went as it should is no news to them, and a refusal is told anyway.
    logging.getLogger("django.request").setLevel(logging.CRITICAL)
    for handler in logging.getLogger().handlers:
        handler.setLevel(logging.ERROR)


def _principal() -> Principal:
    from django.db import DatabaseError

    from tasks_app.domain.principal import Actor, Principal
    from tasks_app.models import Organization

    try:
        organization = Organization.objects.filter(slug="default").values_list("id", flat=True).first()
    except DatabaseError as error:
        reason = str(error).strip().splitlines()[0]
        raise NotReachable(
            f"The database on this machine cannot be used: {reason}. Run `make up`; `devos doctor` says what is wrong."
        ) from error
    if organization is None:
        raise NotReachable("The database holds no default organisation. Run `python manage.py migrate`.")
    return Principal(Actor("local", _user()[:ACTOR_ID_MAX]), organization, "admin")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"uid-{os.getuid()}"


def _host(allowed: list[str]) -> str:
    """A host name that Django accepts."""
    names = [name.lstrip(".") for name in allowed if name != "*"]
    return "localhost" if not names or "localhost" in names else names[0]
