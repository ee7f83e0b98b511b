"""Ids: sortable, prefixed, and anything else is simply not found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typeid import TypeID

from tasks_app.domain.errors import NotFound
from tasks_app.domain.ids import PREFIXES, from_text, new_id, to_text


@pytest.mark.parametrize("noun", sorted(PREFIXES))
def test_an_id_comes_back_from_its_text(noun):
    value = new_id()
    assert to_text(noun, value).startswith(PREFIXES[noun] + "_")
    assert from_text(noun, to_text(noun, value)) == value


def test_ids_sort_by_the_time_they_were_made():
    made = [new_id() for _ in range(200)]
    assert made == sorted(made)


@given(st.text(max_size=60))
def test_any_other_text_is_not_found(text):
    with pytest.raises(NotFound):
        from_text("task", text)


def test_an_id_of_another_noun_is_not_found():
    with pytest.raises(NotFound):
        from_text("task", to_text("job", new_id()))


@given(st.uuids())
def test_the_text_is_the_one_of_the_typeid_library(value):
    assert to_text("task", value) == str(TypeID.from_uuid(value, prefix="task"))
