"""Who may do what, and that nobody sees what belongs to others."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from tasks_app.domain.principal import Actor, Principal
from tasks_app.models import ApiKey, AuditEntry, Membership, Organization, Project, Task
from tasks_app.services import api_keys
from tests.api.client import Api, refused
from tests.api.rows import World, make_task

pytestmark = pytest.mark.django_db

READS = [
    "me", "actions", "actions/core.echo", "tasks", "tasks/{task}", "tasks/{task}/jobs", "tasks/{task}/executions",
    "tasks/{task}/logs", "tasks/{task}/events", "tasks/{task}/children", "tasks/{task}/stream",
    "tasks/{task}/explain", "jobs", "jobs/{job}",
    "executions", "executions/{execution}", "executions/{execution}/logs", "queues", "queues/default", "workers",
    "projects", "projects/{project}", "projects/{project}/dashboard", "costs", "events", "events/{event}", "approvals",
    "schema", "docs",
    "dead-letters", "dead-letters/groups", "dead-letters/{letter}", "dead-letters/bulk/{task}/results",
]  # fmt: skip
ADMIN_READS = ["keys", "audit"]
OPERATOR_WRITES: list[tuple[str, str, Any]] = [
    ("POST", "tasks", {"type": "core.echo", "input": {"value": 1}}),
    ("POST", "tasks/bulk", {"tasks": [{"type": "core.echo"}]}),
    ("POST", "actions/core.echo", {"input": {"value": 1}}),
    ("POST", "tasks/{task}/cancel", {}),
    ("POST", "tasks/{task}/retry", {}),
    ("POST", "tasks/{task}/replay", {}),
    ("POST", "tasks/{task}/priority", {"priority": 5}),
    ("POST", "jobs/{job}/cancel", {}),
    ("POST", "jobs/{job}/retry", {}),
    ("POST", "dead-letters/bulk", {"verb": "retry", "filter": {}, "dry_run": True}),
    ("POST", "dead-letters/bulk", {"verb": "discard", "filter": {}, "reason": "tests"}),
    ("POST", "dead-letters/{letter}/retry", {}),
    ("POST", "dead-letters/{letter}/replay", {}),
    ("POST", "dead-letters/{letter}/discard", {"reason": "tests"}),
    ("POST", "dead-letters/{letter}/cancel", {}),
    ("POST", "events", {"type": "tests.happened"}),
    ("POST", "queues/low/pause", {"reason": "tests"}),
    ("POST", "queues/low/resume", {}),
]
ADMIN_WRITES: list[tuple[str, str, Any]] = [
    ("POST", "projects", {"slug": "new"}),
    ("PATCH", "projects/{project}", {"name": "Renamed"}),
    ("POST", "keys", {"name": "new"}),
    ("DELETE", "keys/{key}", None),
    ("POST", "actions/tests.dangerous", {}),
]
EVERY = [("GET", path, None) for path in READS + ADMIN_READS] + OPERATOR_WRITES + ADMIN_WRITES


def filled(path: str, world: World) -> str:
    names = ("task", "job", "execution", "event", "project", "key", "letter")
    return path.format(**{name: getattr(world, name).public_id for name in names})


def status_of(response: Any) -> int:
    if getattr(response, "streaming", False):
        response.getvalue()
    return int(response.status_code)


@pytest.mark.parametrize(("method", "path", "body"), EVERY)
def test_nobody_without_a_key(world: World, method: str, path: str, body: Any) -> None:
    counted = Task.objects.count()
    response = Api().call(method, filled(path, world), body)
    refused(response, 401, "NOT_AUTHENTICATED")
    assert response.headers["WWW-Authenticate"]
    assert Task.objects.count() == counted


def test_the_matrix_of_roles(caller: Callable[..., Api], world: World) -> None:
    """Viewer reads, operator runs and decides, admin configures. 409 is a yes: the caller was let in."""
    for role, ranks in (("viewer", 0), ("operator", 1), ("admin", 2)):
        api = caller(role)
        for needed, calls in (
            (0, [("GET", path, None) for path in READS]),
            (1, OPERATOR_WRITES),
            (2, [("GET", path, None) for path in ADMIN_READS]),
            (2, ADMIN_WRITES),
        ):
            for method, path, body in calls:
                response = api.call(method, filled(path, world), body)
                allowed = ranks >= needed
                said = f"{role} {method} {path}: {response.status_code}"
                assert (status_of(response) in (200, 201, 202, 409)) is allowed, said
                if not allowed:
                    refused(response, 403, "PERMISSION_DENIED")
        ApiKey.objects.filter(id=world.key.id).update(revoked_at=None)
        Project.objects.filter(slug="new").delete()


@pytest.mark.parametrize(("method", "path", "body"), [call for call in EVERY if "{" in call[1]])
def test_what_belongs_to_others_is_not_there(stranger: Api, world: World, method: str, path: str, body: Any) -> None:
    refused(stranger.call(method, filled(path, world), body), 404, "NOT_FOUND")
    assert Task.objects.get(id=world.task.id).priority == 0
    assert ApiKey.objects.get(id=world.key.id).revoked_at is None


def test_filters_cannot_look_into_others(stranger: Api, world: World) -> None:
    for path, name, row in (
        ("tasks", "project", world.project), ("tasks", "parent", world.task), ("jobs", "task", world.task),
        ("executions", "task", world.task), ("executions", "job", world.job), ("events", "task", world.task),
        ("events", "job", world.job), ("events", "execution", world.execution),
        ("dead-letters", "task", world.task), ("dead-letters", "job", world.job),
    ):  # fmt: skip
        refused(stranger.get(path, **{name: row.public_id}), 404)
    refused(stranger.get("tasks", project="site"), 404)


def test_lists_show_only_ones_own(stranger: Api, world: World) -> None:
    for path in ("tasks", "jobs", "executions", "events", "projects", "audit", "dead-letters"):
        shown = [row["id"] for row in stranger.get(path).json()["results"]]
        assert not any(
            getattr(world, name).public_id in shown for name in ("task", "job", "execution", "project", "letter")
        )
    assert stranger.get("dead-letters/groups").json()["results"] == []
    assert len(stranger.get("keys").json()["results"]) == 1
    assert stranger.get("queues/default").json()["depth"] == 0


def test_a_task_cannot_be_put_into_the_place_of_others(stranger: Api, world: World) -> None:
    before = Task.objects.count()
    for field, row in (("project", world.project), ("parent_task", world.task)):
        refused(stranger.post("tasks", {"type": "core.echo", field: row.public_id}), range(400, 405))
    assert Task.objects.count() == before


def test_a_scope_narrows_a_key(caller: Callable[..., Api], world: World) -> None:
    reader = caller("admin", scopes=["tasks.read"])
    assert reader.get("tasks").status_code == 200
    refused(reader.get("queues"), 403)
    refused(reader.post("tasks", {"type": "core.echo"}), 403)
    runner = caller("operator", scopes=["tasks.*", "core.*"])
    assert runner.post("tasks", {"type": "core.echo"}).status_code == 201
    refused(runner.post("tasks", {"type": "tests.login", "input": {"user": "a", "password": "b"}}), 403)


def test_expired_revoked_and_made_up_keys(organization: Organization) -> None:
    system = Principal(Actor("system", "tests"), organization.id, "admin")
    row, key = api_keys.create(system, "k", expires_at=timezone.now() + timedelta(days=1))
    assert Api(key).get("me").status_code == 200

    ApiKey.objects.filter(id=row.id).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert "expired" in refused(Api(key).get("me"), 401)["message"]
    ApiKey.objects.filter(id=row.id).update(expires_at=None, revoked_at=timezone.now())
    assert "revoked" in refused(Api(key).get("me"), 401)["message"]
    ApiKey.objects.filter(id=row.id).update(revoked_at=None)
    for wrong in (key[:-1] + ("a" if key[-1] != "a" else "b"), key.upper(), "x", key + "x", "é", "devos_a_b"):
        refused(Api(wrong).get("me"), 401)
    headers = {"Authorization": f"Bearer {key}"}
    refused(Api().get("me", headers=headers), 401)


def test_the_use_of_a_key_is_noted_once_a_minute(operator: Api, organization: Organization) -> None:
    operator.get("me")
    row = ApiKey.objects.get(organization=organization)
    first = row.last_used_at
    assert first is not None
    operator.get("me")
    row.refresh_from_db()
    assert row.last_used_at == first
    ApiKey.objects.update(last_used_at=first - timedelta(minutes=2))
    operator.get("me")
    row.refresh_from_db()
    assert row.last_used_at is not None and row.last_used_at >= first


def test_keys_are_made_shown_once_and_revoked(admin: Api, organization: Organization) -> None:
    body = admin.post("keys", {"name": "ci", "role": "operator", "scopes": ["tasks.*"]}).json()
    key = body.pop("key")
    assert body["active"] is True and body["role"] == "operator" and key.startswith(f"devos_{body['prefix']}_")
    assert Api(key).get("me").json()["scopes"] == ["tasks.*"]
    assert key not in str(admin.get("keys").content)
    assert ApiKey.objects.filter(key_hash=key).count() == 0

    assert admin.delete(f"keys/{body['id']}").json()["active"] is False
    refused(Api(key).get("me"), 401)
    assert admin.delete(f"keys/{body['id']}").status_code == 200
    verbs = AuditEntry.objects.filter(object_id=body["id"]).values_list("verb", flat=True)
    assert sorted(verbs) == ["api_key.create", "api_key.revoke"]
    assert key not in str(list(AuditEntry.objects.values()))


def test_a_key_cannot_make_one_that_can_do_more(caller: Callable[..., Api]) -> None:
    limited = caller("admin", scopes=["api_keys.*", "tasks.*"])
    refused(limited.post("keys", {"name": "all"}), 403)
    refused(limited.post("keys", {"name": "more", "scopes": ["*"]}), 403)
    refused(limited.post("keys", {"name": "more", "scopes": ["tasks.read", "queues.read"]}), 403)
    assert limited.post("keys", {"name": "less", "scopes": ["tasks.read"]}).status_code == 201


@pytest.mark.parametrize(
    "body",
    [
        {}, {"name": ""}, {"name": "a", "role": "root"}, {"name": "a", "scopes": ["TASKS"]}, {"name": "a\u0000"},
        {"name": "a", "scopes": "tasks.*"}, {"name": "a", "expires_at": "2020-01-01T00:00:00Z"},
        {"name": "a", "expires_at": "2030-01-01"}, {"name": "a", "extra": 1}, {"name": "a", "scopes": ["[a-z]*"]},
        {"name": "a" * 201}, {"name": ["a"]},
    ],
)  # fmt: skip
def test_bad_keys(admin: Api, body: Any) -> None:
    before = ApiKey.objects.count()
    refused(admin.post("keys", body), 400, "INVALID_INPUT")
    assert ApiKey.objects.count() == before


def signed_in(username: str, organization: Organization | None, role: str = "viewer", **options: Any) -> Api:
    user = get_user_model().objects.create_user(username, password="secret", **options)
    if organization is not None:
        Membership.objects.create(user=user, organization=organization, role=role)
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return Api(client=client)


def test_sessions(organization: Organization, other_organization: Organization, world: World) -> None:
    member = signed_in("member", organization, "operator")
    body = member.get("me").json()
    assert (body["role"], body["actor"]["type"], body["organization"]["slug"]) == ("operator", "user", "default")
    assert signed_in("boss", None, is_superuser=True).get("me").json()["role"] == "admin"
    refused(signed_in("nobody", None).get("me"), 403)
    refused(signed_in("gone", organization, is_active=False).get("me"), 401)
    outsider = signed_in("outsider", other_organization, "admin")
    refused(outsider.get(f"tasks/{world.task.public_id}"), 404)


def test_sessions_need_a_csrf_token(organization: Organization) -> None:
    user = get_user_model().objects.create_superuser("boss", password="secret")
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.force_login(user)
    refused(Api(client=client).post("tasks", {"type": "core.echo"}), 403)
    assert Task.objects.count() == 0


def test_a_caller_in_this_process(organization: Organization, world: World) -> None:
    principal = Principal(Actor("user", "1"), organization.id, "viewer")
    client = Client(**{"devos.principal": principal})
    assert Api(client=client).get("me").json()["role"] == "viewer"
    forged = Client(headers={"devos.principal": "admin"})
    refused(Api(client=forged).get("me"), 401)
    refused(Api(client=Client(**{"devos.principal": "admin"})).get("me"), 401)


def test_the_audit_says_who_and_from_where(operator: Api, admin: Api, organization: Organization) -> None:
    task = make_task(organization, status="queued")
    done = operator.post(f"tasks/{task.public_id}/cancel", {"reason": "not needed"}, X_Request_Id="r-1")
    assert done.json()["status"] == "cancelled" and done.json()["cancel_reason"] == "not needed"
    found = admin.get("audit", object_type="task", object_id=task.public_id).json()["results"]
    assert [(row["verb"], row["reason"], row["request_id"]) for row in found] == [("task.cancel", "not needed", "r-1")]
    assert found[0]["actor"]["type"] == "api_key" and found[0]["address"] == "127.0.0.1"


def test_too_many_requests(operator: Api, viewer: Api, settings: Any) -> None:
    settings.DEVOS = settings.DEVOS.model_copy(update={"api_rate": "3/min"})
    answers = [operator.get("me") for _ in range(6)]
    body = refused(answers[-1], 429, "THROTTLED")
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60
    assert body["details"]["retry_after_s"] >= 1
    assert viewer.get("me").status_code == 200
