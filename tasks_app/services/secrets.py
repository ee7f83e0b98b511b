"""Secret values of inputs, encrypted at rest. A field is secret when its pydantic type is ``SecretStr``.

In the row a secret is ``{"$secret": "<token>"}``; nothing that reads rows can show it. Only the executor opens it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from pydantic import BaseModel, SecretStr

from tasks_app.domain.errors import ActionError, InvalidInput
from tasks_app.domain.masking import MASK

MARK = "$secret"


@cache
def _cipher() -> MultiFernet:
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(hashlib.sha256(str(key).encode()).digest())) for key in keys])


@lru_cache(maxsize=1_000)
def has_secrets(model: type[BaseModel]) -> bool:
    """Whether inputs of this model may hold secrets: most do not, and need no look at each value."""
    return '"writeOnly": true' in json.dumps(model.model_json_schema())


def seal(parsed: Any, given: Any) -> Any:
    """``given`` (JSON) with every value that ``parsed`` holds as SecretStr replaced by its encrypted form."""
    if isinstance(parsed, SecretStr):
        text = parsed.get_secret_value()
        if text == MASK:
            problem = "This is the mask that is shown instead of a secret, not the secret. Give the secret itself."
            raise InvalidInput(problem, [{"field": "input", "problem": "a masked secret"}])
        return {MARK: _cipher().encrypt(text.encode()).decode()} if text else given
    if isinstance(parsed, BaseModel) and isinstance(given, Mapping):
        names: dict[str, str] = {(field.alias or name): name for name, field in type(parsed).model_fields.items()}
        return {key: seal(getattr(parsed, names.get(key, str(key)), None), value) for key, value in given.items()}
    if isinstance(parsed, Mapping) and isinstance(given, Mapping):
        return {key: seal(parsed.get(key), value) for key, value in given.items()}
    if isinstance(parsed, list | tuple) and isinstance(given, list) and len(parsed) == len(given):
        return [seal(one, other) for one, other in zip(parsed, given, strict=True)]
    return given


def kept(edited: Any, stored: Any) -> Any:
    """``edited`` (JSON) with the secrets of ``stored`` where it still shows the mask. Raises what `unseal` raises."""
    if edited == MASK and isinstance(stored, Mapping) and set(stored) == {MARK}:
        return unseal(stored)
    if isinstance(edited, Mapping) and isinstance(stored, Mapping):
        return {key: kept(item, stored.get(key)) for key, item in edited.items()}
    if isinstance(edited, list) and isinstance(stored, list) and len(edited) == len(stored):
        return [kept(item, other) for item, other in zip(edited, stored, strict=True)]
    return edited


def unseal(value: Any) -> Any:
    """The plain input again. Raises `ActionError` SECRET_UNREADABLE when the key has changed since."""
    if isinstance(value, Mapping):
        if set(value) == {MARK}:
            try:
                return _cipher().decrypt(str(value[MARK]).encode()).decode()
            except InvalidToken as error:
                message = "A secret of the input cannot be read: the secret key has changed. Submit the task again."
                raise ActionError("SECRET_UNREADABLE", message, retryable=False) from error
        return {key: unseal(item) for key, item in value.items()}
    return [unseal(item) for item in value] if isinstance(value, list) else value
