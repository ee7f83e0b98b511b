"""Why a job may not be taken from its queue yet: one small function for each word that ``blocked_by.reason`` may be."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from django.utils.dateparse import parse_datetime

from tasks_app.domain import ids
from tasks_app.domain.states import JOB_FINAL
from tasks_app.models import Job
from tasks_app.queries.explain.facts import CHILDREN_MAX, SYSTEM, Facts, blocked, key_of
from tasks_app.queries.explain.reason import HOST, NOBODY, OPERATOR, Holder, Reason, sentence

Wait = Callable[[Facts, Job], list[Reason]]


def waits(facts: Facts, job: Job) -> list[Reason]:
    """What a pending or retrying job waits for."""
    return WAITS.get(str(blocked(job).get("reason")), _unknown)(facts, job)


def _until(job: Job) -> datetime | None:
    """Until when, as the job says it; else when it is looked at again."""
    return _instant(job, "until") or job.available_at


def _since(job: Job) -> datetime:
    return _instant(job, "since") or job.created_at


def _instant(job: Job, name: str) -> datetime | None:
    text = blocked(job).get(name)
    try:
        return parse_datetime(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _text(job: Job, *names: str) -> str:
    """The first of these parts of ``blocked_by`` that is there."""
    return next((str(blocked(job)[name]) for name in names if blocked(job).get(name) not in (None, "")), "")


def _ended_at(facts: Facts, job: Job) -> datetime | None:
    execution = facts.execution(job)
    return execution.completed_at if execution else None


def _when_due(facts: Facts, job: Job, code: str, message: str, since: datetime | None, how: str) -> list[Reason]:
    """A wait that time ends; when the time has come a sweep ends it, if there is one."""
    if job.available_at > facts.now:
        return [Reason(code, message, job.id, None, since, job.available_at, NOBODY, how)]
    if facts.live_workers(SYSTEM):
        message = "Its time has come; it is queued within a second or two."
        return [Reason("DUE", message, job.id, None, job.available_at)]
    return [
        Reason(
            "NO_SYSTEM_WORKER",
            "Its time has come, but no worker runs the sweeps that would queue it.",
            job.id,
            Holder("queue", SYSTEM),
            facts.last_seen(SYSTEM) or job.available_at,
            None,
            HOST,
            "Start the worker of the queue `system` and the clock (`make up`; `devos doctor` says what is missing).",
        )
    ]


def _time(facts: Facts, job: Job) -> list[Reason]:
    how = "Cancel it and submit it without a delay to have it now."
    return _when_due(facts, job, "TIME", "It was asked to start later.", job.created_at, how)


def _sleep(facts: Facts, job: Job) -> list[Reason]:
    return _when_due(facts, job, "TIME", "It sleeps.", _since(job), "Only time helps, or a cancel.")


def _retry(facts: Facts, job: Job) -> list[Reason]:
    error = job.error if isinstance(job.error, dict) else {}
    code = _text(job, "code") or str(error.get("code", "an error"))
    said = f" ({str(error['message'])[:300]})" if error.get("message") else ""
    message = f"Attempt {job.counted_attempts} of {job.max_attempts} failed with {code}{said} and is tried again."
    how = "Replay the task to try at once, or cancel it to give up."
    return _when_due(facts, job, "RETRY", message, _ended_at(facts, job), how)


def _handed_back(facts: Facts, job: Job) -> list[Reason]:
    message = "The worker that ran it was shut down and gave it back; this costs no attempt."
    return _when_due(facts, job, "HANDED_BACK", message, _ended_at(facts, job), "")


def _interrupted(facts: Facts, job: Job) -> list[Reason]:
    message = f"The process that ran it died ({job.interruptions} so far); it runs again, and this costs no attempt."
    return _when_due(facts, job, "INTERRUPTED", message, _ended_at(facts, job), "")


def _held(code: str, what: str) -> Wait:
    """A lock or slots: one reason for each holder."""

    def wait(facts: Facts, job: Job) -> list[Reason]:
        key, found = key_of(job), []
        for lease, other in facts.holders(job):
            if other is None or other.organization_id != job.organization_id:
                holder, free = Holder("lease", key, "another's job"), ""
            else:
                name = ids.to_text("job", other.id)
                holder = Holder("job", name, f"{other.action_id} of {ids.to_text('task', other.task_id)}")
                free = f" `devos job cancel {name}` ends it now."
            message = f"{what} {key!r} is held by {holder.name}, which renews its lease while it runs."
            how = f"It is free when that job ends.{free}"
            by = OPERATOR if free else NOBODY
            found.append(Reason(code, message, job.id, holder, lease.taken_at, lease.expires_at, by, how))
        if found:
            return found
        message = f"It waits for {what.lower()} {key!r}, which nobody holds any more: it is queued with the next look."
        return [Reason(code, message, job.id, Holder("lease", key), _since(job), _until(job))]

    return wait


def _rate(facts: Facts, job: Job) -> list[Reason]:
    rate = _text(job, "rate")
    message = f"{job.action_id} has been started as often as its rate{f' of {rate}' if rate else ''} allows."
    return [Reason("RATE", message, job.id, Holder("action", job.action_id), _since(job), _until(job))]


def _dependency(facts: Facts, job: Job) -> list[Reason]:
    found = []
    for job_id in job.after:
        other = facts.others.get(job_id)
        if other is not None and other.status in JOB_FINAL:
            continue
        name = ids.to_text("job", job_id)
        what = f"{other.action_id}, which is {other.status}" if other else "a job that is not there any more"
        found.append(
            Reason(
                "DEPENDENCY",
                f"It comes after {what}.",
                job.id,
                Holder("job", name, other.action_id if other else ""),
                other.started_at if other and other.started_at else job.created_at,
                None,
                OPERATOR if other else HOST,
                f"`devos job show {name}` says how far that one is; cancelling it ends what depends on it.",
            )
        )
    message = "What it comes after has ended; it is queued with the next look."
    return found or [Reason("DEPENDENCY", message, job.id, None, _since(job), _until(job))]


def _paused(facts: Facts, job: Job) -> list[Reason]:
    # Said once for the whole task (`answer.paused`); a job that is paused alone says it here.
    if facts.task.status == "paused" or facts.paused_ancestors:
        return []
    since = job.pause_requested_at or _since(job)
    how = f"`devos task resume {facts.task.public_id}`."
    return [Reason("PAUSED", "It is paused.", job.id, None, since, _instant(job, "until"), OPERATOR, how)]


def _event(facts: Facts, job: Job) -> list[Reason]:
    event = _text(job, "event", "type", "name")
    key = _text(job, "key")
    message = sentence(f"It waits for the event {event or 'it asked for'}{f' with the key {key}' if key else ''}")
    how = "Whoever makes it happen publishes it; cancel the task to give up."
    return [Reason("EVENT", message, job.id, Holder("event", event), _since(job), _until(job), NOBODY, how)]


def _approval(facts: Facts, job: Job) -> list[Reason]:
    approval = _text(job, "approval", "id")
    asked = _text(job, "title", "message", "name")
    message = sentence(f"It waits for a person to decide{f': {asked}' if asked else ''}")
    holder = Holder("approval", approval, asked)
    how = "Approve or reject it in the inbox of approvals."
    return [Reason("APPROVAL", message, job.id, holder, _since(job), _until(job), OPERATOR, how)]


def _children(facts: Facts, job: Job) -> list[Reason]:
    found = []
    for place, child in enumerate(facts.children[:CHILDREN_MAX], start=1):
        more = " There are more." if place == CHILDREN_MAX < len(facts.children) else ""
        name = child.name or child.type
        how = f"`devos task explain {child.public_id}` says why that one is not over."
        message = f"It waits for its child {name}, which is {child.status}.{more}"
        holder = Holder("task", child.public_id, name)
        found.append(Reason("CHILDREN", message, job.id, holder, child.created_at, None, OPERATOR, how))
    message = "Its children have ended; it goes on with the next look."
    return found or [Reason("CHILDREN", message, job.id, None, _since(job), _until(job))]


def _unknown(facts: Facts, job: Job) -> list[Reason]:
    word = _text(job, "reason") or "something it does not name"
    return [Reason("WAITING", f"It waits: {word.replace('_', ' ')}.", job.id, None, _since(job), _until(job))]


WAITS: dict[str, Wait] = {
    "time": _time,
    "sleep": _sleep,
    "retry": _retry,
    "handed_back": _handed_back,
    "interrupted": _interrupted,
    "lock": _held("LOCK", "The lock"),
    "slot": _held("SLOT", "A slot of"),
    "rate": _rate,
    "dependency": _dependency,
    "paused": _paused,
    "event": _event,
    "approval": _approval,
    "children": _children,
}
