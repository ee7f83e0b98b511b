"""Processes that run jobs."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from tasks_app.models.base import Row, created_at_field


class Worker(Row):
    """One start of a worker's parent process: the id is new each time, so an old owner can never be mistaken for it."""

    noun = "worker"
    hostname = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    queues = ArrayField(models.CharField(max_length=63))
    concurrency = models.PositiveIntegerField()
    started_at = created_at_field()
    last_seen_at = models.DateTimeField(db_index=True)
    stopped_at = models.DateTimeField(null=True, blank=True)
    restarted_processes = models.PositiveIntegerField(default=0)
    rss_mb = models.FloatField(null=True, blank=True)

    class Meta:
        db_table = "workers"

    def __str__(self) -> str:
        return f"{self.hostname} (pid {self.pid})"
