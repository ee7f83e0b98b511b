"""`python -m devos.stack.prepare`: the database made ready once, before the other services of a deployment start.

Migrates, makes the admin user and key on the first run, and keeps what Flower needs to ask for a login. Needs
DATABASE_URL and REDIS_URL; secrets go to DEVOS_HOME, which the services share.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from devos.stack import external, first_start, paths, process
from devos.stack.errors import StackError
from devos.stack.plan import Options, Plan

TIMEOUT_S = 1800.0


def prepare(home: Path, database_url: str, redis_url: str) -> str:
    """Do all of it; the text to show. Raises StackError."""
    if not database_url or not redis_url:
        raise StackError("Set DATABASE_URL and REDIS_URL: this prepares servers that exist. `devos up` starts its own.")
    home = paths.open_home(home)
    external.check_postgres(database_url)
    _, policy = external.check_redis(redis_url)
    plan = Plan(Options(home), database_url, redis_url)
    lines = [process.run(plan.django("migrate", "--noinput"), TIMEOUT_S)]
    facts = first_start.keep_bootstrap(home, process.run(plan.django("bootstrap"), TIMEOUT_S))
    first_start.flower_login(home)
    if facts.get("created"):
        lines.append(
            f"First start: sign in as {facts['admin_user']}; the password is in {home / first_start.BOOTSTRAP}"
        )
    if warning := external.policy_warning(policy):
        lines.append(f"WARNING: {warning}")
    return "\n".join(lines)


def main() -> int:
    """Exit code 0 when the database is ready."""
    environ = os.environ
    try:
        text = prepare(
            Path(environ.get("DEVOS_HOME", ".devos")), environ.get("DATABASE_URL", ""), environ.get("REDIS_URL", "")
        )
    except StackError as error:
        sys.stderr.write(f"prepare: {error}\n")
        return 1
    sys.stdout.write(f"{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
