"""From the facts to the reasons: what holds the whole task first, then job by job, what runs before what waits."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings

from tasks_app.domain import ids
from tasks_app.domain.errors import NotFound
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import TASK_FINAL, JobStatus, TaskStatus
from tasks_app.models import Job, Task
from tasks_app.queries import actors
from tasks_app.queries.explain import facts as reading
from tasks_app.queries.explain.facts import AHEAD_MAX, SYSTEM, Facts
from tasks_app.queries.explain.reason import HOST, NOBODY, OPERATOR, Explanation, Holder, Reason, sentence
from tasks_app.queries.explain.waits import waits


def explain(principal: Principal, task_id: UUID) -> Explanation:
    """Why a task of the caller's organisation is not running. Raises `NotFound`, `PermissionDenied`."""
    principal.require("tasks.read")
    mine = Task.objects.filter(organization_id=principal.organization_id, id=task_id)
    task = mine.defer("input", "output").first()
    if task is None:
        raise NotFound("task", ids.to_text("task", task_id))
    return of(task)


def of(task: Task, jobs: list[Job] | None = None) -> Explanation:
    """Why this task (or these of its jobs) is not running, for callers that have checked who asks."""
    facts = reading.gather(task, jobs)
    about_task = [*finished(facts), *draft(facts), *cancelling(facts), *paused(facts)]
    about_jobs = [reason for job in facts.jobs for reason in of_job(facts, job)]
    running = any(job.status == JobStatus.RUNNING for job in facts.jobs)
    reasons = [*about_jobs, *about_task] if running else [*about_task, *about_jobs]
    return Explanation(task.id, task.status, running, reasons or [settling(facts)])


# -- the whole task ---------------------------------------------------------------------------------------------------


def finished(facts: Facts) -> list[Reason]:
    """How it ended."""
    task = facts.task
    if task.status not in TASK_FINAL:
        return []
    error = task.error if isinstance(task.error, dict) else {}
    if task.status == TaskStatus.COMPLETED:
        how = f"`devos task replay {task.public_id}` runs it again as a new task."
        return [Reason("COMPLETED", "It has completed.", since=task.completed_at, cleared_by=OPERATOR, how=how)]
    if task.status == TaskStatus.CANCELLED:
        by = actors.name_of_owner(task.cancel_requested_by)
        why = f": {task.cancel_reason}" if task.cancel_reason else ""
        message = sentence(f"It was cancelled{f' by {by}' if by else ''}{why}")
        how = f"`devos task replay {task.public_id}` runs it again as a new task."
        return [Reason("CANCELLED", message, since=task.completed_at, cleared_by=OPERATOR, how=how)]
    said = str(error.get("message", "it did not say why"))[:300]
    message = sentence(f"It failed with {error.get('code', 'an error')}: {said}")
    how = f"`devos task retry {task.public_id}` runs its failed jobs again; replay takes another input."
    return [Reason("FAILED", message, since=task.completed_at, cleared_by=OPERATOR, how=how)]


def draft(facts: Facts) -> list[Reason]:
    """It was never asked to run."""
    if facts.task.status != TaskStatus.DRAFT:
        return []
    message = "It is a draft: nobody has asked for it to run yet."
    return [Reason("DRAFT", message, since=facts.task.created_at, cleared_by=OPERATOR, how="Submit it.")]


def cancelling(facts: Facts) -> list[Reason]:
    """Somebody asked to end it and it has not ended yet."""
    task = facts.task
    if task.cancel_requested_at is None or task.status in TASK_FINAL:
        return []
    by = actors.name_of_owner(task.cancel_requested_by)
    why = f": {task.cancel_reason}" if task.cancel_reason else ""
    asked = sentence(f"{by or 'Somebody'} asked to cancel it{why}")
    grace = f"What does not stop by itself is killed after {settings.DEVOS.kill_grace_s:g} s."
    return [Reason("CANCELLING", f"{asked} {grace}", since=task.cancel_requested_at)]


