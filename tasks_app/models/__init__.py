"""The tables of the runtime: the public door of this room."""

from tasks_app.models.api_key import ApiKey
from tasks_app.models.approval import Approval
from tasks_app.models.audit import AuditEntry
from tasks_app.models.dead_letter import DeadLetterJob, DeadLetterResult
from tasks_app.models.event import Event
from tasks_app.models.execution import Execution
from tasks_app.models.execution_cost import ExecutionCost
from tasks_app.models.idempotency_key import IdempotencyKey
from tasks_app.models.job import Job
from tasks_app.models.job_step import JobStep
from tasks_app.models.lease import Lease
from tasks_app.models.log import ExecutionLog, TaskLog
from tasks_app.models.organization import Membership, Organization, Project
from tasks_app.models.queue import Queue
from tasks_app.models.resource import Resource
from tasks_app.models.retention_mark import RetentionMark
from tasks_app.models.task import Task
from tasks_app.models.worker import Worker

__all__ = [
    "ApiKey",
    "Approval",
    "AuditEntry",
    "DeadLetterJob",
    "DeadLetterResult",
    "Event",
    "Execution",
    "ExecutionCost",
    "ExecutionLog",
    "IdempotencyKey",
    "Job",
    "JobStep",
    "Lease",
    "Membership",
    "Organization",
    "Project",
    "Queue",
    "Resource",
    "RetentionMark",
    "Task",
    "TaskLog",
    "Worker",
]
