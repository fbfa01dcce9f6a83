"""The spec of a job from the parameters of an estimator."""

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
from pydantic import ValidationError
from sklearn.utils import check_random_state

from tfbbb.base.texts import abbreviate
from tfbbb.base.validation_errors import describe_rule
from tfbbb.training.spec import JobSpec, ModelSpec, TrainingSpec

_OF_JOB = ("text_columns", "columns", "recalibration")
# The seed is `random_state`, and the rows of `fit` are in one place.
_PARTS = {
    "model": tuple(ModelSpec.model_fields),
    "training": tuple(
        name for name in TrainingSpec.model_fields if name not in ("seed", "partitions")
    ),
}
_MOST_SEED = 2**31 - 1


def job_spec(estimator: Any, **fields: Any) -> JobSpec:
    """Builds the spec of a job.

    Args:
        estimator: An estimator, whose parameters are fields of a job; None leaves a
            field as it is by default.
        **fields: Further fields of the job.

    Raises:
        ValueError: A parameter has an invalid value.
    """
    fields |= _given(estimator, _OF_JOB)
    for part, names in _PARTS.items():
        fields[part] = _given(estimator, names)
    if estimator.random_state is not None:
        fields["training"]["seed"] = _seed(estimator.random_state)
    try:
        return JobSpec.model_validate(fields)
    except ValidationError as error:
        raise ValueError(_describe(error)) from None


def _given(estimator: Any, names: Iterable[str]) -> dict[str, Any]:
    values = {name: _plain(getattr(estimator, name)) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _plain(value: Any) -> Any:
    """Returns a value without NumPy's types, which searches of parameters draw."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value


def _seed(random_state: Any) -> int:
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
