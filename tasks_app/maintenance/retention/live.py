"""Which tasks belong to something that is not over."""

from __future__ import annotations

_IS_LIVE = "status in ('draft', 'queued', 'running', 'waiting', 'paused')"

# ``kept``: every member of every tree in which a task is not over.
ALL = f"""
with recursive up as (
  select id, parent_task_id from tasks where {_IS_LIVE}
  union
  select t.id, t.parent_task_id from up join tasks t on t.id = up.parent_task_id),
kept as (
  select id from up where parent_task_id is null
  union
  select t.id from kept join tasks t on t.parent_task_id = kept.id)
"""


def among(tasks: str) -> str:
    """``kept``: those of the tasks that the query ``tasks`` gives (as ``id``) in whose tree a task is not over."""
    return f"""
with recursive up as (
  select m.id as task, t.id, t.parent_task_id from ({tasks}) m join tasks t on t.id = m.id
  union
  select up.task, t.id, t.parent_task_id from up join tasks t on t.id = up.parent_task_id),
tree as (
  select id as root, id from up where parent_task_id is null
  union
  select tree.root, t.id from tree join tasks t on t.parent_task_id = tree.id),
kept as (
  select up.task as id from up
  where up.id in (select tree.root from tree join tasks t on t.id = tree.id where {_IS_LIVE}))
"""
