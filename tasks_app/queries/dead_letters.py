"""Reading dead letters: the list and their groups."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.db.models import F, Q, QuerySet
from pydantic import BaseModel, ConfigDict, Field, field_validator

from tasks_app.domain import ids, jsonsafe
from tasks_app.domain.errors import InvalidInput, NotFound
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import DeadLetterStatus
from tasks_app.models import DeadLetterJob, Job
from tasks_app.queries import jobs, tasks
from tasks_app.queries.dashboard import read_rows
from tasks_app.queries.fields import Instant, ShortText, made_between, status_is_one_of, without_heavy
from tasks_app.queries.paging import Count, ListQuery, NewestFirst, Page, read_cursor, write_cursor

# Nobody needs to tell a group of 10,000 from one of 12,000; counting them all would read every row.
GROUP_COUNT_MAX = 10_000
FINGERPRINT = "[0-9a-f]{64}"
_GROUP_TAG = "dead_letter_group.fingerprint.up"


class DeadLetterCriteria(BaseModel):
    """Which dead letters are meant: by the list, by a count, and by a bulk."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    status: list[DeadLetterStatus] = Field([], max_length=5, description="One or more, repeated or with commas.")
    action: ShortText | None = Field(None, description="The action id, or a prefix of it with a star: `seo.*`.")
    code: str | None = Field(None, min_length=1, max_length=64, description="The error's code.")
    fingerprint: str | None = Field(None, pattern=f"^{FINGERPRINT}$", description="Of one group.")
    task: ShortText | None = Field(None, description="Of the jobs of this task.")
    job: ShortText | None = Field(None, description="Of this job.")
    created_after: Instant | None = Field(None, description="Given up at this instant or later.")
    created_before: Instant | None = Field(None, description="Given up before this instant.")

    @field_validator("action", "code", "task", "job")
    @classmethod
    def _storable(cls, text: str | None) -> str | None:
        # A query string is checked at the door; the filter of a bulk comes as JSON.
        if text is not None and (problem := jsonsafe.text_problem(text)):
            raise ValueError(problem)
        return text

    def narrow(self, principal: Principal) -> QuerySet[DeadLetterJob]:
        principal.require("dead_letters.read")
        mine = {"organization_id": principal.organization_id}
        found = DeadLetterJob.objects.filter(made_between(self.created_after, self.created_before), **mine)
        if self.status:
            found = found.filter(status_is_one_of("status", self.status))
        if self.action is not None and not self.action.endswith("*"):
            found = found.filter(action_id=self.action)
        if self.code is not None:
            found = found.filter(code=self.code)
        if self.fingerprint is not None:
            found = found.filter(fingerprint=self.fingerprint)
        if self.job is not None:
            found = found.filter(job_id=jobs.named(principal, self.job))
        if self.task is not None:
            task_id = ids.from_text("task", self.task)
            tasks.exists(principal, task_id)
            found = found.filter(job_id__in=Job.objects.filter(task_id=task_id).values("id"))
        return found

    def sieve(self) -> Q:
        prefixed = self.action is not None and self.action.endswith("*")
        return tasks.pattern("action_id", self.action) if prefixed and self.action else Q()


class DeadLetterFilter(DeadLetterCriteria, NewestFirst):
    """The list, and what `ListQuery` makes of the criteria: the count and the rows of a bulk."""

    noun: ClassVar[str] = "dead_letter"


class GroupFilter(ListQuery):
    """Groups in the order of their fingerprints."""

    noun: ClassVar[str] = "dead_letter_group"

    status: DeadLetterStatus = Field(DeadLetterStatus.OPEN, description="Of the letters that are counted.")
    action: ShortText | None = Field(None, description="The action id, or a prefix of it with a star: `seo.*`.")


@dataclass(frozen=True)
class Group:
    """Dead letters of one cause. ``sample`` is the newest of them."""

    fingerprint: str
    action_id: str
    code: str | None
    count: Count
    first_seen_at: datetime
    last_seen_at: datetime
    sample_id: UUID
    error: Any


