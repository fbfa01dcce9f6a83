"""The posterior of a trained model as the prior of a new model."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Iterator
from typing import Any

from tfbbb.base.lazy import keras, np
from tfbbb.base.private_apis import sublayers
from tfbbb.base.strategy import saved_as
from tfbbb.base.types import Config, DType, Initializer, Shape, Tensor
from tfbbb.bayes import posteriors
from tfbbb.bayes.posteriors.posterior import Posterior, Sizes
from tfbbb.bayes.priors.prior import AddWeight, Parameters, Prior, WeightMoments


@saved_as("tfbbb.priors")
class FromPosterior(Prior):
    """The posterior of a trained model: `p(w) = q_trained(w)`.

    A new model of the same architecture learns from new data alone and keeps what the
    old model learned (variational continual learning, Nguyen et al. 2018). The prior of
    each weight is the posterior of the weight with the same path,
    `"layer name/weight name"`. The values are copied when the prior is created, and
    saved with the weights of the new model.

    The outputs of both models must have the same meaning: give the new model the
    likelihood of the old one, `likelihood=yesterday.likelihood`, which keeps shift and
    scale of the targets.

    Example:

    >>> import keras, tfbbb
    >>> def build(prior):
    ...     return keras.Sequential(
    ...         [
    ...             keras.Input((3,)),
    ...             tfbbb.layers.DenseVariational(
    ...                 1, prior=prior, bias_prior=prior, name="output"
    ...             ),
    ...         ]
    ...     )
    >>> yesterday = build("normal")
    >>> today = build(tfbbb.priors.FromPosterior(yesterday))

    Args:
        model: A built Keras model or layer with variational weights.
    """

    _from_config = False

    def __init__(self, model: keras.Layer):
        if not isinstance(model, keras.Layer):
            raise ValueError(
                "`model` must be a Keras model or layer with variational weights. "
                f"Received: model={model!r}"
            )
        sources = dict(_weights_by_path(model))
        if not sources:
            raise ValueError(
                "The model has no variational weights that are built; train or load "
                f"it first. Received: model={model.name!r}"
            )
        self._families: dict[str, Posterior] = {
            path: weight.posterior for path, weight in sources.items()
        }
        self._values = _Values(
            (
                path,
                {
                    name: variable.numpy().reshape(
                        (weight.members, *variable.shape[weight.members > 1 :])
                    )
                    for name, variable in weight.variables.items()
                },
            )
            for path, weight in sources.items()
        )
        self._digest: str | None = self._values.digest()
        _IN_MEMORY[self._digest] = self._values

    def get_config(self) -> Config:
        families = {k: posteriors.serialize(v) for k, v in self._families.items()}
        return {"posteriors": families, "values": self._digest}

    @classmethod
    def from_config(cls, config: Config) -> FromPosterior:
        """Makes the prior; values that are not in memory come with saved weights."""
        prior = cls.__new__(cls)
        families = config["posteriors"].items()
        prior._families = {path: posteriors.get(family) for path, family in families}
        # Configs of earlier releases have no digest.
        prior._digest = config.get("values")
        prior._from_config = True
        prior._values = _IN_MEMORY.get(prior._digest or "", _Values())
        return prior

    def __repr__(self) -> str:
        return f"FromPosterior({', '.join(self._families)})"

    def add_variables(
        self, add_weight: AddWeight, shape: Sizes, fan_in: int, path: str
    ) -> dict[str, keras.Variable]:
        if path not in self._families:
            raise ValueError(
                "The prior's model has no weight of this path. Give the layers of both "
                "models the same names. The prior's model has "
                f"{', '.join(map(repr, self._families))}. Received: {path!r}"
            )
        family = self._families[path]
        if not family.has_density:
            raise ValueError(
                "The posterior of the prior's model has no density, so it cannot be a "
                "prior. "
                f"Received: posterior={family!r} of {path!r}"
            )
        values = self._values.get(path, {})

        def add_held(
            name: str, own_shape: Shape, initializer: Initializer
        ) -> keras.Variable:
            # NaN until the weights of a saved model are loaded.
            held = values.get(name, np.full((1, *own_shape), np.nan, np.float32))
            if held.shape[1:] != tuple(own_shape):
                raise ValueError(
                    "The weight has another shape in the prior's model: its "
                    f"`{name}` is {held.shape[1:]}. "
                    f"Received: {path!r} with {tuple(own_shape)}"
                )
            return add_weight(f"prior_{name}", own_shape, _Held(held), trainable=False)

        variables = family.add_variables(add_held, shape, fan_in, "zeros")
        # The path in the key identifies the family.
        return {f"{path}:{name}": variable for name, variable in variables.items()}

    def parameters(self, weight: WeightMoments) -> Parameters:
        """Returns the values of the trained model, named by path and parameter."""
        parameters = weight.prior_parameters
        path, _ = _split(parameters)
        for values in self._values.get(path, {}).values():
            # A config may be for one member of a model, whose variables are set.
            if not self._from_config and len(values) not in (1, weight.members):
                raise ValueError(
                    f"The weight {path!r} has {len(values)} members in the prior's "
                    f"model. Received: members={weight.members}"
                )
        return parameters

    def check_values(self, weight: WeightMoments) -> None:
        """Raises ValueError if a config made the prior and no weights were loaded."""
        path, own = _split(weight.prior_parameters)
        if any(np.isnan(np.asarray(values)).any() for values in own.values()):
            raise ValueError(
                "The prior has no values: a config does not hold them. Load the "
                "weights of the saved model, or pass `FromPosterior(model)` to the "
                f"layer. Received: prior={self!r} of {path!r}"
            )

    def posterior(self, parameters: Parameters) -> tuple[Posterior, Parameters]:
        """Returns the family of p and its parameters by their own names."""
        path, own = _split(parameters)
        return self._families[path], own

    def log_prob(
        self, parameters: Parameters, weights: Tensor, shape: Sizes, fan_in: int
    ) -> Tensor:
        family, own = self.posterior(parameters)
        return family.log_prob(own, weights, shape)


class _Values(dict[str, dict[str, "np.ndarray"]]):
    """The values of variables, [members, ...], by path and name."""

    def digest(self) -> str:
        digest = hashlib.sha256()
        for path, variables in self.items():
            for name, values in variables.items():
                digest.update(repr((path, name, values.shape)).encode())
                digest.update(values.tobytes())
        return digest.hexdigest()


# By digest.
_IN_MEMORY: weakref.WeakValueDictionary[str, _Values] = weakref.WeakValueDictionary()


def _split(parameters: Parameters) -> tuple[str, Parameters]:
    split = {tuple(key.rsplit(":", 1)): value for key, value in parameters.items()}
    path = next(path for path, _ in split)
    return path, {name: value for (_, name), value in split.items()}


def _weights_by_path(model: keras.Layer) -> Iterator[tuple[str, Any]]:
    for layer in sublayers(model):
        for weight in getattr(layer, "variational_weights", ()):
            yield f"{layer.name}/{weight.name}", weight


class _Held:
    """Copies the values of one member, whose index is `seed`."""

    def __init__(self, values: np.ndarray, seed: int = 0):
        self.values = values
        self.seed = seed

    def __call__(self, shape: Shape, dtype: DType = None) -> Tensor:
        return keras.ops.convert_to_tensor(
            self.values[self.seed % len(self.values)], dtype
        )

    def get_config(self) -> Config:
        return {"values": self.values, "seed": self.seed}