def paused(facts: Facts) -> list[Reason]:
    """An ancestor or the task itself is paused, the topmost first: that is the one to resume."""
    found = []
    for row in facts.paused_ancestors:
        name = ids.to_text("task", row["id"])
        title = row["name"] or row["type"]
        message = f"The task {title}, which it is part of, is paused{_by(facts, name)}"
        how = f"`devos task resume {name}`."
        holder = Holder("task", name, title)
        found.append(Reason("ANCESTOR_PAUSED", message, None, holder, row["paused_at"], None, OPERATOR, how))
    if facts.task.status == TaskStatus.PAUSED:
        name = facts.task.public_id
        how = f"`devos task resume {name}`."
        message = f"It is paused{_by(facts, name)}"
        holder = Holder("task", name, facts.task.name)
        found.append(Reason("PAUSED", message, None, holder, facts.task.paused_at, None, OPERATOR, how))
    return found


def _by(facts: Facts, task: str) -> str:
    entry = facts.pausers.get(task)
    if entry is None:
        return "."
    by = f" by {actors.name_of(entry.actor_type, entry.actor_id)}"
    return sentence(f"{by}: {entry.reason}" if entry.reason else by)


def settling(facts: Facts) -> Reason:
    """Nothing is left to run and the task has not been brought to its end yet."""
    message = "All of its jobs have ended; its own state follows within the hour at the latest."
    return Reason("SETTLING", message, since=facts.task.started_at, until=facts.task.check_at)


# -- one job ----------------------------------------------------------------------------------------------------------


def of_job(facts: Facts, job: Job) -> list[Reason]:
    """The reasons of one job."""
    if job.status == JobStatus.FAILED:
        return dead_letter(facts, job)
    if job.status == JobStatus.RUNNING:
        return [runs(facts, job)]
    if job.status == JobStatus.QUEUED:
        return obstacles(facts, job) or [nobody_took_it(facts, job)]
    return [*waits(facts, job), *obstacles(facts, job)]


def dead_letter(facts: Facts, job: Job) -> list[Reason]:
    """It was given up and waits for a decision."""
    letter = facts.dead_letters.get(job.id)
    if letter is None:
        return []
    error = letter.error if isinstance(letter.error, dict) else {}
    message = f"{job.action_id} was given up after attempt {job.counted_attempts} of {job.max_attempts}"
    message += f" with {error.get('code', 'an error')}: it is an open dead letter."
    how = "Retry, replay or discard it at the desk for dead letters."
    holder = Holder("dead_letter", letter.public_id, str(error.get("code", "")))
    return [Reason("DEAD_LETTER", message, job.id, holder, letter.created_at, None, OPERATOR, how)]


def runs(facts: Facts, job: Job) -> Reason:
    """Which worker runs it, since when, and how far it says it is."""
    worker = next((one for one in facts.workers if one["id"] == job.worker_id), None)
    name = f"{worker['hostname']} (pid {worker['pid']})" if worker else "a worker that is gone"
    holder = Holder("worker", ids.to_text("worker", job.worker_id) if job.worker_id else "", name)
    execution = facts.execution(job)
    since = execution.started_at if execution else job.started_at
    if job.lease_expires_at and job.lease_expires_at < facts.now:
        message = f"{name} has stopped renewing its lease; the job is rescued and runs again."
        return Reason("LEASE_EXPIRED", message, job.id, holder, job.lease_expires_at, None, NOBODY, "")
    message = f"It runs on {name}, attempt {job.counted_attempts} of {job.max_attempts}.{_progress(job)}"
    if job.cancel_requested_at:
        message += " It was asked to stop."
    elif job.pause_requested_at:
        message += " It was asked to pause and does so at its next pause point."
    return Reason("RUNNING", message, job.id, holder, since, job.lease_expires_at)


