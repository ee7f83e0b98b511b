"""Costs and the numbers of a project as the API shows them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime

from pydantic import Field

from tasks_app.api.represent.common import Out
from tasks_app.domain.states import TaskStatus
from tasks_app.queries import costs
from tasks_app.queries.costs import Group, Sum
from tasks_app.queries.project_dashboard import Numbers


class AmountOut(Out):
    currency: str = Field(description="ISO 4217.")
    amount: str = Field(description="An exact decimal.")


class CostOut(Out):
    """What was spent, also by attempts that failed."""

    amounts: list[AmountOut] = Field(description="One for each currency; they are not converted.")
    credits: str = Field(description="An exact decimal.")
    input_tokens: int
    output_tokens: int
    entries: int = Field(description="How often a cost was recorded.")


class CostGroupOut(Out):
    day: date | None = Field(description="Set when days are summed. UTC.")
    project: str | None = Field(description="Set when projects are summed; null for work outside of projects.")
    action: str | None = Field(description="Set when actions are summed.")
    cost: CostOut


class CostList(Out):
    results: list[CostGroupOut]
    next: str | None


class ProjectDashboardOut(Out):
    project: str
    first_day: date
    last_day: date
    running: int
    queued: int
    waiting: int = Field(description="For time, a retry, a lock, a slot, a person; and what is paused.")
    completed: int
    failed: int
    cancelled: int
    exact_from: datetime | None = Field(
        description="Set when there were too many tasks to count: only those made from then on are."
    )
    execution_ms: float = Field(description="Time spent in attempts of the tasks that are counted.")
    cost: CostOut


def cost_out(found: Sum) -> CostOut:
    return CostOut(
        amounts=[AmountOut(currency=currency, amount=f"{amount:f}") for currency, amount in found.amounts.items()],
        credits=f"{found.credits:f}",
        input_tokens=found.input_tokens,
        output_tokens=found.output_tokens,
        entries=found.entries,
    )


def cost_group_out(by: str) -> Callable[[Group], CostGroupOut]:
    """What shows a group of the sums by ``by``."""

    def shown(group: Group) -> CostGroupOut:
        return CostGroupOut(
            day=date.fromisoformat(group.key) if by == "day" else None,
            project=costs.project_key(group) if by == "project" else None,
            action=group.key if by == "action" else None,
            cost=cost_out(group.sum),
        )

    return shown


def project_dashboard_out(numbers: Numbers) -> ProjectDashboardOut:
    tasks = numbers.tasks
    return ProjectDashboardOut(
        project=numbers.project.public_id,
        first_day=numbers.since,
        last_day=numbers.until,
        running=tasks[TaskStatus.RUNNING],
        queued=tasks[TaskStatus.QUEUED],
        waiting=tasks[TaskStatus.WAITING] + tasks[TaskStatus.PAUSED],
        completed=tasks[TaskStatus.COMPLETED],
        failed=tasks[TaskStatus.FAILED],
        cancelled=tasks[TaskStatus.CANCELLED],
        exact_from=numbers.exact_from,
        execution_ms=numbers.execution_ms,
        cost=cost_out(numbers.cost),
    )
