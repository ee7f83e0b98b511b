"""Who may look at what, and what every answer of the desk carries."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from devos.conf import Conf
from tasks_app.admin.middleware import POLICY, parse_rate
from tasks_app.models import ApiKey, AuditEntry, Membership, Organization, Project
from tests.api.rows import make_task

LISTS = [
    "task",
    "job",
    "execution",
    "deadletterjob",
    "queue",
    "worker",
    "event",
    "project",
    "apikey",
    "organization",
    "membership",
]


def test_strangers_are_sent_to_the_login(organization: Organization, person: Callable[..., User]) -> None:
    for client in (Client(), Client()):
        answer = client.get("/admin/tasks_app/task/")
        assert answer.status_code == 302
        assert "/admin/login/" in answer.headers["Location"]
    member = Client()
    member.force_login(person("admin", staff=False))
    assert member.get("/admin/tasks_app/task/").status_code == 302
    assert member.get("/admin/live/").status_code == 302


def test_staff_without_a_membership_see_an_explanation_and_nothing_else(desk: Callable[..., Client]) -> None:
    client = desk(None)
    assert "You belong to no organisation yet" in client.get("/admin/").text
    assert client.get("/admin/live/").status_code == 403
    for noun in LISTS:
        assert client.get(f"/admin/tasks_app/{noun}/").status_code == 403, noun


def test_each_sees_their_organisation_and_a_superuser_sees_all(
    organization: Organization, other_organization: Organization, desk: Callable[..., Client], root: Client
) -> None:
    mine, theirs = make_task(organization), make_task(other_organization)

    def seen(client: Client, query: str = "") -> set[str]:
        rows = client.get(f"/admin/tasks_app/task/{query}").context["cl"].result_list
        return {str(row.pk) for row in rows}

    assert seen(desk("viewer")) == {str(mine.pk)}
    assert seen(desk("viewer", other_organization)) == {str(theirs.pk)}
    assert seen(root) == {str(mine.pk), str(theirs.pk)}
    assert seen(root, f"?organization={other_organization.public_id}") == {str(theirs.pk)}
    assert seen(root, f"?organization={other_organization.public_id}&status=completed") == {str(theirs.pk)}


def test_only_admins_read_the_audit(organization: Organization, desk: Callable[..., Client]) -> None:
    AuditEntry.objects.create(
        organization_id=organization.id, actor_type="user", actor_id="1", verb="x.y", object_type="task", object_id="t"
    )
    assert desk("admin").get("/admin/tasks_app/auditentry/").status_code == 200
    for role in ("viewer", "operator"):
        client = desk(role)
        assert client.get("/admin/tasks_app/auditentry/").status_code == 403
        assert "/admin/tasks_app/auditentry/" not in client.get("/admin/").text


def test_users_and_the_clock_are_for_superusers(desk: Callable[..., Client], root: Client) -> None:
    addresses = ["/admin/auth/user/", "/admin/auth/group/", "/admin/django_celery_beat/periodictask/"]
    for url in addresses:
        assert desk("admin").get(url).status_code == 403
        assert root.get(url).status_code == 200
        assert root.get(url + "add/").status_code == 200


def test_an_api_key_is_shown_once_and_revoked(organization: Organization, desk: Callable[..., Client]) -> None:
    client = desk("admin")
    made = client.post("/admin/tasks_app/apikey/add/", {"name": "CI", "role": "operator", "scopes": "tasks.*"})
    assert made.status_code == 200
    secret = re.search(r'id="new-secret">(devos_[^<]+)<', made.text).group(1)
    assert "no-store" in made.headers["Cache-Control"]
    key = ApiKey.objects.get(name="CI")
    assert key.scopes == ["tasks.*"]
    shown = client.get(f"/admin/tasks_app/apikey/{key.pk}/change/").text + client.get("/admin/tasks_app/apikey/").text
    assert secret not in shown
    assert key.key_hash not in shown
    client.post(f"/admin/tasks_app/apikey/{key.pk}/do/revoke/", {"reason": "leaked"})
    key.refresh_from_db()
    assert key.revoked_at is not None
    assert AuditEntry.objects.get(verb="api_key.revoke").reason == "leaked"


def test_api_keys_are_not_for_operators(organization: Organization, desk: Callable[..., Client]) -> None:
    client = desk("operator")
    assert client.get("/admin/tasks_app/apikey/add/").status_code == 403
    assert client.post("/admin/tasks_app/apikey/add/", {"name": "CI", "role": "viewer"}).status_code == 403
    assert not ApiKey.objects.exists()


def test_a_bad_api_key_form_says_what_is_wrong(desk: Callable[..., Client]) -> None:
    answer = desk("admin").post(
        "/admin/tasks_app/apikey/add/", {"name": "CI", "role": "operator", "scopes": "NOT A SCOPE"}
    )
    assert answer.status_code == 400
    assert "is no permission pattern" in answer.text


def test_projects_are_made_and_changed_through_their_service(
    organization: Organization, desk: Callable[..., Client]
) -> None:
    client = desk("admin")
    client.post("/admin/tasks_app/project/add/", {"name": "Shop", "slug": "shop", "description": ""})
    project = Project.objects.get(slug="shop")
    assert AuditEntry.objects.filter(verb="project.create", object_id=project.public_id).exists()
    again = client.post(
        "/admin/tasks_app/project/add/", {"name": "Shop", "slug": "shop", "description": ""}, follow=True
    )
    assert "There is a project" in again.text
    client.post(f"/admin/tasks_app/project/{project.pk}/change/", {"name": "Store", "slug": "shop", "description": "x"})
    project.refresh_from_db()
    assert project.name == "Store"
    assert desk("operator").get("/admin/tasks_app/project/add/").status_code == 403


def test_memberships_are_audited_and_stay_inside_the_organisation(
    organization: Organization,
    other_organization: Organization,
    desk: Callable[..., Client],
    person: Callable[..., User],
) -> None:
    newcomer = person(None)
    client = desk("admin")
    form = {"organization": str(organization.pk), "user": str(newcomer.pk), "role": "viewer"}
    assert client.post("/admin/tasks_app/membership/add/", form).status_code == 302
    assert AuditEntry.objects.filter(verb="membership.create").count() == 1
    foreign = client.post("/admin/tasks_app/membership/add/", {**form, "organization": str(other_organization.pk)})
    assert foreign.status_code == 200
    assert not Membership.objects.filter(organization=other_organization).exists()
    assert desk("operator").get("/admin/tasks_app/membership/add/").status_code == 403


PAGES = [
    "/admin/",
    "/admin/tasks_app/task/",
    "/admin/tasks_app/apikey/add/",
    "/admin/tasks_app/queue/default/change/",
    "/admin/tasks_app/queue/default/do/pause/",
    "/admin/auth/user/add/",
    "/admin/django_celery_beat/periodictask/add/",
    "/admin/django_celery_beat/periodictask/",
    "/admin/password_change/",
    "/admin/tasks_app/project/add/",
]


@pytest.mark.parametrize("url", PAGES)
def test_no_inline_script_and_nothing_from_elsewhere(url: str, root: Client, organization: Organization) -> None:
    answer = root.get(url)
    assert answer.status_code == 200
    assert answer.headers["Content-Security-Policy"] == POLICY
    assert "'unsafe-inline'" not in POLICY.split("script-src")[1].split(";")[0]
    for tag in re.findall(r"<script\b[^>]*>", answer.text):
        assert "src=" in tag or "application/json" in tag, tag
    assert not re.search(r"\son(click|load|change|submit|error)=", answer.text)
    for found in re.findall(r"""(?:src|href)=["'](https?://[^"']+)""", answer.text):
        raise AssertionError(found)


def test_the_login_is_throttled_by_address(db: None, settings: object, person: Callable[..., User]) -> None:
    settings.DEVOS = Conf(login_rate="3/min")
    client = Client()
    wrong = {"username": "nobody", "password": "wrong"}
    assert [client.post("/admin/login/", wrong).status_code for _ in range(3)] == [200, 200, 200]
    refused = client.post("/admin/login/", wrong)
    assert refused.status_code == 429
    assert refused.headers["Retry-After"] == "60"
    assert "Too many attempts" in refused.text
    assert client.get("/admin/login/").status_code == 200
    assert Client(REMOTE_ADDR="10.9.8.7").post("/admin/login/", wrong).status_code == 200


def test_the_desk_works_without_its_cache(organization: Organization, settings: object, root: Client) -> None:
    make_task(organization)
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://127.0.0.1:1/0"}
    }
    for url in ("/admin/", "/admin/live/", "/admin/tasks_app/task/"):
        assert root.get(url).status_code == 200, url
    wrong = {"username": "nobody", "password": "wrong"}
    assert Client().post("/admin/login/", wrong).status_code == 200


@pytest.mark.parametrize(("rate", "means"), [("20/min", (20, 60)), ("5/h", (5, 3600)), ("1/s", (1, 1))])
def test_rates(rate: str, means: tuple[int, int]) -> None:
    assert parse_rate(rate) == means


def test_a_rate_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="write it like"):
        parse_rate("often")


def test_the_palette_finds_by_id_and_by_text(
    organization: Organization, other_organization: Organization, desk: Callable[..., Client]
) -> None:
    task = make_task(organization, correlation_id="order-9")
    client = desk("viewer")

    def found(term: str, **more: str) -> str:
        return client.get("/admin/search/", {"s": term, "extended": "1", **more}).text

    assert f"/admin/tasks_app/task/{task.pk}/change/" in found(task.public_id)
    assert f"/admin/tasks_app/task/{task.pk}/change/" in found("order-9")
    assert "?q=nothing" in found("nothing")
    assert str(make_task(other_organization).pk) not in found(make_task(other_organization).public_id)
    for term, page in (("x\x00y", "1"), ("x", "abc"), ("x", "9" * 30), ("", "1")):
        assert client.get("/admin/search/", {"s": term, "page": page}).status_code == 200
