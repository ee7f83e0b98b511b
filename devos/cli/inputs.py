"""The input of an action from ``--input key=value``, typed by the action's JSON schema."""

from __future__ import annotations

import difflib
import json
import sys
from pathlib import Path
from typing import Any

from devos.cli.errors import CliError

Schema = dict[str, Any]
TRUE = {"true", "yes", "on"}
FALSE = {"false", "no", "off"}
REF_DEPTH_MAX = 20


def build(pairs: list[str], schema: Schema | None, base: dict[str, Any], action: str) -> dict[str, Any]:
    """``base`` with every ``key=value`` of ``pairs`` put in. Raises `CliError` that names the key and its type.

    A dotted key makes nested objects, ``key=@file`` (``@-``: stdin) reads the value from a file, ``key=@@text`` is the
    text ``@text``, and a list is given as JSON or by giving the key several times. Without a schema (None) values that
    look like JSON are taken as JSON.
    """
    result = dict(base)
    given: set[str] = set()
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise CliError(
                f"--input {pair!r} must be key=value. For a whole object use --input-json '{{...}}' or --input-file."
            )
        _put(result, key.strip(), _text(key, text), schema if schema is not None else {}, action, given)
    return result


def _text(key: str, text: str) -> str:
    if text.startswith("@@"):
        return text[1:]
    if text.startswith("@"):
        return read(text[1:], f"--input {key}")
    return _valid(text, f"--input {key}")


