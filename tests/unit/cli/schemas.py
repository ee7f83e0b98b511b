"""A schema with every construction that pydantic makes."""

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "text": {"type": "string"},
        "nullable_text": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "whole": {"type": "integer"},
        "number": {"type": "number"},
        "flag": {"type": "boolean"},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "list": {"type": "array", "items": {"type": "integer"}},
        "object": {"type": "object"},
        "choice": {"enum": ["a", "b"], "type": "string"},
        "level": {"enum": [1, 2]},
        "either": {"type": ["integer", "string"]},
        "list_or_text": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "string"}]},
        "any": {},
        "free": {"type": "object", "additionalProperties": True},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "dotted.name": {"type": "integer"},
        "deep": {"$ref": "#/$defs/Deep"},
    },
    "$defs": {
        "Deep": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"name": {"type": "string"}, "inner": {"allOf": [{"$ref": "#/$defs/Inner"}]}},
        },
        "Inner": {"type": "object", "additionalProperties": False, "properties": {"count": {"type": "integer"}}},
    },
}
