"""Actions that only the REST tests need."""

from __future__ import annotations

from pydantic import SecretStr

from tasks_app.sdk import ActionInput, ActionOutput, Context, Plugin, action


class LoginInput(ActionInput):
    user: str
    password: SecretStr
    more: dict[str, SecretStr] = {}


class LoginOutput(ActionOutput):
    length: int


@action("tests.login", title="Log in", permission="tests.run", modes={"sync", "async", "stream"})
def login(ctx: Context, input: LoginInput) -> LoginOutput:
    """Use a secret."""
    return LoginOutput(length=len(input.password.get_secret_value()))


class NothingInput(ActionInput):
    pass


@action("tests.dangerous", title="Dangerous", permission="tests.danger", dangerous=True, modes={"sync", "async"})
def dangerous(ctx: Context, input: NothingInput) -> None:
    """Needs an admin."""


plugin = Plugin(name="tests-api", actions=[login, dangerous])
