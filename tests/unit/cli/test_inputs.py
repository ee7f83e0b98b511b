"""--input key=value against JSON schemas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devos.cli import inputs
from devos.cli.errors import CliError
from tests.unit.cli.schemas import SCHEMA


def built(*pairs: str, base: dict[str, Any] | None = None, schema: Any = SCHEMA) -> dict[str, Any]:
    return inputs.build(list(pairs), schema, base or {}, "a.b")


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("text=12", "12"),
        ("text=true", "true"),
        ("text=", ""),
        ("text=a=b", "a=b"),
        ("text={not json", "{not json"),
        ("whole=12", 12),
        ("whole=-3", -3),
        ("whole=2.0", 2),
        ("number=2", 2),
        ("number=2.5", 2.5),
        ("number=1e3", 1000.0),
        ("flag=true", True),
        ("flag=No", False),
        ("maybe=null", None),
        ("maybe=7", 7),
        ("list=[1, 2]", [1, 2]),
        ("list=5", [5]),
        ('object={"x": 1}', {"x": 1}),
        ("choice=b", "b"),
        ("level=2", 2),
        ("either=5", 5),
        ("either=five", "five"),
        ('any={"a": [1]}', {"a": [1]}),
        ("any=plain words", "plain words"),
        ("nullable_text=null", None),
        ("nullable_text=x", "x"),
        ("list_or_text=words", "words"),
        ("list_or_text=[1]", [1]),
    ],
)
def test_values_are_typed_by_the_schema(pair: str, value: Any) -> None:
    assert built(pair) == {pair.partition("=")[0]: value}
    assert type(built(pair)[pair.partition("=")[0]]) is type(value)


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        ("whole=x", "'x' is not a whole number"),
        ("whole=2.5", "is not a whole number"),
        ("whole=true", "is not a whole number"),
        ("whole=", "is not a whole number"),
        ("number=NaN", "is not a number"),
        ("number=Infinity", "is not a number"),
        ("flag=1", "is not true or false"),
        ("maybe=x", "a whole number or null"),
        ("list=[1,", "a list"),
        ("list=x", "a list"),
        ("list=[NaN]", "a list"),
        ("object=[1]", "an object"),
        ("object=x", "an object"),
        ("wole=1", "Did you mean whole?"),
        ("zzz=1", "It takes: any, choice"),
        ("deep.zzz=1", "no input 'deep.zzz'"),
        ("text", "must be key=value"),
        ("=1", "must be key=value"),
        ("text=@/no/such/file", "cannot be read"),
        ("text=\udcff", "UTF-8"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(pair: str, says: str) -> None:
    with pytest.raises(CliError) as refused:
        built(pair)
    assert says in refused.value.message
    assert refused.value.exit_code == 2


def test_dots_make_nested_objects() -> None:
    assert built("deep.inner.count=3", "deep.name=x") == {"deep": {"inner": {"count": 3}, "name": "x"}}


def test_a_property_with_a_dot_in_its_name_is_itself() -> None:
    assert built("dotted.name=4") == {"dotted.name": 4}


def test_free_objects_take_any_field_and_typed_ones_check_it() -> None:
    assert built("free.a.b=1") == {"free": {"a": {"b": 1}}}
    assert built("counts.x=1") == {"counts": {"x": 1}}
    with pytest.raises(CliError, match="whole number"):
        built("counts.x=y")


def test_a_list_grows_with_each_giving() -> None:
    assert built("list=1", "list=2", "list=[3, 4]") == {"list": [1, 2, 3, 4]}
    assert built("any=[1]", "any=2", "any=x") == {"any": [1, 2, "x"]}


def test_one_value_given_twice_is_refused() -> None:
    with pytest.raises(CliError, match="given twice"):
        built("whole=1", "whole=2")


def test_pairs_go_over_the_base_and_leave_it_alone() -> None:
    base = {"whole": 1, "list": [9], "deep": {"name": "old", "inner": {"count": 1}}}
    assert built("whole=2", "list=1", "deep.inner.count=5", base=base) == {
        "whole": 2,
        "list": [1],
        "deep": {"name": "old", "inner": {"count": 5}},
    }
    assert base["deep"] == {"name": "old", "inner": {"count": 1}}


def test_a_field_of_what_is_no_object_is_refused() -> None:
    with pytest.raises(CliError, match="has a value already"):
        built("free.a=1", "free.a.b=2")


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "value"
    file.write_text("[1, 2]")
    assert built(f"list=@{file}") == {"list": [1, 2]}
    assert built(f"text=@{file}") == {"text": "[1, 2]"}
    assert built("text=@@file") == {"text": "@file"}
    file.write_bytes(b"\xff")
    with pytest.raises(CliError, match="not UTF-8"):
        built(f"text=@{file}")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1]", "not a list"),
        ("1", "not a number"),
        ("null", "not null"),
        ("{", "not valid JSON"),
        ('{"a": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "too deeply"),
    ],
)
def test_whole_inputs_are_json_objects(text: str, says: str) -> None:
    with pytest.raises(CliError, match=says):
        inputs.parse_object(text, "--input-json")


@given(st.text(st.characters(exclude_categories=["Cs"])).filter(lambda text: not text.startswith("@")))
def test_any_text_reaches_a_text_field_unchanged(text: str) -> None:
    assert built(f"text={text}") == {"text": text}


@given(st.text(), st.sampled_from(sorted(SCHEMA["properties"])))
def test_nothing_but_a_clear_refusal_comes_of_any_text(text: str, name: str) -> None:
    try:
        built(f"{name}={text}")
    except CliError as refused:
        assert refused.message


def test_a_schema_that_refers_to_itself_ends() -> None:
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
    with pytest.raises(CliError, match="no input"):
        built("x=1", schema=schema)


def test_a_schema_is_described_required_fields_first() -> None:
    rows = inputs.describe({"properties": {"b": {"type": "integer", "default": 3, "minimum": 1}, **_URL}, **_NEEDS_URL})
    assert rows == [("url", "string", "required; where"), ("b", "integer", "default 3; >= 1")]


_URL = {"url": {"type": "string", "description": "where"}}
_NEEDS_URL = {"required": ["url"]}
