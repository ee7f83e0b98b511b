"""Tasks that are over and old, as whole trees: a tree with one member that has to stay stays whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import CASCADE, SET_NULL, Model

from tasks_app.maintenance.retention.cutoffs import EXPIRED, Cutoffs
from tasks_app.maintenance.retention.walks import Batch
from tasks_app.models import Task
from tasks_app.services import sql

_NEXT = "select id from tasks where id > %(place)s and id < %(bound)s order by id limit %(limit)s"
NO_UUID = str(UUID(int=0))

# Members of the trees whose root is among the ids and in which everything is expired, deepest first.
_TREES = f"""
with recursive tree as (
  select t.id as root, t.id, 0 as depth from tasks t
  where t.id = any(%(ids)s) and t.parent_task_id is null and {EXPIRED}
  union all
  select tree.root, t.id, depth + 1 from tree join tasks t on t.parent_task_id = tree.id),
kept as (
  select tree.root from tree join tasks t on t.id = tree.id where not {EXPIRED}
  union
  select tree.root from tree join jobs j on j.task_id = tree.id where j.completed_at is null
  union
  -- A failure is kept as such, also when it was made good later; one that waits for a decision has no age.
  select tree.root from tree join jobs j on j.task_id = tree.id join dead_letter_jobs d on d.job_id = j.id
  where d.status = 'open' or d.created_at >= %(failed)s
  union
  -- What was replayed is needed for as long as its replay.
  select tree.root from tree join tasks r on r.replay_of_id = tree.id
  where not exists (select 1 from tree own where own.root = tree.root and own.id = r.id))
select root, id from tree where root not in (select root from kept) order by depth desc, id
"""

_WITH_THEM = """
select count(*), coalesce(sum((select count(*) from executions e where e.job_id = j.id)), 0)::bigint
from jobs j where j.task_id = any(%(ids)s)
"""

# The order everybody keeps: jobs before tasks, ids ascending. Whoever holds one of them is about to change it.
_LOCK_JOBS = "select task_id from jobs where task_id = any(%(ids)s) order by id for update skip locked"
_COUNT_JOBS = "select task_id from jobs where task_id = any(%(ids)s)"
_LOCK_TASKS = f"select t.id from tasks t where t.id = any(%(ids)s) and {EXPIRED} order by t.id for update skip locked"


@dataclass(frozen=True)
class Due:
    """``members``: (root, task) of trees that may go; ``place`` and ``last`` of the rows that were looked at."""

    members: list[tuple[UUID, UUID]]
    place: str
    last: bool


def due(place: str, cutoffs: Cutoffs) -> Due:
    """The trees that may go among the next tasks."""
    limit = settings.DEVOS.retention_batch
    parameters = {**cutoffs.parameters, "place": place or NO_UUID, "limit": limit}
    ids = [row[0] for row in sql.run(_NEXT, parameters, sql.RUNTIME)]
    members = sql.run(_TREES, {**cutoffs.parameters, "ids": ids}, sql.RUNTIME) if ids else []
    return Due([(root, task) for root, task in members], str(ids[-1]) if ids else place, len(ids) < limit)


def count(cutoffs: Cutoffs) -> dict[str, int]:
    """How many tasks are due, and the jobs and executions that go with them, counted a batch at a time."""
    found, place, last = Counter({"tasks": 0, "jobs": 0, "executions": 0}), "", False
    while not last:
        some = due(place, cutoffs)
        ids = [task for _, task in some.members]
        [(jobs, executions)] = sql.run(_WITH_THEM, {"ids": ids}, sql.RUNTIME)
        found.update(tasks=len(ids), jobs=jobs, executions=executions)
        place, last = some.place, some.last
    return dict(found)


def batch(place: str, cutoffs: Cutoffs) -> Batch:
    """Delete the trees that are due among the next tasks; a tree larger than a batch goes leaves first."""
    found = due(place, cutoffs)
    chosen = list(_chosen(found.members, settings.DEVOS.retention_batch))
    tasks = _locked(chosen, cutoffs)
    if tasks:
        delete(Task, "id", tasks)
    whole = len(chosen) == len(found.members)
    return Batch(len(tasks), found.place if whole else place, found.last and whole)


def _chosen(members: Sequence[tuple[UUID, UUID]], most: int) -> Iterator[tuple[UUID, UUID]]:
    """Whole trees up to ``most`` members; of a first one that is larger its deepest members."""
    sizes, taken, roots = Counter(root for root, _ in members), 0, set()
    for root, size in sizes.items():
        if not taken or taken + size <= most:
            roots.add(root)
            taken += size
    left = most
    for root, task in members:
        if root in roots and left:
            left -= 1
            yield root, task


def _locked(members: Sequence[tuple[UUID, UUID]], cutoffs: Cutoffs) -> list[UUID]:
    """Take hold of the members; trees of which somebody else holds one, or has changed one, are left alone."""
    parameters = {**cutoffs.parameters, "ids": [task for _, task in members]}
    held = Counter(row[0] for row in sql.run(_LOCK_JOBS, parameters, sql.RUNTIME))
    jobs = Counter(row[0] for row in sql.run(_COUNT_JOBS, parameters, sql.RUNTIME))
    tasks = {row[0] for row in sql.run(_LOCK_TASKS, parameters, sql.RUNTIME)}
    left = {root for root, task in members if task not in tasks or held[task] != jobs[task]}
    return [task for root, task in members if root not in left]


def delete(model: type[Model], column: str, values: Sequence[Any]) -> None:
    """Delete rows of ``model`` by a column, after the rows of other tables that go with them."""
    key, table = model._meta.pk.column, model._meta.db_table  # type: ignore[union-attr]
    relations = [one for one in model._meta.related_objects if one.related_model is not model]
    if relations:
        which = f'select "{key}" from "{table}" where "{column}" = any(%(ids)s)'
        keys = [row[0] for row in sql.run(which, {"ids": list(values)}, sql.RUNTIME)]
        for relation in relations:
            pointing, name = relation.related_model, str(relation.field.column)
            if relation.on_delete is CASCADE:
                delete(pointing, name, keys)
            elif relation.on_delete is SET_NULL:
                forget = f'update "{pointing._meta.db_table}" set "{name}" = null where "{name}" = any(%(ids)s)'
                sql.run(forget, {"ids": keys}, sql.RUNTIME)
    sql.run(f'delete from "{table}" where "{column}" = any(%(ids)s)', {"ids": list(values)}, sql.RUNTIME)
