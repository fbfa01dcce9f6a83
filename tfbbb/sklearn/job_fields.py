"""The spec of a job from the parameters of an estimator."""

import inspect
import numbers
from collections.abc import Mapping

import numpy as np
from pydantic import ValidationError
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from tfbbb.base.texts import abbreviate
from tfbbb.base.types import JsonObject
from tfbbb.base.validation_errors import describe_rule
from tfbbb.training.spec import JobSpec, ModelSpec, TrainingSpec
from tfbbb.training.spec.families import SpecPart

_PARTS: dict[str, type[SpecPart]] = {"model": ModelSpec, "training": TrainingSpec}
# The rows and the target are those of `fit`, the seed is `random_state`, and versions
# are a service's.
_NOT_PARAMETERS = {*("target", "features", "task", "seed"), *("publish", "start_from")}


def _fields(spec: type[SpecPart]) -> dict[str, str | None]:
    """Returns what the fields of a job, or of a part of it, are, by their names."""
    return {
        name: field.description or inspect.getdoc(field.annotation)
        for name, field in spec.model_fields.items()
        if name not in _NOT_PARAMETERS and name not in _PARTS
    }


PARAMETERS: Mapping[str, str | None] = {
    **_fields(ModelSpec),
    **_fields(JobSpec),
    **_fields(TrainingSpec),
    "num_samples": "Number of draws from the posterior for predictions; 100 by "
    "default.",
    "random_state": "Seed of the folds, initial weights, order of rows and noise: an "
    "integer, or a `RandomState` from which one is drawn; None for 0.",
}
"""What the parameters of the estimators are, by their names."""
_MOST_SEED = 2**31 - 1


def job_spec(estimator: BaseEstimator, **fields: object) -> JobSpec:
    """Builds the spec of a job."""
    fields |= _given(estimator, JobSpec)
    parts = {name: _given(estimator, part) for name, part in _PARTS.items()}
    if estimator.random_state is not None:
        parts["training"]["seed"] = _seed(estimator.random_state)
    try:
        return JobSpec.model_validate(fields | parts)
    except ValidationError as error:
        raise ValueError(_describe(error)) from None


def _given(estimator: BaseEstimator, spec: type[SpecPart]) -> JsonObject:
    values = {name: _plain(getattr(estimator, name)) for name in _fields(spec)}
    return {name: value for name, value in values.items() if value is not None}


def _plain(value: object) -> object:
    """Returns a value without NumPy's types, which searches of parameters draw."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value


def _seed(random_state: object) -> int:
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(_MOST_SEED))


def _describe(error: ValidationError) -> str:
    """Returns the first error as one sentence that names the parameter."""
    first = error.errors()[0]
    place = [str(name) for name in first["loc"]]
    if place and place[0] in _PARTS:
        place = place[1:]
    if place == ["seed"]:
        place = ["random_state"]
    if first["type"] != "value_error":
        rule = describe_rule(first)
        return f"`{'.'.join(place)}` {rule}. Received: {abbreviate(first['input'])}"
    reason = str(first["ctx"]["error"]).rstrip(".")
    if not place:
        return f"The parameters contradict each other: {reason}."
    return f"`{'.'.join(place)}`: {reason}. Received: {abbreviate(first['input'])}"
