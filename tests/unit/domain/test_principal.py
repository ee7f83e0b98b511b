"""One policy: roles, scopes, danger."""

import pytest

from tasks_app.domain.errors import PermissionDenied
from tasks_app.domain.ids import new_id
from tasks_app.domain.principal import Actor, Principal


def who(role, *scopes):
    return Principal(Actor("user", "1"), new_id(), role, scopes)


@pytest.mark.parametrize(
    ("role", "permission", "dangerous", "allowed"),
    [
        ("viewer", "tasks.read", False, True),
        ("viewer", "tasks.write", False, False),
        ("viewer", "seo.scan", False, False),
        ("operator", "seo.scan", False, True),
        ("operator", "shell.run", True, False),
        ("operator", "queues.pause", False, True),
        ("operator", "api_keys.write", False, False),
        ("operator", "audit.read", False, False),
        ("admin", "audit.read", False, True),
        ("admin", "shell.run", True, True),
    ],
)
def test_roles(role, permission, dangerous, allowed):
    assert who(role).may(permission, dangerous=dangerous) is allowed


def test_scopes_narrow_and_never_widen():
    narrow = who("operator", "seo.*", "tasks.read")
    assert narrow.may("seo.scan") and narrow.may("tasks.read")
    assert not narrow.may("net.http")
    assert not who("viewer", "seo.*").may("seo.scan")


def test_a_refusal_says_what_is_needed():
    with pytest.raises(PermissionDenied, match="seo.scan.*viewer"):
        who("viewer").require("seo.scan")
