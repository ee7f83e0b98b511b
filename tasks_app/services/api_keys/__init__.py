"""Keys of programs: made, checked, revoked."""

from tasks_app.services.api_keys.authenticate import authenticate
from tasks_app.services.api_keys.create import create
from tasks_app.services.api_keys.revoke import revoke

__all__ = ["authenticate", "create", "revoke"]
