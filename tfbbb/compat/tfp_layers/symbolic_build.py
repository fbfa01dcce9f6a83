"""Distributions as predictions while Keras builds a model under `tf.distribute`."""

from typing import Any

import keras

from tfbbb.compat.tfp_layers.distribution_lambda import DistributionLambda
from tfbbb.types import ArrayLike, Tensor

# Under a strategy, Keras traces model, metrics and loss before the first step, each in
# its own graph, and passes only shape and dtype of the predictions from one to the
# next. A loss that calls `log_prob` of a prediction needs the distribution, so the
# traces of metrics and loss call the model themselves.
_build_from_shapes = keras.Model._symbolic_build


def _symbolic_build(model: keras.Model, *args: Any, **kwargs: Any) -> None:
    if not any(isinstance(k, DistributionLambda) for k in model._flatten_layers()):
        _build_from_shapes(model, *args, **kwargs)
        return
    methods = {
        name: _on_own_predictions(model, getattr(model, name))
        for name in ("_compute_loss", "compute_metrics")
    }
    vars(model).update(methods)
    try:
        _build_from_shapes(model, *args, **kwargs)
    finally:
        for name in methods:
            del vars(model)[name]


def _on_own_predictions(model: keras.Model, method: Any) -> Any:
    def call(x: ArrayLike, y: ArrayLike, y_pred: Tensor, **kwargs: Any) -> Tensor:
        return method(x, y, model(x, training=False), **kwargs)

    return call


keras.Model._symbolic_build = _symbolic_build