# From one fingerprint to the next through the index, so that the cost is that of the groups, not of the letters.
_GROUPS = """
with recursive g as (
  (select fingerprint, 1 as place from dead_letter_jobs
   where organization_id = %(org)s and status = %(status)s and fingerprint > %(after)s order by fingerprint limit 1)
  union all
  select following.fingerprint, place + 1 from g cross join lateral (
    select d.fingerprint from dead_letter_jobs d
    where d.organization_id = %(org)s and d.status = %(status)s and d.fingerprint > g.fingerprint
    order by d.fingerprint limit 1) following
  where place < %(limit)s)
select g.fingerprint, last.action_id, last.code, counted.number, first.created_at as first_seen_at,
  last.created_at as last_seen_at, last.id as sample_id, last.error
from g
cross join lateral (
  select count(*) as number from (
    select 1 from dead_letter_jobs d where d.organization_id = %(org)s and d.status = %(status)s
      and d.fingerprint = g.fingerprint limit %(most)s) x) counted
cross join lateral (
  select created_at from dead_letter_jobs d where d.organization_id = %(org)s and d.status = %(status)s
    and d.fingerprint = g.fingerprint order by d.id limit 1) first
cross join lateral (
  select id, created_at, action_id, code, error - 'traceback' as error from dead_letter_jobs d
  where d.organization_id = %(org)s and d.status = %(status)s and d.fingerprint = g.fingerprint
  order by d.id desc limit 1) last
order by g.fingerprint
"""


def page(principal: Principal, query: DeadLetterFilter) -> Page[DeadLetterJob]:
    """A page of dead letters, each with ``task_id``; large errors are left out."""
    return query.page(without_heavy(_with_task(query.narrow(principal)), "error"))


def get(principal: Principal, letter_id: UUID) -> DeadLetterJob:
    """One dead letter with ``task_id``. Raises `NotFound`."""
    principal.require("dead_letters.read")
    mine = DeadLetterJob.objects.filter(organization_id=principal.organization_id, id=letter_id)
    found = _with_task(mine).first()
    if found is None:
        raise NotFound("dead_letter", letter_id)
    return found


def groups(principal: Principal, query: GroupFilter) -> Page[Group]:
    """A page of groups. With an action a page may hold fewer than asked, while ``next`` is set."""
    principal.require("dead_letters.read")
    parameters = {
        "org": principal.organization_id,
        "status": str(query.status),
        "after": "" if query.cursor is None else _fingerprint_in(query.cursor),
        "limit": query.limit + 1,
        "most": GROUP_COUNT_MAX + 1,
    }
    rows = read_rows(_GROUPS, parameters)
    more = write_cursor(_GROUP_TAG, rows[query.limit - 1]["fingerprint"]) if len(rows) > query.limit else None
    found = [_group(row) for row in rows[: query.limit]]
    return Page([group for group in found if _is_of(group, query.action)], more)


def _with_task(letters: QuerySet[DeadLetterJob]) -> QuerySet[DeadLetterJob]:
    return letters.annotate(task_id=F("job__task_id"))


def _fingerprint_in(cursor: str) -> str:
    after = str(read_cursor(_GROUP_TAG, cursor))
    if not re.fullmatch(FINGERPRINT, after):
        raise InvalidInput("cursor: is not a cursor of this list", [{"field": "cursor", "problem": "unknown"}])
    return after


def _group(row: dict[str, Any]) -> Group:
    number = row.pop("number")
    return Group(count=Count(min(number, GROUP_COUNT_MAX), number <= GROUP_COUNT_MAX), **row)


def _is_of(group: Group, action: str | None) -> bool:
    if action is None:
        return True
    return group.action_id.startswith(action[:-1]) if action.endswith("*") else group.action_id == action
