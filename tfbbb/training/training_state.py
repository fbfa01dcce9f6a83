"""The variables that training changes, as arrays."""

from collections.abc import Iterable, Mapping

import keras
import numpy as np


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
