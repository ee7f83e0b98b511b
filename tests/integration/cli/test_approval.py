"""`devos approval` beside its database."""

from __future__ import annotations

import pytest

from tasks_app.models import Approval, Organization
from tests.api.test_approvals import ask
from tests.integration.cli.conftest import Run

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "runtime"])


def test_an_approval_is_listed_shown_and_decided_once(run: Run) -> None:
    organization = Organization.objects.get(slug="default")
    asked, other = ask(organization), ask(organization)
    assert [row["id"] for row in run("approval", "list", "--json").json] == [other.public_id, asked.public_id]
    assert "Deploy?" in run("approval", "list", "--status", "open").out
    assert '"version": 3' in run("approval", "show", asked.public_id).out
    assert run("approval", "approve", asked.public_id, "--comment", "fine").out.strip() == f"{asked.public_id} approved"
    assert run("approval", "reject", asked.public_id).code == 2
    assert run("approval", "reject", other.public_id, "--json").json["status"] == "rejected"
    assert Approval.objects.get(id=asked.id).comment == "fine"
    assert run("approval", "show", "appr_nothing").code != 0
