"""The members of an ensemble, each as a model of its own."""

import warnings
from collections.abc import Sequence
from typing import Any, TypeVar

import keras

from tfbbb.layer_state import copy_own_state
from tfbbb.layers import VariationalLayer
from tfbbb.likelihoods import Likelihood
from tfbbb.private_apis import own_trainable_variables, sublayers

Ensemble = TypeVar("Ensemble", bound=keras.Model)


class Members(Sequence[Ensemble]):
    """The posteriors of a `BayesianModel`, in order.

    Each item is a new model with copies of the current weights.

    Args:
        model: The ensemble.
        number: Number of its members.
    """

    def __init__(self, model: Ensemble, number: int):
        self._model = model
        self._number = number

    def __len__(self) -> int:
        return self._number

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._number))]
        if not -self._number <= index < self._number:
            raise IndexError(
                f"The model has {self._number} members. Received: index={index}"
            )
        return _member(self._model, index % self._number)

    def __repr__(self) -> str:
        return f"<{self._number} members of {self._model.name!r}>"


def check_shared_layers(model: keras.Model) -> None:
    """Warns about layers whose trainable weights all members share."""
    shared = [
        layer.name
        for layer in sublayers(model)
        if own_trainable_variables(layer) and not isinstance(layer, VariationalLayer)
    ]
    if shared:
        warnings.warn(
            "The members of this model share the weights of its deterministic layers "
            f"{shared}: they are not independent of each other. Give them "
            '`posterior="point"` (`tfbbb.layers`) for each member to have its own.',
            stacklevel=3,
        )


def _member(model: Ensemble, index: int) -> Ensemble:
    config = _with_one_member(model.get_config())
    # The recalibration was fitted to the mixture of all members.
    config.pop("recalibration", None)
    member = type(model).from_config(config)
    for ensemble, single in zip(sublayers(model), sublayers(member), strict=True):
        for source, target in zip(ensemble.variables, single.variables, strict=True):
            value = source.numpy()
            target.assign(value if value.shape == target.shape else value[index])
        if not isinstance(ensemble, VariationalLayer | keras.Model | Likelihood):
            copy_own_state(ensemble, single)
    return member


def _with_one_member(config: Any) -> Any:
    if isinstance(config, dict):
        return {
            key: 1 if key == "members" else _with_one_member(value)
            for key, value in config.items()
        }
    if isinstance(config, list | tuple):
        return type(config)(_with_one_member(value) for value in config)
    return config
