"""How far retention has come in each table."""

from __future__ import annotations

from django.db import models


class RetentionMark(models.Model):
    """``place`` is the last key that was looked at; a walk from the beginning starts again after a day.

    The row is locked by whoever works on its table and moves on in the commit of each batch, so that a second one finds
    it taken, and what a killed one had done is done.
    """

    name = models.CharField(max_length=64, primary_key=True)
    place = models.CharField(max_length=64, blank=True, default="")
    begun_at = models.DateTimeField()

    class Meta:
        db_table = "retention_marks"
