"""The base class of layers that consist of variational layers."""

from __future__ import annotations

from typing import Any

import keras

from tfbbb.base.types import Config
from tfbbb.bayes import estimators, posteriors, priors
from tfbbb.layers.variational import (
    VariationalLayer,
    describe_constructor,
    refuse_without_meaning,
)

_KINDS: dict[str, Any] = {
    "posterior": posteriors,
    "prior": priors,
    "bias_posterior": posteriors,
    "bias_prior": priors,
    "estimator": estimators,
}
_OPTIONS = {*_KINDS, "kl_weight", "members"}


class CompositeVariationalLayer(keras.Layer):
    """Base of the layers that consist of variational layers with the same options."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        describe_constructor(cls)

    def __init__(self, *arguments: Any, **options: Any):
        refuse_without_meaning(type(self), options)
        given = {name: options.pop(name) for name in _OPTIONS & options.keys()}
        super().__init__(*arguments, **options)
        # Objects, not configs: the config of a prior from a trained posterior does not
        # contain the posterior's values.
        self._options = {
            name: _KINDS[name].get(value) if name in _KINDS else value
            for name, value in given.items()
        }

    def any_part(self) -> VariationalLayer:
        """Returns one of the parts, for the options that all of them share."""
        raise NotImplementedError

    def get_config(self) -> Config:
        # A model may have given the parts more members.
        of_part = self.any_part().get_config()
        shared = {name: of_part[name] for name in _OPTIONS}
        return {**super().get_config(), **shared}
