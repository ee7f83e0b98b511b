"""What exists after migrate: the default organisation, the queues, beat's ticks. Repeating it changes nothing."""

from __future__ import annotations

from django.conf import settings

from tasks_app.domain.queues import QUEUES
from tasks_app.models import Organization, Queue

DEFAULT_ORGANIZATION = "default"
# name -> (Celery task, seconds). A tick that nobody took in time is worthless: the next one asks the same.
_TICKS = {
    "devos.probe": lambda: settings.DEVOS.probe_every_s,
    "devos.retention": lambda: settings.DEVOS.retention_every_s,
    "devos.hourly": lambda: 3600.0,
}


def ensure_defaults() -> None:
    """Create what is missing."""
    Organization.objects.get_or_create(slug=DEFAULT_ORGANIZATION, defaults={"name": "Default"})
    for name, description in QUEUES.items():
        Queue.objects.get_or_create(name=name, defaults={"description": description})


def ensure_ticks() -> None:
    """Create or update beat's entries by name, so that a deploy never doubles one."""
    from django_celery_beat.models import IntervalSchedule, PeriodicTask

    for name, seconds in _TICKS.items():
        interval, _ = IntervalSchedule.objects.get_or_create(every=max(1, round(seconds())), period="seconds")
        PeriodicTask.objects.update_or_create(
            name=name,
            defaults={
                "task": name,
                "interval": interval,
                "queue": "system",
                "expire_seconds": max(2, round(seconds())),
                "description": "A tick of the platform. Do not disable: nothing would be rescued or readied.",
            },
        )
