"""All that a training changes from step to step, as arrays."""

from collections.abc import Iterable, Mapping

import keras
import numpy as np


def named_variables(model: keras.Model) -> dict[str, keras.Variable]:
    """Returns every variable that training changes, by names that last.

    They are those of the layers, with the states of their random numbers, of the
    metrics and of the optimizer. Keras' own names change when a model is made again.
    """
    parts = {
        "model": [*model.variables, *model.metrics_variables],
        "optimizer": model.optimizer.variables,
    }
    return {
        f"{part}/{number}": variable
        for part, variables in parts.items()
        for number, variable in enumerate(_once_each(variables))
    }


def named_arrays(model: keras.Model) -> dict[str, np.ndarray]:
    """Returns the values of all variables that training changes, by name."""
    return {name: variable.numpy() for name, variable in named_variables(model).items()}


def assign(model: keras.Model, arrays: Mapping[str, np.ndarray]) -> None:
    """Gives a model the values that `named_arrays` returned of one made alike."""
    for name, variable in named_variables(model).items():
        variable.assign(arrays[name])


def _once_each(variables: Iterable[keras.Variable]) -> list[keras.Variable]:
    return list({id(variable): variable for variable in variables}.values())