def read(name: str, option: str) -> str:
    """The text of a file (``-``: stdin), as UTF-8."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise CliError(f"{option}: {name or 'an empty file name'} cannot be read: {error.strerror}") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CliError(f"{option}: {name} is not UTF-8 text (byte {error.start}).") from error


def _valid(text: str, option: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise CliError(f"{option}: the value is not valid UTF-8.") from error
    return text


def parse_object(text: str, option: str) -> dict[str, Any]:
    """A JSON object. NaN and Infinity, which JSON does not have, are refused."""
    value = _json(_valid(text, option), option)
    if not isinstance(value, dict):
        raise CliError(f'{option} must be a JSON object like {{"url": "..."}}, not {_name_of(value)}.')
    return value


def _json(text: str, option: str) -> Any:
    def refuse(name: str) -> None:
        raise CliError(f"{option}: {name} is not JSON. Leave it out or write null.")

    try:
        return json.loads(text, parse_constant=refuse)
    except ValueError as error:
        raise CliError(f"{option} is not valid JSON: {error}") from error
    except RecursionError as error:
        raise CliError(f"{option} is nested too deeply.") from error


def _put(target: dict[str, Any], key: str, text: str, root: Schema, action: str, given: set[str]) -> None:
    schema = root
    # A property may have a dot in its own name; only what is no property is taken apart.
    parts = [key] if key in _properties(schema, root) else key.split(".")
    for depth, part in enumerate(parts[:-1]):
        schema = _child(schema, part, root, action, ".".join(parts[: depth + 1]))
        inner = target.setdefault(part, {})
        if not isinstance(inner, dict):
            raise CliError(f"--input {key}: {'.'.join(parts[: depth + 1])} has a value already, so it has no fields.")
        # A copy, so that the caller's base is never changed.
        target[part] = target = dict(inner)
    last = parts[-1]
    schema = _child(schema, last, root, action, key)
    if key in given:
        target[last] = _repeated(target[last], text, schema, root, key)
    else:
        given.add(key)
        target[last] = convert(text, schema, root, key)


def _repeated(before: Any, text: str, schema: Schema, root: Schema, key: str) -> list[Any]:
    if not isinstance(before, list):
        raise CliError(f"--input {key} is given twice, but takes one value.")
    more = convert(text, schema, root, key)
    return [*before, *(more if isinstance(more, list) else [more])]


def _child(schema: Schema, part: str, root: Schema, action: str, path: str) -> Schema:
    """The schema of property ``part``; an unknown one is refused where the schema allows no others."""
    choices = alternatives(schema, root)
    for choice in choices:
        if part in choice.get("properties", {}):
            found: Schema = choice["properties"][part]
            return found
    for choice in choices:
        extra = choice.get("additionalProperties", True)
        if not any(k in choice for k in ("type", "properties")) or (choice.get("type") == "object" and extra):
            return extra if isinstance(extra, dict) else {}
    known = sorted(_properties(schema, root))
    close = difflib.get_close_matches(part, known, 1)
    hint = f" Did you mean {close[0]}?" if close else ""
    takes = f" It takes: {', '.join(known)}." if known else ""
    raise CliError(f"{action} has no input {path!r}.{hint}{takes}", [{"field": f"input.{path}", "problem": "unknown"}])


def _properties(schema: Schema, root: Schema) -> set[str]:
    return {name for choice in alternatives(schema, root) for name in choice.get("properties", {})}


def alternatives(schema: Schema, root: Schema, depth: int = 0) -> list[Schema]:
    """The plain schemas a value may fit: references followed, anyOf, oneOf and allOf taken apart."""
    if depth > REF_DEPTH_MAX:
        return []
    if "$ref" in schema:
        found: Any = root
        for part in schema["$ref"].lstrip("#/").split("/"):
            found = found.get(part, {})
        return alternatives(found, root, depth + 1)
    inner = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if inner:
        return [plain for choice in inner for plain in alternatives(choice, root, depth + 1)]
    if isinstance(schema.get("type"), list):
        return [{**schema, "type": name} for name in schema["type"]]
    return [schema]


def convert(text: str, schema: Schema, root: Schema, key: str) -> Any:
    """``text`` as the first type it fits, narrow ones before strings. Raises `CliError` when it fits none."""
    choices = alternatives(schema, root)
    for choice in choices:
        for value in choice.get("enum", [choice["const"]] if "const" in choice else []):
            if text == (value if isinstance(value, str) else json.dumps(value)):
                return value
    by_type = {choice.get("type", ""): choice for choice in choices}
    for name in ("null", "boolean", "integer", "number", "array", "object"):
        if name in by_type:
            fits, value = _as_type(name, text, by_type[name], root, key)
            if fits:
                return value
    if "string" in by_type or any("enum" in choice for choice in choices):
        return text
    if "" in by_type or not by_type:
        try:
            return _json(text, key)
        except CliError:
            return text
    raise CliError(
        f"--input {key}: {text[:80]!r} is not {_expected(by_type)}.",
        [{"field": f"input.{key}", "problem": f"must be {_expected(by_type)}"}],
    )


def _as_type(name: str, text: str, schema: Schema, root: Schema, key: str) -> tuple[bool, Any]:
    """Whether ``text`` is a value of this type, and the value."""
    word = text.strip().lower()
    if name == "null":
        return word == "null", None
    if name == "boolean":
        return word in TRUE | FALSE, word in TRUE
    if name == "array":
        if text.lstrip().startswith("["):
            return _is_json(text, list)
        # One item: giving the key several times adds up.
        try:
            return True, [convert(text, schema.get("items", {}), root, key)]
        except CliError:
            return False, None
    if name == "object":
        return _is_json(text, dict)
    return _is_number(text, name)


def _no_constants(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _is_number(text: str, name: str) -> tuple[bool, Any]:
    try:
        value = json.loads(text.strip(), parse_constant=_no_constants)
    except (ValueError, RecursionError):
        return False, None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False, None
    if name == "integer" and isinstance(value, float):
        return value.is_integer(), int(value) if value.is_integer() else None
    return True, value


def _is_json(text: str, kind: type) -> tuple[bool, Any]:
    try:
        value = json.loads(text, parse_constant=_no_constants)
    except (ValueError, RecursionError):
        return False, None
    return isinstance(value, kind), value


_SPOKEN = {
    "null": "null",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "array": "a list (JSON like [1, 2])",
    "object": 'an object (JSON like {"a": 1}, or dotted keys)',
    "string": "text",
}


def _expected(by_type: dict[str, Schema]) -> str:
    return " or ".join(_SPOKEN.get(name, name) for name in by_type)


def _name_of(value: Any) -> str:
    names = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "a text", list: "a list"}
    return names.get(type(value), type(value).__name__)


def describe(schema: Schema) -> list[tuple[str, str, str]]:
    """(name, type, description) of each field of an input schema, required ones first, for people."""
    required = set(schema.get("required", []))
    rows = []
    for name, field in sorted(schema.get("properties", {}).items(), key=lambda item: item[0] not in required):
        choices = alternatives(field, schema)
        kinds = [json.dumps(v) for c in choices for v in c.get("enum", [])]
        kinds = kinds or [c["type"] for c in choices if c.get("type") not in (None, "null")] or ["any"]
        note = "required" if name in required else f"default {json.dumps(field.get('default'), ensure_ascii=False)}"
        limits = [f"{label} {field[key]}" for key, label in _LIMITS.items() if key in field]
        rows.append((name, " or ".join(kinds), "; ".join([note, *limits, *_text_of(field)])))
    return rows


_LIMITS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}


def _text_of(field: Schema) -> list[str]:
    return [field["description"]] if field.get("description") else []
