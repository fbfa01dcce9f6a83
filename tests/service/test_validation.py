from typing import Any

import pytest
from pydantic import ValidationError

from service.validation import what_is_wrong
from tfbbb.training.spec import JobSpec


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"training": {"validation": {"fraction": 2}}},
            "`training.validation.fraction`: Input should be less than 1. Received: 2",
        ),
        ({"model": {"hidden": [5]}}, "`model.hidden` is unknown. Received: [5]"),
        (
            {"training": {"epochs": 5, "steps": 5}},
            "`training`: give `epochs` or `steps`, not both. "
            "Received: {'epochs': 5, 'steps': 5}",
        ),
        (
            {"features": ["y"]},
            "The body contradicts itself: the target 'y' can't be a feature as well.",
        ),
    ],
)
def test_place_of_a_mistake_is_named(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        JobSpec.model_validate({"target": "y", **fields})
    assert what_is_wrong(caught.value.errors()[0]) == sentence


def test_names_that_there_are_are_listed() -> None:
    with pytest.raises(ValidationError) as caught:
        JobSpec.model_validate({"target": "y", "model": {"posterior": "normall"}})
    sentence = what_is_wrong(caught.value.errors()[0])
    assert sentence.startswith("`model.posterior` must be one of 'mean_field_normal', ")
    assert sentence.endswith(". Received: 'normall'")


@pytest.mark.parametrize(
    ("place", "named"),
    [
        (("body",), "The body: "),
        (("body", "name"), "`name`: "),
        (("query", "limit"), "`limit`: "),
    ],
)
def test_parts_of_a_request_are_not_of_its_names(place: Any, named: str) -> None:
    error = {"type": "missing", "loc": place, "msg": "Field required", "input": {}}
    assert what_is_wrong(error) == f"{named}Field required. Received: {{}}"
