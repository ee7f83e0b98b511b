"""Every knob of DevOS: its name with the unit, the default, and why it is what it is.

A knob is read once, at start, from the environment variable ``DEVOS_<NAME>`` (upper case); a value that makes no sense
stops the process with a message that names the variable. Code reads knobs as ``settings.DEVOS.<name>``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

Seconds = Annotated[float, Field(gt=0)]


class Conf(BaseModel):
    """The settings of one DevOS process. Field descriptions are the reference (docs/reference/settings.md)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Django's lazy settings ask every value for this; a model is slow to say that it has no such attribute.
    _mask_wrapped: ClassVar[bool] = True

    home: Path = Field(Path(".devos"), description="Where the embedded servers, secrets and run.json live.")
    debug: bool = Field(False, description="Django's debug pages. Slow and talkative: never in production.")
    https: bool = Field(False, description="Whether the site is reached over HTTPS: cookies are then marked secure.")
    secret_key: str = Field(
        "", description="Django's secret key. Made and kept in DEVOS_HOME when empty; set it in production."
    )
    allowed_hosts: str = Field(
        "localhost,127.0.0.1,[::1]", description="Host names the web process answers to, separated by commas."
    )
    trusted_origins: str = Field("", description="Origins trusted for CSRF behind a proxy, separated by commas.")

    plugins: str = Field("", description="Plugins besides the installed ones: module:attribute, separated by commas.")

    lease_s: Seconds = Field(
        15, description="How long a worker owns a running job without renewing. Rescue comes after it."
    )
    renew_every_s: Seconds = Field(
        5, description="How often the worker's parent renews leases; three tries fit a lease."
    )
    probe_every_s: Seconds = Field(1, description="How often beat asks what is due. One statement each time.")
    max_interruptions: int = Field(
        5, ge=1, le=100, description="Deaths of its worker a job survives before it is a dead letter."
    )

    claim_batch_max: int = Field(
        50, ge=1, le=500, description="Most jobs claimed in one statement, for very short jobs."
    )
    light_job_ms: float = Field(5, gt=0, description="Jobs shorter than this let the claim batch grow.")
    flush_after_ms: float = Field(10, gt=0, description="Finished jobs are written at the latest after this.")
    turn_s: Seconds = Field(
        3, description="A work loop hands its process back to Celery after this, so shutdown stays quick."
    )
    bell_ttl_s: int = Field(
        2, ge=1, description="A bell nobody heard for this long is taken as lost and may be rung again."
    )

    timeout_s_max: int = Field(86_400, ge=1, description="Longest time limit an action may declare.")
    kill_grace_s: Seconds = Field(5, description="Between the soft limit (or a cancel) and the kill of the process.")
    shutdown_grace_s: Seconds = Field(20, description="How long running jobs may go on when their worker shuts down.")
    sync_timeout_s: Seconds = Field(30, description="Longest a sync action may hold an HTTP request.")

    wait_timeout_s: float = Field(
        7 * 86_400,
        gt=0,
        le=366 * 86_400,
        description="How long an action waits for an event, an approval or its children when it does not say.",
    )

    body_bytes_max: int = Field(2_000_000, ge=1_000, description="Largest request body; 413 above.")
    input_bytes_max: int = Field(1_000_000, ge=1_000, description="Largest input of a task as JSON.")
    output_bytes_max: int = Field(
        4_000_000, ge=1_000, description="Largest output of an action as JSON; above it fails once."
    )
    json_depth_max: int = Field(64, ge=4, le=500, description="Deepest nesting of any stored JSON.")
    bulk_tasks_max: int = Field(10_000, ge=1, description="Most tasks in one bulk request.")
    log_lines_max: int = Field(
        10_000, ge=1, description="Log lines kept of one execution; later ones are counted, not kept."
    )
    idempotency_keep_h: int = Field(24, ge=1, description="Hours an Idempotency-Key answers with the first response.")

    keep_completed_d: int = Field(
        30, ge=0, description="Days completed and cancelled tasks are kept, with their jobs and executions."
    )
    keep_failed_d: int = Field(
        90, ge=0, description="Days failed tasks and dead letters are kept; open dead letters stay until decided."
    )
    keep_events_d: int = Field(90, ge=0, description="Days events and log lines are kept; they go by whole months.")
    retention_every_s: Seconds = Field(60, description="How often a part of what is over and old is deleted.")
    retention_bite_s: Seconds = Field(
        2, description="How long that may take each time; sweeps of the system worker wait behind it."
    )
    retention_batch: int = Field(
        2_000, ge=1, le=20_000, description="Most tasks deleted in one transaction; far below a second of work."
    )

    allow_private_addresses: bool = Field(
        True,
        description="Whether actions may call loopback and private addresses. Set 0 in production.",
    )
    database_pool: int = Field(
        0,
        ge=0,
        le=200,
        description="Database connections a process shares in a pool; 0: one for each thread. The web process, which "
        "has a new thread for each request, uses 16 unless this is set.",
    )
    api_rate: str = Field("6000/min", description="Requests an API key or user may make.")
    login_rate: str = Field("20/min", description="Login attempts per address.")

    @model_validator(mode="after")
    def _fits_together(self) -> Conf:
        if self.lease_s < 3 * self.renew_every_s:
            raise ValueError(
                "DEVOS_LEASE_S must be at least three times DEVOS_RENEW_EVERY_S, or living workers lose their jobs"
            )
        return self


class ConfError(Exception):
    """A knob in the environment is unknown or has a value that cannot be used."""


# Variables of other parts (stack, test hooks, command) that share the prefix and are read where they are used.
_NOT_KNOBS = {
    "DEVOS_PORT",
    "DEVOS_SERVER",
    "DEVOS_KEY",
    "DEVOS_FAULT",
    "DEVOS_CONCURRENCY",
    "DEVOS_CLAIM_EACH",
    "DEVOS_BENCH_PREFETCH",
    "DEVOS_BENCH_BASE_URL",
}


def load(environ: dict[str, str] | Any) -> Conf:
    """Read the knobs from ``environ``; raise `ConfError` naming each variable that is wrong."""
    given = {name: environ[variable] for name in Conf.model_fields if (variable := f"DEVOS_{name.upper()}") in environ}
    try:
        return Conf(**given)
    except ValidationError as error:
        lines = [
            f"DEVOS_{'_'.join(map(str, e['loc'])).upper()}: {e['msg']}" if e["loc"] else e["msg"]
            for e in error.errors()
        ]
        raise ConfError("Settings in the environment are wrong:\n  " + "\n  ".join(lines)) from error


def unknown(environ: dict[str, str] | Any) -> list[str]:
    """Variables that look like knobs but are none: `devos doctor` warns about them (a typing error, most likely)."""
    known = {f"DEVOS_{name.upper()}" for name in Conf.model_fields} | _NOT_KNOBS
    return sorted(name for name in environ if name.startswith("DEVOS_") and name not in known)
