"""The names of actors, for people."""

from __future__ import annotations

from django.contrib.auth import get_user_model

from tasks_app.queries import cached

NAME_KEPT_S = 60


def name_of(actor_type: str, actor_id: str) -> str:
    """A user's name; for every other actor its type and id."""
    if actor_type != "user":
        return f"{actor_type} {actor_id}".strip()
    if not (actor_id.isascii() and actor_id.isdecimal() and len(actor_id) < 10):
        return f"user {actor_id}"
    return cached.get_or_make(f"user-name-{actor_id}", NAME_KEPT_S, lambda: _username(actor_id))


def name_of_owner(text: str) -> str:
    """The same for ``user:5``, as services write who did something."""
    kind, _, value = text.partition(":")
    return name_of(kind, value) if value else text


def _username(user_id: str) -> str:
    found = get_user_model().objects.filter(pk=user_id).only("username").first()
    return found.get_username() if found else f"user {user_id}"
