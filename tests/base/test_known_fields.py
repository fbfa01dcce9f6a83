from typing import Annotated

import pytest
from pydantic import Field, ValidationError

from tfbbb.base.known_fields import KnownFields


class Part(KnownFields):
    name: str = ""
    numbers: Annotated[tuple[int, ...], Field(fail_fast=True)] = ()


class Whole(KnownFields):
    part: Part = Part()


def errors(document):
    with pytest.raises(ValidationError) as caught:
        Whole.model_validate(document)
    return [(error["loc"], error["type"]) for error in caught.value.errors()]


def test_the_first_of_many_unknown_fields_is_reported():
    unknown = {f"x{number}": 1 for number in range(100_000)}
    assert errors({"part": {"name": "a"} | unknown}) == [
        (("part", "x0"), "extra_forbidden")
    ]


def test_known_fields_among_unknown_ones_are_checked():
    found = errors({"x": 1, "y": 2, "part": {"a": 1, "b": 2, "c": 3, "name": 5}})
    assert found == [
        (("part", "name"), "string_type"),
        (("part", "a"), "extra_forbidden"),
        (("x",), "extra_forbidden"),
    ]


@pytest.mark.parametrize("document", [None, [1], "text"])
def test_what_is_no_object_is_reported_as_such(document):
    assert errors({"part": document}) == [(("part",), "model_type")]
