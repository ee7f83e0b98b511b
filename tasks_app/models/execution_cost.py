"""What executions cost."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce

from tasks_app.domain.costs import DECIMALS, NAME_MAX
from tasks_app.models.base import Row


class ExecutionCost(Row):
    """Money, credits or tokens an attempt has spent, whether it succeeded or not.

    An account book: it names task, job and execution without pointing at their rows, so that it outlives them, and
    carries project, action and day itself, so that sums need no other table.
    """

    noun = "cost"
    organization_id = models.UUIDField()
    project_id = models.UUIDField(null=True)
    action_id = models.CharField(max_length=200)
    task_id = models.UUIDField(null=True)
    job_id = models.UUIDField(null=True)
    execution_id = models.UUIDField()
    provider = models.CharField(max_length=NAME_MAX)
    model = models.CharField(max_length=NAME_MAX, blank=True, default="")
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    credits = models.DecimalField(max_digits=28, decimal_places=DECIMALS, default=0)
    amount = models.DecimalField(max_digits=28, decimal_places=DECIMALS, default=0)
    currency = models.CharField(max_length=3, blank=True, default="")
    key = models.CharField(max_length=NAME_MAX, null=True)
    day = models.DateField()
    created_at = models.DateTimeField()

    class Meta:
        db_table = "execution_costs"
        indexes = [
            # Sums are read from this index alone.
            models.Index(
                fields=["organization_id", "day", "project_id", "action_id"],
                include=["currency", "amount", "credits", "input_tokens", "output_tokens"],
                name="execution_costs_sums",
            ),
            models.Index(fields=["execution_id"], name="execution_costs_of_execution"),
        ]
        constraints = [
            models.UniqueConstraint(
                Coalesce("job_id", "execution_id"),
                "key",
                condition=Q(key__isnull=False),
                name="execution_costs_once_per_key",
            ),
            models.CheckConstraint(
                condition=Q(input_tokens__gte=0, output_tokens__gte=0, credits__gte=0, amount__gte=0),
                name="execution_costs_not_negative",
            ),
        ]
