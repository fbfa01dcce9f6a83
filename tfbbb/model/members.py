"""The members of an ensemble, each as a model of its own."""

import warnings
from collections.abc import Sequence
from typing import Any, TypeVar

import keras
import numpy as np

from tfbbb.base.layer_state import copy_own_state
from tfbbb.base.private_apis import own_trainable_variables, sublayers
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.layers import VariationalLayer
from tfbbb.model.predictive_model import PredictiveModel

Ensemble = TypeVar("Ensemble", bound=PredictiveModel)


class Members(Sequence[Ensemble]):
    """The posteriors of a `BayesianModel`, in order.

    Each item is a new model with copies of the current weights.
    """

    def __init__(self, model: Ensemble, number: int):
        self._model = model
        self._number = number

    def __len__(self) -> int:
        return self._number

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._number))]
        return self.mixture([index])

    def mixture(self, indices: Sequence[int]) -> Ensemble:
        """Returns a new model with the members of these indices, in this order.

        A member may be taken several times.
        """
        if not len(indices):
            raise ValueError(
                "A mixture needs at least one member. Received: indices=[]"
            )
        for index in indices:
            if not -self._number <= index < self._number:
                raise IndexError(
                    f"The model has {self._number} members. Received: index={index}"
                )
        return _mixture(self._model, [index % self._number for index in indices])

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


def _mixture(model: Ensemble, indices: Sequence[int]) -> Ensemble:
    config = _with_members(model.get_config(), len(indices))
    # That of a single posterior does not state a number.
    config["likelihood"]["config"]["members"] = len(indices)
    mixture = type(model).from_config(config)
    with_axis = _ids_of_member_variables(model)
    for ensemble, chosen in zip(sublayers(model), sublayers(mixture), strict=True):
        for source, target in zip(ensemble.variables, chosen.variables, strict=True):
            value = source.numpy()
            if id(source) in with_axis:
                value = value[np.asarray(indices) if len(indices) > 1 else indices[0]]
            # A single posterior may be taken several times.
            target.assign(np.broadcast_to(value, target.shape))
        if not isinstance(ensemble, VariationalLayer | keras.Model | Likelihood):
            copy_own_state(ensemble, chosen)
    mixture.compare_rows_as(model)
    if len(model.members) == 1:
        mixture.inference = model.inference
    return mixture


def _ids_of_member_variables(model: keras.Model) -> set[int]:
    """Returns the `id` of each variable with a leading axis of members."""
    found: set[int] = set()
    for layer in sublayers(model):
        if isinstance(layer, VariationalLayer) and layer.members > 1:
            for weight in layer.variational_weights:
                found.update(map(id, weight.all_variables))
        elif isinstance(layer, Likelihood) and layer.members > 1:
            found.update(map(id, layer.learned_variables))
    return found


def _with_members(config: Any, members: int) -> Any:
    if isinstance(config, dict):
        return {
            key: members if key == "members" else _with_members(value, members)
            for key, value in config.items()
        }
    if isinstance(config, list | tuple):
        return type(config)(_with_members(value, members) for value in config)
    return config
