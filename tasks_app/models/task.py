"""The work somebody asked for."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q

from tasks_app.domain import clock
from tasks_app.domain.states import TaskStatus
from tasks_app.models.base import Row, created_at_field, sound
from tasks_app.models.organization import Organization, Project

TASK_CHECK_EVERY = timedelta(hours=1)


def next_check() -> datetime:
    return clock.now() + TASK_CHECK_EVERY


class Task(Row):
    """``status`` is derived from the jobs, which own an unfinished task; at ``check_at`` a sweep looks after it."""

    noun = "task"
    type = models.CharField(max_length=200)
    name = models.CharField(max_length=300, blank=True, default="")
    description = models.TextField(blank=True, default="")
    status = models.CharField(max_length=16, choices=[(s, s) for s in TaskStatus], default=TaskStatus.QUEUED)
    priority = models.SmallIntegerField(default=0)
    # No constraint in the database: each insert would lock the organisation's row, all of them the same one.
    organization = models.ForeignKey(
        Organization, models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    project = models.ForeignKey(Project, models.PROTECT, null=True, blank=True, related_name="tasks", db_index=False)
    resource_type = models.CharField(max_length=200, null=True, blank=True)
    resource_id = models.CharField(max_length=300, null=True, blank=True)
    input = models.JSONField(default=dict)
    output = models.JSONField(null=True, blank=True)
    error = models.JSONField(null=True, blank=True)
    created_by_type = models.CharField(max_length=16)
    created_by_id = models.CharField(max_length=64)
    parent_task = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="children", db_index=False
    )
    replay_of = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, related_name="replays", db_index=False
    )
    correlation_id = models.CharField(max_length=128)
    request_id = models.CharField(max_length=64, blank=True, default="")
    created_at = created_at_field()
    started_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)
    check_at = models.DateTimeField(default=next_check)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_by = models.CharField(max_length=96, blank=True, default="")
    cancel_reason = models.CharField(max_length=500, blank=True, default="")
    paused_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "tasks"
        indexes = [
            models.Index(fields=["organization", "-id"], name="tasks_list"),
            models.Index(
                fields=["organization", "status", "-id"],
                condition=~Q(status=TaskStatus.COMPLETED),
                name="tasks_by_status",
            ),
            models.Index(fields=["parent_task", "id"], condition=Q(parent_task__isnull=False), name="tasks_children"),
            models.Index(fields=["project", "-id"], condition=Q(project__isnull=False), name="tasks_of_project"),
            models.Index(fields=["replay_of"], condition=Q(replay_of__isnull=False), name="tasks_replays"),
            models.Index(fields=["correlation_id"], name="tasks_correlation"),
        ]
        constraints = [sound("tasks", "status", "priority", "completed_at")]
