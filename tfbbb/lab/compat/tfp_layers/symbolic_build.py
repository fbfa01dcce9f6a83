"""Distributions as predictions while Keras builds a model under `tf.distribute`."""

from collections.abc import Callable
from functools import partial
from typing import Any

import keras
import tensorflow as tf

from tfbbb.base.private_apis import (
    in_stateless_scope,
    outermost_layer,
    wrap_until_built,
)
from tfbbb.base.types import ArrayLike, Tensor


def keep_distribution(layer: keras.Layer) -> None:
    """Lets loss and metrics of a model see the distribution, where Keras builds it.

    Under a strategy, Keras traces model, metrics and loss before the first step, each
    in its own graph, and passes only shape and dtype of the predictions from one to the
    next. A loss that calls `log_prob` of a prediction needs the distribution, so the
    traces of metrics and loss of this model call the model themselves.
    """
    if not (in_stateless_scope() and tf.distribute.has_strategy()):
        return
    model = outermost_layer(layer)
    if isinstance(model, keras.Model) and model.compiled:
        wrap_until_built(model, partial(_on_own_predictions, model))


def _on_own_predictions(
    model: keras.Model, method: Callable[..., Tensor]
) -> Callable[..., Tensor]:
    def call(x: ArrayLike, y: ArrayLike, y_pred: Tensor, **kwargs: Any) -> Tensor:
        if in_stateless_scope():
            y_pred = model(x, training=False)
        return method(x, y, y_pred, **kwargs)

    return call