def _progress(job: Job) -> str:
    said = job.progress if isinstance(job.progress, dict) else {}
    parts = [
        str(said["phase"]) if said.get("phase") else "",
        f"{said['percentage']:g} %" if isinstance(said.get("percentage"), int | float) else "",
        str(said["message"]) if said.get("message") else "",
    ]
    told = ", ".join(part for part in parts if part)
    return f" Last progress: {told}." if told else ""


def obstacles(facts: Facts, job: Job) -> list[Reason]:
    """What keeps a job in its queue, also one that has to wait for something else first."""
    found = [*queue_paused(facts, job), *not_installed(facts, job)]
    if not facts.live_workers(job.queue_id):
        return [*found, no_worker(facts, job)]
    return [*found, *(workers_busy(facts, job) if job.status == JobStatus.QUEUED else [])]


def queue_paused(facts: Facts, job: Job) -> list[Reason]:
    """Nothing is handed out from its queue."""
    queue = facts.queues.get(job.queue_id)
    if queue is None or queue.paused_at is None:
        return []
    by = actors.name_of_owner(queue.paused_by)
    why = f": {queue.pause_reason}" if queue.pause_reason else ""
    message = sentence(f"The queue {queue.name} was paused{f' by {by}' if by else ''}{why}")
    holder = Holder("queue", queue.name)
    how = f"`devos queue resume {queue.name}`."
    return [Reason("QUEUE_PAUSED", message, job.id, holder, queue.paused_at, queue.paused_until, OPERATOR, how)]


def not_installed(facts: Facts, job: Job) -> list[Reason]:
    """No plugin brings its action, here or where it was tried last."""
    error = job.error if isinstance(job.error, dict) else {}
    if facts.is_installed(job.action_id) and error.get("code") != "ACTION_NOT_REGISTERED":
        return []
    message = f"No plugin that is loaded brings the action {job.action_id}: a worker that takes the job cannot run it."
    how = "Install or repair the plugin and restart the workers; `devos doctor` names plugins that fail to load."
    return [Reason("ACTION_NOT_INSTALLED", message, job.id, Holder("action", job.action_id), None, None, HOST, how)]


def no_worker(facts: Facts, job: Job) -> Reason:
    """Nobody serves its queue."""
    message = f"No living worker serves the queue {job.queue_id}."
    how = "Start one (`make up`, or a Celery worker with `-Q`); `devos worker list --gone` shows those that ended."
    since = facts.last_seen(job.queue_id)
    return Reason("NO_WORKER", message, job.id, Holder("queue", job.queue_id), since, None, HOST, how)


def workers_busy(facts: Facts, job: Job) -> list[Reason]:
    """Every process of every worker of its queue runs something."""
    living = facts.live_workers(job.queue_id)
    if any(worker["running"] < worker["concurrency"] for worker in living):
        return []
    ahead = facts.ahead(job)
    before = f"{AHEAD_MAX:,} or more" if ahead >= AHEAD_MAX else f"{ahead:,}"
    processes = sum(worker["concurrency"] for worker in living)
    message = f"All {processes} processes that serve {job.queue_id} are busy; {before} jobs come before this one."
    how = f"`devos task priority {facts.task.public_id} 50` lets it pass others; more processes make the queue shorter."
    holder = Holder("queue", job.queue_id)
    return [Reason("WORKERS_BUSY", message, job.id, holder, job.available_at, None, OPERATOR, how)]


def nobody_took_it(facts: Facts, job: Job) -> Reason:
    """A worker is free: the bell is on its way, or was lost and is rung again."""
    holder = Holder("queue", job.queue_id)
    if facts.live_workers(SYSTEM):
        message = "A worker is free and takes it as soon as it hears the bell; a lost bell is rung again each second."
        return Reason("BELL", message, job.id, holder, job.available_at)
    message = "A worker is free, but none runs the sweeps that ring again when a bell was lost."
    how = "Start the worker of the queue `system` and the clock (`make up`)."
    return Reason("NO_SYSTEM_WORKER", message, job.id, holder, job.available_at, None, HOST, how)
