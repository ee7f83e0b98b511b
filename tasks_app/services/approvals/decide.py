"""Approve and reject: the first decision wins, and the job that waits for it goes on."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from tasks_app.domain import clock, ids, jsonsafe
from tasks_app.domain.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from tasks_app.domain.principal import ROLES, Principal
from tasks_app.domain.waits import ApprovalState, StepState
from tasks_app.models import Approval, JobStep, Task
from tasks_app.services import audit, events, sql
from tasks_app.services.tasks.submit import owner_of
from tasks_app.services.waits import wake

COMMENT_MAX = 500


def approve(principal: Principal, approval_id: UUID, comment: str = "") -> Approval:
    """Let the work go on. See `reject` for what is raised."""
    return _decide(principal, approval_id, ApprovalState.APPROVED, comment)


def reject(principal: Principal, approval_id: UUID, comment: str = "") -> Approval:
    """Say no; the action learns of it and decides what that means.

    Raises `NotFound`, `PermissionDenied`, `InvalidInput` for the comment, and `Conflict` when it is decided or over.
    """
    return _decide(principal, approval_id, ApprovalState.REJECTED, comment)


def _decide(principal: Principal, approval_id: UUID, decision: ApprovalState, comment: str) -> Approval:
    problem = jsonsafe.text_problem(comment)
    if problem or len(comment) > COMMENT_MAX:
        problem = problem or f"must be at most {COMMENT_MAX} characters"
        raise InvalidInput(f"comment: {problem}", [{"field": "comment", "problem": problem}])
    return sql.again_on_conflict(lambda: _write(principal, approval_id, decision, comment))


@transaction.atomic
def _write(principal: Principal, approval_id: UUID, decision: ApprovalState, comment: str) -> Approval:
    row = Approval.objects.filter(id=approval_id, organization_id=principal.organization_id).first()
    if row is None:
        raise NotFound("approval", ids.to_text("approval", approval_id))
    _permit(principal, row)
    # The wait before the approval: the order of everybody who ends both.
    step = JobStep.objects.select_for_update().filter(id=row.step_id or 0).first()
    row = Approval.objects.select_for_update().get(id=row.id)
    if step is None or step.state != StepState.OPEN or row.status != ApprovalState.OPEN:
        raise Conflict(_why_closed(row))
    if row.expires_at <= clock.now():
        raise Conflict(f"This approval expired at {row.expires_at.isoformat()}: the work goes on without it.")
    row.status, row.decided_by, row.decided_at, row.comment = decision, owner_of(principal), clock.now(), comment
    row.save(update_fields=["status", "decided_by", "decided_at", "comment"])
    answer = {
        "approved": decision is ApprovalState.APPROVED,
        "by": row.decided_by,
        "comment": comment,
        "at": row.decided_at.isoformat(),
    }
    JobStep.objects.filter(id=step.id, state=StepState.OPEN).update(
        state=StepState.DONE, output=answer, resolved_at=row.decided_at, check_at=row.decided_at
    )
    _say(principal, row, comment)
    wake.after_commit(lambda: wake.wake([row.job_id]))
    return row


def _permit(principal: Principal, row: Approval) -> None:
    principal.require(row.permission)
    if ROLES.index(principal.role) < ROLES.index(row.role):
        raise PermissionDenied(f"This needs the decision of an {row.role}; your role is {principal.role}.")


def _why_closed(row: Approval) -> str:
    if row.status in (ApprovalState.APPROVED, ApprovalState.REJECTED):
        return f"This was {row.status} already, by {row.decided_by}."
    if row.status == ApprovalState.OPEN:
        return "Nobody waits for this decision any more."
    return f"This approval is {row.status}: nobody waits for it any more."


def _say(principal: Principal, row: Approval, comment: str) -> None:
    after = {"status": row.status, "title": row.title, "task": ids.to_text("task", row.task_id)}
    audit.record(
        principal,
        f"approval.{'approve' if row.status == ApprovalState.APPROVED else 'reject'}",
        "approval",
        row.public_id,
        reason=comment,
        before={"status": ApprovalState.OPEN},
        after=after,
    )
    events.publish(
        f"approval.{row.status}",
        organization_id=row.organization_id,
        actor=principal.actor,
        correlation_id=Task.objects.values_list("correlation_id", flat=True).get(id=row.task_id),
        data={"title": row.title, "comment": comment},
        resource=("approval", row.public_id),
        causation_id=row.task_id,
        task_id=row.task_id,
        job_id=row.job_id,
        metadata={"request_id": principal.request_id},
    )
