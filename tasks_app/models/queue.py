"""The queues jobs wait in."""

from __future__ import annotations

from django.db import models

from tasks_app.models.base import created_at_field


class Queue(models.Model):
    """A paused queue hands out nothing until somebody resumes it or ``paused_until`` has passed."""

    name = models.SlugField(max_length=63, primary_key=True)
    description = models.CharField(max_length=300, blank=True, default="")
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_by = models.CharField(max_length=96, blank=True, default="")
    pause_reason = models.CharField(max_length=500, blank=True, default="")
    paused_until = models.DateTimeField(null=True, blank=True)
    created_at = created_at_field()

    class Meta:
        db_table = "queues"

    def __str__(self) -> str:
        return self.name
