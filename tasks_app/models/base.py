"""What every table of the runtime shares."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.expressions import RawSQL

from tasks_app.domain import clock, ids


class Row(models.Model):
    """A row with a UUIDv7 key, shown as a TypeID. ``noun`` picks the prefix."""

    noun: ClassVar[str]

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.public_id

    @property
    def public_id(self) -> str:
        """The id as doors show it, like ``task_01h…``."""
        return ids.to_text(self.noun, self.id)


def created_at_field() -> models.DateTimeField:
    return models.DateTimeField(default=clock.now, editable=False)


def rule(sql: str) -> RawSQL:
    """A CHECK in SQL."""
    return RawSQL(sql, (), output_field=models.BooleanField())


def sound(table: str, *columns: str) -> models.CheckConstraint:
    """The rules of a hot table, all in one function (migration 0001), which names the one that is broken.

    PostgreSQL reads the stored form of each CHECK anew in every statement that writes a row: with ten of them that
    costs more than writing it.
    """
    return models.CheckConstraint(condition=rule(f"{table}_are_sound({', '.join(columns)})"), name=f"{table}_sound")


def matches(*statuses: str) -> str:
    """SQL: the status is one of these."""
    return f"status ~ '^({'|'.join(statuses)})$'"


def status_is(*statuses: str) -> models.Q:
    return models.Q(status__in=[str(s) for s in statuses])
