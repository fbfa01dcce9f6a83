"""The Keras model that knows its likelihood and counts its training rows."""

import inspect
import os
from typing import Any

import keras
import tensorflow as tf
from keras import ops

import tfbbb.data.features
import tfbbb.losses  # noqa: F401  (with the features, what a saved model may hold)
from tfbbb import likelihoods
from tfbbb.layers import VariationalLayer
from tfbbb.layers.sharing import sublayers
from tfbbb.prediction import Predictive, predictive
from tfbbb.training_rows import TrainingRows, training_rows


@keras.saving.register_keras_serializable(package="tfbbb")
class BayesianModel(keras.Model):
    """A functional Keras model with a likelihood, trained on the evidence lower bound.

    For a minibatch of B rows out of N,

        loss = (1/B) sum_i -log p(y_i | f(x_i, w)) + (1/N) sum_layers KL(q(w) || p(w))

    `fit` sets `kl_weight=1/N` in every layer that was made without one, counts N
    exactly (after `validation_split`; the sum of the sample weights where there are
    any), fixes the targets' shift and scale at the first call, and reports `loss`,
    `nll` and `kl` (in nats), so that `loss = nll + kl_weight * kl`.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.random.normal(size=(80, 3)).astype("float32")
    >>> y = 50.0 + 10.0 * x[:, :1]
    >>> inputs = keras.Input((3,))
    >>> hidden = tfbbb.layers.DenseVariational(16, activation="relu")(inputs)
    >>> outputs = tfbbb.layers.DenseVariational(1)(hidden)
    >>> model = tfbbb.BayesianModel(inputs, outputs, likelihood="normal")
    >>> model.compile("adam")
    >>> history = model.fit(x, y, epochs=2, verbose=0)
    >>> sorted(history.history)
    ['kl', 'loss', 'nll']
    >>> prediction = model.predictive(x[:4])
    >>> prediction.mean.shape, prediction.interval(0.9)[0].shape
    ((4, 1), (4, 1))

    Args:
        inputs: Keras inputs, as for `keras.Model`.
        outputs: One Keras tensor: what the likelihood takes, e.g. one unit per target
            for `Normal()`, two for `Normal(heteroscedastic=True)`, one per class for
            `Categorical()`.
        name: Name of the model.
        likelihood: `"normal"`, `"categorical"` or a `tfbbb.likelihoods.Likelihood`.

    Raises:
        ValueError: Where there are several outputs, or they do not fit the likelihood.
    """

    def __init__(
        self,
        inputs: Any,
        outputs: Any,
        name: str | None = None,
        *,
        likelihood: Any = "normal",
        **kwargs: Any,
    ):
        super().__init__(inputs, outputs, name=name, **kwargs)
        if len(self.outputs) != 1:
            raise ValueError(
                "A BayesianModel has one output tensor, which its likelihood takes. "
                f"Received: {len(self.outputs)} outputs"
            )
        self.likelihood = likelihoods.get(likelihood)
        if not self.likelihood.built:
            self.likelihood.build(self.outputs[0].shape)
        self._num_rows = self.add_weight(
            name="num_rows", shape=(), initializer="zeros", trainable=False
        )
        self._nll_tracker = keras.metrics.Mean(name="nll")
        self._kl_tracker = keras.metrics.Mean(name="kl")

    @property
    def variational_layers(self) -> list[VariationalLayer]:
        """The layers whose weights have a posterior, nested ones too."""
        return [
            layer for layer in sublayers(self) if isinstance(layer, VariationalLayer)
        ]

    @property
    def num_rows(self) -> float | None:
        """N, the number (or total weight) of the rows of the latest `fit`, if any."""
        return float(self._num_rows.numpy()) or None

    def compile(self, optimizer: Any = "adam", *args: Any, **kwargs: Any) -> None:
        """Configures training, as `keras.Model.compile`, but for the loss.

        Metrics compare the targets with the mean of the likelihood, in raw units.

        Raises:
            ValueError: For a `loss`: the likelihood is the loss.
        """
        bound = inspect.signature(super().compile).bind(optimizer, *args, **kwargs)
        if bound.arguments.get("loss") is not None:
            raise ValueError(
                "A BayesianModel's loss is the negative log likelihood of its "
                "`likelihood`; leave `loss` out, or use `keras.Model` with "
                "`kl_weight=1/N` in every layer. "
                f"Received: loss={bound.arguments['loss']!r}"
            )
        super().compile(optimizer, *args, **kwargs)

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles a loaded model as it was when it was saved."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        *args: Any,
        dataset_size: float | None = None,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains the model, as `keras.Model.fit`.

        Args:
            x: Inputs, or a dataset of (inputs, targets) or (inputs, targets, weights).
            y: Targets in raw units.
            *args: As for `keras.Model.fit`.
            dataset_size: The number N of training rows, where it cannot be counted:
                for a generator, or a dataset of unknown or infinite length.
            **kwargs: As for `keras.Model.fit`.

        From a generator neither N nor the targets can be read: pass `dataset_size` and
        call `model.likelihood.adapt(y)` with the training targets first.

        Raises:
            ValueError: Where N cannot be counted and `dataset_size` is not given, or
                the targets do not fit the likelihood.
        """
        arguments = inspect.signature(super().fit).bind(x, y, *args, **kwargs).arguments
        rows = training_rows(
            x,
            y,
            dataset_size=dataset_size,
            sample_weight=arguments.get("sample_weight"),
            class_weight=arguments.get("class_weight"),
            # Keras splits nothing off where it is given validation data.
            validation_split=arguments.get("validation_split") or 0.0
            if arguments.get("validation_data") is None
            else 0.0,
        )
        if rows.targets is None and not self.likelihood.adapted:
            raise ValueError(
                "The shift and scale of the targets cannot be read off a generator. "
                "Call `model.likelihood.adapt(y)` with the training targets before "
                f"`fit`. Received: x of type {type(x).__name__}"
            )
        steps, state = self._steps_taken, self._state()
        try:
            self._take_up(rows)
            return super().fit(x, y, *args, **kwargs)
        except BaseException:
            # A `fit` that took no step leaves nothing of its rows behind.
            if self._steps_taken == steps:
                for variable, value in state:
                    variable.assign(value)
            raise

    def _take_up(self, rows: TrainingRows) -> None:
        """Sets what training needs to know of its rows."""
        if rows.targets is not None:
            self.likelihood.check_targets(rows.targets)
            self.likelihood.adapt(rows.targets)
        self._num_rows.assign(rows.size)
        for layer in self.variational_layers:
            if layer.kl_weight_is_automatic:
                layer.kl_weight.assign(1.0 / rows.size)

    @property
    def _steps_taken(self) -> int:
        optimizer = getattr(self, "optimizer", None)
        return 0 if optimizer is None else int(optimizer.iterations.numpy())

    def _state(self) -> list[tuple[keras.Variable, Any]]:
        return [(v, v.numpy()) for v in self.non_trainable_variables]

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Returns loss, nll, kl and metrics, as `keras.Model.evaluate`.

        Each batch is evaluated with weights drawn anew, so two calls differ; for a
        figure that does not, see `predictive` and its `log_prob`.

        Raises:
            ValueError: Where the weight of a layer's KL divergence is not set.
        """
        for layer in self.variational_layers:
            if not layer.kl_weight_is_set:
                raise ValueError(
                    "The loss needs the weight 1/N of the KL divergence, which `fit` "
                    f"sets. Call `fit` first, or pass `kl_weight=1/N` to '{layer.name}'"
                    ". Received: kl_weight=None"
                )
        return super().evaluate(*args, **kwargs)

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        per_row = self.likelihood.negative_log_likelihood(y, y_pred)
        if sample_weight is None:
            weights = tf.ones_like(per_row)
        else:
            weights = tf.reshape(tf.cast(sample_weight, per_row.dtype), [-1])
        nll = tf.math.divide_no_nan(
            tf.reduce_sum(weights * per_row), tf.reduce_sum(weights)
        )
        kl = sum(layer.step_kl for layer in self.variational_layers)
        self._nll_tracker.update_state(per_row, sample_weight=weights)
        # Rows are the weights of `loss` too, so that the three add up.
        self._kl_tracker.update_state(kl, sample_weight=tf.size(per_row))
        return nll + sum(ops.sum(loss) for loss in self.losses)

    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None
    ) -> dict[str, Any]:
        means = self.likelihood.mean(y_pred)
        return super().compute_metrics(x, y, means, sample_weight=sample_weight)

    def predict_step(self, data: Any) -> Any:
        """Returns the likelihood's mean for one draw of the weights, in raw units."""
        x, _, _ = keras.utils.unpack_x_y_sample_weight(data)
        return self.likelihood.mean(self(x, training=False))

    def predictive(
        self, x: Any, num_samples: int = 100, method: str = "auto", seed: int = 0
    ) -> Predictive:
        """Computes the posterior predictive distribution p(y | x, data).

        Args:
            x: Inputs of the rows: an array, or a list or dictionary of arrays.
            num_samples: Number of draws from the posterior, two at the least.
            method: `"local"`, `"weight"` or `"auto"`: see `tfbbb.predictive`.
            seed: The same seed gives the same answer.

        Returns:
            A `tfbbb.Predictive`, in raw units.
        """
        return predictive(
            self,
            x,
            likelihood=self.likelihood,
            num_samples=num_samples,
            method=method,
            seed=seed,
        )

    def export_predictive(
        self, path: str | os.PathLike[str], **description: Any
    ) -> None:
        """Writes the posterior predictive as a SavedModel at `path`.

        See `tfbbb.export.write_saved_model` for its signatures and for what
        `description` can say of the table that the model was trained on.
        """
        from tfbbb.export import write_saved_model

        write_saved_model(self, path, **description)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "likelihood": likelihoods.serialize(self.likelihood),
        }
