"""From what was asked to the rows that submit writes: everything is checked here, nothing is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.conf import settings

from tasks_app.actions import registry
from tasks_app.actions.definition import ActionDefinition
from tasks_app.domain import clock, ids, jsonsafe
from tasks_app.domain.errors import Conflict, InvalidInput
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import TaskStatus
from tasks_app.models import Project, Queue, Task
from tasks_app.services import secrets
from tasks_app.services.tasks.spec import TaskSpec


@dataclass
class Lookups:
    """What one submit has looked up already, so that a bulk of thousands asks the database once for each name."""

    principal: Principal
    projects: dict[str, UUID] = field(default_factory=dict)
    parents: dict[str, UUID] = field(default_factory=dict)
    allowed: set[str] = field(default_factory=set)

    def project(self, name: str) -> UUID:
        """The id of a project of the caller's organisation, by TypeID or slug."""
        if name not in self.projects:
            mine = Project.objects.filter(organization_id=self.principal.organization_id)
            by_id = name.startswith(f"{ids.PREFIXES['project']}_")
            found = mine.filter(**({"id": ids.from_text("project", name)} if by_id else {"slug": name}))
            value = found.values_list("id", flat=True).first()
            if value is None:
                raise InvalidInput(f"There is no project {name!r} here.", [{"field": "project", "problem": "unknown"}])
            self.projects[name] = value
        return self.projects[name]

    def parent(self, text: str) -> UUID:
        """The id of a task of the caller's organisation that nobody has cancelled; locked until the transaction ends,
        so that a cancel sees what is put below it, or is seen."""
        if text not in self.parents:
            mine = Task.objects.filter(id=ids.from_text("task", text), organization_id=self.principal.organization_id)
            parent = mine.select_for_update(no_key=True).only("status", "cancel_requested_at").first()
            if parent is None:
                raise InvalidInput(f"There is no task {text!r} here.", [{"field": "parent_task", "problem": "unknown"}])
            if parent.cancel_requested_at or parent.status == TaskStatus.CANCELLED:
                problem = "is cancelled; nothing can be put below it"
                raise Conflict(f"parent_task: {text} {problem}.", [{"field": "parent_task", "problem": problem}])
            self.parents[text] = parent.id
        return self.parents[text]

    def permit(self, action: ActionDefinition) -> None:
        """Raise unless the caller may run the action."""
        if action.id not in self.allowed:
            self.principal.require("tasks.write")
            self.principal.require(action.permission, dangerous=action.dangerous)
            self.allowed.add(action.id)


@lru_cache(maxsize=256)
def _known_queue(name: str) -> bool:
    # Queues are never deleted while in use, so a positive answer stays true; a negative one is not cached.
    if not Queue.objects.filter(name=name).exists():
        raise InvalidInput(f"There is no queue {name!r}.", [{"field": "queue", "problem": "unknown"}])
    return True


def checked_input(action: ActionDefinition, value: Any) -> Any:
    """The input as it will be stored. Raises `InvalidInput` or `PayloadTooLarge`."""
    knobs = settings.DEVOS
    jsonsafe.check(value, field="input", bytes_max=knobs.input_bytes_max, depth_max=knobs.json_depth_max)
    parsed = action.parse_input(value)
    return secrets.seal(parsed, value) if secrets.has_secrets(action.input_model) else value


def row(lookups: Lookups, spec: TaskSpec, replay_of: UUID | None = None) -> dict[str, Any]:
    """One row for the submit statement."""
    action = registry.get(spec.type)
    lookups.permit(action)
    if spec.mode not in action.modes:
        raise InvalidInput(
            f"{action.id} does not run in mode {spec.mode}.", [{"field": "mode", "problem": "not offered"}]
        )
    queue = spec.queue or action.queue
    _known_queue(queue)
    task_id = ids.new_id()
    principal = lookups.principal
    return {
        "task": task_id,
        "job": ids.new_id(),
        "type": action.id,
        "name": spec.name or action.title,
        "description": spec.description,
        "priority": spec.priority,
        "queue": queue,
        "project": lookups.project(spec.project) if spec.project else None,
        "resource_type": spec.resource.type if spec.resource else None,
        "resource_id": spec.resource.id if spec.resource else None,
        "delay_s": spec.seconds_from(clock.now()),
        "run_at": spec.run_at.isoformat() if spec.run_at else None,
        "parent": lookups.parent(spec.parent_task) if spec.parent_task else None,
        "replay_of": replay_of,
        "max_attempts": spec.max_attempts or action.retry.max_attempts,
        "correlation_id": spec.correlation_id or principal.correlation_id or ids.to_text("task", task_id),
        "input": checked_input(action, spec.input),
    }
