"""The Celery app: transport of bells and ticks. It holds no jobs and stores no results."""

from __future__ import annotations

import os

from celery import Celery
from kombu import Exchange, Queue

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "devos.settings")

import django
from django.apps import apps
from django.conf import settings

if not apps.ready:  # the worker's and the clock's command import this module before anything has set Django up
    django.setup()

from tasks_app.domain.queues import QUEUES

_bench_prefetch = os.environ.get("DEVOS_BENCH_PREFETCH")
app = Celery("devos")
app.conf.update(
    broker_url=settings.REDIS_URL,
    # Redis may be away: nobody waits long for it, and workers come back by themselves.
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={
        "socket_connect_timeout": 2,
        "socket_timeout": 5,
        "socket_keepalive": True,
        "visibility_timeout": 3600,
        "max_retries": 0,
    },
    task_ignore_result=True,
    task_acks_late=False,  # a bell heard is a bell done; the jobs are in PostgreSQL
    task_serializer="json",
    accept_content=["json"],
    task_default_queue="default",
    task_queues=[Queue(name, Exchange("devos", type="direct"), routing_key=name) for name in QUEUES],
    task_create_missing_queues=True,
    # A bell must not lie in a busy worker while another one is idle. `devos bench` compares with Celery's own way.
    worker_prefetch_multiplier=int(_bench_prefetch or 1),
    worker_disable_prefetch=not _bench_prefetch,
    # A killed process counts as busy for this long (10 s by default): two kills would make a small pool deaf.
    worker_lost_wait=0.5,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    worker_send_task_events=False,
    enable_utc=True,
    timezone="UTC",
    CELERY_DB_REUSE_MAX=10**9,  # keep database connections between bells; the work loop looks after broken ones
)
app.autodiscover_tasks(["tasks_app"])


@app.on_after_finalize.connect
def _add_steps(sender: Celery, **kwargs: object) -> None:
    from tasks_app.runtime.worker_steps import KeeperStep

    sender.steps["worker"].add(KeeperStep)
