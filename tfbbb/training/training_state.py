"""The variables that training changes, and a digest of what they depend on."""

import hashlib
import json
from collections.abc import Iterable, Mapping

import keras
import numpy as np

from tfbbb.base.types import Structure
from tfbbb.bayes import kl_schedules
from tfbbb.model.bayesian_model import BayesianModel


def named_variables(model: keras.Model) -> dict[str, keras.Variable]:
    """Returns every variable that training changes, by stable names.

    These are the variables of the layers, their random states, the metrics and the
    optimizer. Keras' own names differ each time a model is created.
    """
    parts = {
        "model": [*model.variables, *model.metrics_variables],
        "optimizer": model.optimizer.variables,
    }
    return {
        f"{part}/{number}": variable
        for part, variables in parts.items()
        for number, variable in enumerate(_deduplicate(variables))
    }


def named_arrays(model: keras.Model) -> dict[str, np.ndarray]:
    """Returns the values of `named_variables`."""
    return {name: variable.numpy() for name, variable in named_variables(model).items()}


def assign(model: keras.Model, arrays: Mapping[str, np.ndarray]) -> None:
    """Assigns values that `named_arrays` returned for an equal model."""
    for name, variable in named_variables(model).items():
        variable.assign(arrays[name])


def _deduplicate(variables: Iterable[keras.Variable]) -> list[keras.Variable]:
    return list({id(variable): variable for variable in variables}.values())


def training_fingerprint(
    model: BayesianModel, held_out: Structure | None, **others: object
) -> str:
    """Returns a digest that differs if the result of a training would differ."""
    optimizer = keras.optimizers.serialize(model.optimizer)
    # Keras adds a number to the name, which depends on the process.
    optimizer["config"].pop("name")
    description = {
        "variables": [
            (name, variable.dtype, tuple(variable.shape))
            for name, variable in named_variables(model).items()
        ],
        "optimizer": optimizer,
        "kl_schedule": kl_schedules.serialize(model.kl_schedule),
        "held_out": _digests(held_out),
        **others,
    }
    text = json.dumps(description, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _digests(arrays: Structure | None) -> list[str]:
    return [
        hashlib.sha256(
            "\0".join(array).encode() if array.dtype == object else array.tobytes()
        ).hexdigest()
        for array in map(np.asarray, keras.tree.flatten(arrays))
        if arrays is not None
    ]
