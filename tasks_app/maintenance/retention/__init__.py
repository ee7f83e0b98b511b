"""Retention: what is over and old is deleted, and nothing else.

Tasks go as whole trees with their jobs, attempts and dead letters, in batches that are commits of their own; events and
log lines go by month, as partitions. `tick` does a little each minute, `run` all there is, `preview` only counts.
"""

from tasks_app.maintenance.retention.runs import preview, run, tick

__all__ = ["preview", "run", "tick"]
