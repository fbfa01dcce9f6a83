import math
from enum import Enum
from typing import Literal

import pytest
from fastapi.routing import iter_route_contexts
from pydantic import BaseModel, Field, ValidationError

from service.api.jobs.schemas import JobRequest
from service.api.keys.endpoints import KeyRequest
from service.api.labels.endpoints import LabelTarget
from service.app import create_app
from service.predicting.query import Parameters
from service.shared.settings import Settings
from tfbbb.base.known_fields import KnownFields
from tfbbb.base.suggestions import field_paths
from tfbbb.base.texts import abbreviate
from tfbbb.base.validation_errors import describe_validation_error
from tfbbb.training.spec import JobSpec


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"training": {"validation": {"fraction": 2}}},
            "`training.validation.fraction` must be less than 1. Received: 2",
        ),
        ({"model": {"hidden": [5]}}, "`model.hidden` is unknown. Did you mean "),
        ({"epochs": 3}, "`epochs` is unknown. Did you mean `training.epochs`? Rec"),
        (
            {"training": {"epochs": 5, "steps": 5}},
            "`training`: give `epochs` or `steps`, not both. "
            "Received: {'epochs': 5, 'steps': 5}",
        ),
        (
            {"features": ["y"]},
            "The body contradicts itself: the target 'y' cannot be a feature as well.",
        ),
        (
            {"model": {"posterior": "normall"}},
            "`model.posterior` must be one of 'full_covariance_normal', ",
        ),
    ],
)
def test_place_of_a_mistake_is_named(fields, sentence):
    with pytest.raises(ValidationError) as caught:
        JobSpec.model_validate({"target": "y", **fields})
    error = caught.value.errors()[0]
    found = describe_validation_error(error, known=field_paths(JobSpec))
    assert found.startswith(sentence)


@pytest.mark.parametrize(
    ("place", "named"),
    [
        (("body",), "The body"),
        (("body", "name"), "`name`"),
        (("query", "limit"), "`limit`"),
    ],
)
def test_parts_of_a_request_are_not_of_its_names(place, named):
    error = {"type": "missing", "loc": place, "msg": "Field required", "input": {}}
    assert describe_validation_error(error) == f"{named} is missing. Received: {{}}"


class Flavour(Enum):
    SWEET = "sweet"


class Dessert(BaseModel):
    """Has a field for every rule."""

    eggs: int = Field(0, ge=1, le=12)
    sugar: float = Field(1.0, gt=0, lt=5, allow_inf_nan=False)
    hot: bool = False
    flavour: Flavour = Flavour.SWEET
    cut: Literal["whole", "sliced"] = "whole"
    steps: list[str] = Field(["stir"], min_length=1, max_length=2)
    sizes: tuple[int, ...] = Field((1, 2), min_length=2)
    title: str = Field("cake", min_length=3, max_length=5)
    id: str = Field("0" * 24, pattern="^[0-9a-f]{24}$")
    names: dict[str, int] = {}
    part: "Dessert | None" = None


@pytest.mark.parametrize(
    ("field", "given", "rule"),
    [
        ("cut", "torn", "must be 'whole' or 'sliced'"),
        ("eggs", "two", "must be a whole number"),
        ("eggs", "9" * 5000, "must be a smaller number"),
        ("eggs", 0, "must be at least 1"),
        ("eggs", 13, "must be at most 12"),
        ("flavour", "sour", "must be 'sweet'"),
        ("hot", "warm", "must be true or false"),
        ("id", "x", "must be an id: 24 digits and letters from a to f"),
        ("names", 1, "must be an object with fields"),
        ("sizes", 1, "must be a list"),
        ("sizes", [1], "must have at least 2 entries"),
        ("steps", [], "must not be empty"),
        ("steps", ["stir"] * 3, "must have at most 2 entries"),
        ("sugar", "much", "must be a number"),
        ("sugar", math.nan, "must be a finite number"),
        ("sugar", 0, "must be more than 0"),
        ("sugar", 5, "must be less than 5"),
        ("title", 1, "must be a text"),
        ("title", "x", "must have at least 3 characters"),
        ("title", "pudding", "must have at most 5 characters"),
        ("title", "\ud800", "must be a text in UTF-8"),
    ],
)
def test_a_rule_is_a_plain_sentence(field, given, rule):
    with pytest.raises(ValidationError) as caught:
        Dessert.model_validate({field: given})
    sentence = describe_validation_error(caught.value.errors()[0])
    assert sentence == f"`{field}` {rule}. Received: {abbreviate(given)}"


def body_models():
    """The models of all bodies that FastAPI parses, and that of `parameters`."""
    routes = iter_route_contexts(create_app(Settings()).routes)
    fields = [getattr(route.original_route, "body_field", None) for route in routes]
    found = {field.field_info.annotation for field in fields if field is not None}
    return [*sorted(found, key=lambda model: model.__name__), Parameters]


def parts(schema):
    """A core schema of pydantic and all within it that validates."""
    if isinstance(schema, dict):
        yield schema
        schema = [part for name, part in schema.items() if name != "serialization"]
    if isinstance(schema, list | tuple):
        for part in schema:
            yield from parts(part)


def test_no_body_can_have_more_than_a_few_errors():
    models = body_models()
    assert {JobRequest, KeyRequest, LabelTarget} <= set(models)
    for model in models:
        for part in parts(model.__pydantic_core_schema__):
            kind = part.get("type")
            assert kind not in ("dict", "generator"), model
            if kind in ("list", "set", "frozenset") or (
                kind == "tuple" and "variadic_item_index" in part
            ):
                assert part.get("fail_fast"), (model, part)
            if kind == "model":
                assert issubclass(part["cls"], KnownFields), part["cls"]


def test_a_name_of_a_megabyte_is_not_repeated():
    with pytest.raises(ValidationError) as caught:
        JobSpec.model_validate({"target": "y", "a" * 2**20: [1] * 10**6})
    assert len(describe_validation_error(caught.value.errors()[0])) < 300
