"""Queues, workers, projects, keys, the audit and the caller as the API shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from tasks_app.api.represent.common import ActorOut, Json, Out, actor_out, public
from tasks_app.domain import clock, ids
from tasks_app.domain.principal import Principal
from tasks_app.models import ApiKey, AuditEntry, Execution, Organization, Project, Queue, Worker
from tasks_app.queries import workers as worker_queries
from tasks_app.queries.queues import Load


class QueueOut(Out):
    name: str
    description: str
    paused: bool
    paused_at: datetime | None
    paused_by: str
    pause_reason: str
    paused_until: datetime | None
    depth: int = Field(description="Jobs that have not been started: `queued` and `waiting`.")
    queued: int = Field(description="Jobs that could run now.")
    waiting: int = Field(description="Jobs that may not run yet: time, retry, a slot or a lock.")
    running: int
    counts_exact: bool = Field(description="False when a count stopped at 10,000.")
    oldest_waiting_at: datetime | None = Field(description="Since when the oldest queued job could have run.")
    oldest_waiting_s: float | None
    workers: int = Field(description="Living workers that serve this queue.")


class QueueList(Out):
    results: list[QueueOut]
    next: str | None


class RunningOut(Out):
    id: str
    action_id: str
    task_id: str | None
    job_id: str | None
    attempt: int
    started_at: datetime | None


class WorkerOut(Out):
    id: str
    hostname: str
    pid: int
    queues: list[str]
    concurrency: int
    alive: bool
    started_at: datetime
    last_seen_at: datetime
    stopped_at: datetime | None
    restarted_processes: int
    rss_mb: float | None
    running: list[RunningOut]


class WorkerList(Out):
    results: list[WorkerOut]
    next: str | None


class ProjectOut(Out):
    id: str
    slug: str
    name: str
    description: str
    created_at: datetime


class ProjectList(Out):
    results: list[ProjectOut]
    next: str | None


class KeyOut(Out):
    id: str
    name: str
    prefix: str = Field(description="The readable part of the key, to tell keys apart.")
    role: str
    scopes: list[str]
    active: bool
    created_by: ActorOut
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None = Field(description="To the minute.")


class NewKeyOut(KeyOut):
    key: str = Field(description="The key itself. It is shown this once and stored nowhere.")


class KeyList(Out):
    results: list[KeyOut]
    next: str | None


class AuditOut(Out):
    id: str
    timestamp: datetime
    actor: ActorOut
    verb: str
    object_type: str
    object_id: str
    reason: str
    before: Json
    after: Json
    request_id: str
    address: str


class AuditList(Out):
    results: list[AuditOut]
    next: str | None


class OrganizationOut(Out):
    id: str
    slug: str
    name: str


class MeOut(Out):
    actor: ActorOut
    organization: OrganizationOut
    role: str
    scopes: list[str] = Field(description="Empty: everything the role allows.")


def queue_out(found: tuple[Queue, Load]) -> QueueOut:
    queue, load = found
    now = clock.now()
    paused = queue.paused_at is not None and (queue.paused_until is None or queue.paused_until > now)
    oldest = load.oldest_queued_at
    return QueueOut(
        name=queue.name,
        description=queue.description,
        paused=paused,
        paused_at=queue.paused_at,
        paused_by=queue.paused_by,
        pause_reason=queue.pause_reason,
        paused_until=queue.paused_until,
        depth=load.queued.value + load.waiting.value,
        queued=load.queued.value,
        waiting=load.waiting.value,
        running=load.running.value,
        counts_exact=load.queued.exact and load.waiting.exact and load.running.exact,
        workers=load.workers,
        oldest_waiting_at=oldest,
        oldest_waiting_s=max(0.0, (now - oldest).total_seconds()) if oldest else None,
    )


def worker_out(found: tuple[Worker, list[Execution]]) -> WorkerOut:
    worker, running = found
    return WorkerOut(
        id=worker.public_id,
        hostname=worker.hostname,
        pid=worker.pid,
        queues=worker.queues,
        concurrency=worker.concurrency,
        alive=worker.stopped_at is None and worker.last_seen_at >= worker_queries.seen_since(),
        started_at=worker.started_at,
        last_seen_at=worker.last_seen_at,
        stopped_at=worker.stopped_at,
        restarted_processes=worker.restarted_processes,
        rss_mb=worker.rss_mb,
        running=[
            RunningOut(
                id=row.public_id,
                action_id=row.action_id,
                task_id=public("task", row.task_id),
                job_id=public("job", row.job_id),
                attempt=row.attempt,
                started_at=row.started_at,
            )
            for row in running
        ],
    )


def project_out(row: Project) -> ProjectOut:
    return ProjectOut(
        id=row.public_id, slug=row.slug, name=row.name, description=row.description, created_at=row.created_at
    )


def key_out(row: ApiKey) -> KeyOut:
    return KeyOut(
        id=row.public_id,
        name=row.name,
        prefix=row.prefix,
        role=row.role,
        scopes=row.scopes,
        active=row.revoked_at is None and (row.expires_at is None or row.expires_at > clock.now()),
        created_by=ActorOut(type=row.created_by_type, id=row.created_by_id),
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        last_used_at=row.last_used_at,
    )


def new_key_out(row: ApiKey, key: str) -> NewKeyOut:
    return NewKeyOut(**key_out(row).model_dump(), key=key)


def audit_out(row: AuditEntry) -> AuditOut:
    return AuditOut(
        id=row.public_id,
        timestamp=row.timestamp,
        actor=ActorOut(type=row.actor_type, id=row.actor_id),
        verb=row.verb,
        object_type=row.object_type,
        object_id=row.object_id,
        reason=row.reason,
        before=row.before,
        after=row.after,
        request_id=row.request_id,
        address=row.address,
    )


def me_out(principal: Principal, organization: Organization) -> MeOut:
    return MeOut(
        actor=actor_out(principal.actor),
        organization=OrganizationOut(
            id=ids.to_text("organization", organization.id), slug=organization.slug, name=organization.name
        ),
        role=principal.role,
        scopes=list(principal.scopes),
    )
