"""Distributions as predictions while Keras builds a model under `tf.distribute`."""

from functools import partial
from typing import Any

import keras

from tfbbb.compat.tfp_layers.distribution_lambda import DistributionLambda
from tfbbb.private_apis import (
    sublayers,
    wrap_symbolic_build,
    wrapped_loss_and_metrics,
)
from tfbbb.types import ArrayLike, Tensor


# Under a strategy, Keras traces model, metrics and loss before the first step, each in
# its own graph, and passes only shape and dtype of the predictions from one to the
# next. A loss that calls `log_prob` of a prediction needs the distribution, so the
# traces of metrics and loss call the model themselves.
def _from_distributions(build_from_shapes: Any) -> Any:
    def build(model: keras.Model, *args: Any, **kwargs: Any) -> None:
        if not any(isinstance(k, DistributionLambda) for k in sublayers(model)):
            build_from_shapes(model, *args, **kwargs)
            return
        with wrapped_loss_and_metrics(model, partial(_on_own_predictions, model)):
            build_from_shapes(model, *args, **kwargs)

    return build


def _on_own_predictions(model: keras.Model, method: Any) -> Any:
    def call(x: ArrayLike, y: ArrayLike, y_pred: Tensor, **kwargs: Any) -> Tensor:
        return method(x, y, model(x, training=False), **kwargs)

    return call


wrap_symbolic_build(_from_distributions)
