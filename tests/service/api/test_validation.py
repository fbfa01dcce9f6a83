from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.routing import iter_route_contexts
from pydantic import BaseModel, ValidationError

from service.api.jobs.schemas import JobRequest
from service.api.keys.schemas import KeyRequest
from service.api.labels.schemas import LabelTarget
from service.app import create_app
from service.shared.prediction_parameters import Parameters
from service.shared.settings import Settings
from service.shared.validation import describe_validation_error
from tfbbb.known_fields import KnownFields
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
            "The body contradicts itself: the target 'y' cannot be a feature as well.",
        ),
    ],
)
def test_place_of_a_mistake_is_named(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        JobSpec.model_validate({"target": "y", **fields})
    assert describe_validation_error(caught.value.errors()[0]) == sentence


def test_names_that_there_are_are_listed() -> None:
    with pytest.raises(ValidationError) as caught:
        JobSpec.model_validate({"target": "y", "model": {"posterior": "normall"}})
    sentence = describe_validation_error(caught.value.errors()[0])
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
    assert describe_validation_error(error) == f"{named}Field required. Received: {{}}"


def body_models() -> list[type[BaseModel]]:
    """The models of all bodies that FastAPI parses, and that of `parameters`."""
    routes = iter_route_contexts(create_app(Settings()).routes)
    fields = [getattr(route.original_route, "body_field", None) for route in routes]
    found = {field.field_info.annotation for field in fields if field is not None}
    return [*sorted(found, key=lambda model: model.__name__), Parameters]


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """A core schema of pydantic and all within it that validates."""
    if isinstance(schema, dict):
        yield schema
        schema = [part for name, part in schema.items() if name != "serialization"]
    if isinstance(schema, list | tuple):
        for part in schema:
            yield from parts(part)


def test_no_body_can_have_more_than_a_few_errors() -> None:
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


def test_a_name_of_a_megabyte_is_not_repeated() -> None:
    with pytest.raises(ValidationError) as caught:
        JobSpec.model_validate({"target": "y", "a" * 2**20: [1] * 10**6})
    assert len(describe_validation_error(caught.value.errors()[0])) < 300
