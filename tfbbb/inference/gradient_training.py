"""Methods that train by stochastic gradients, and those that need no more."""

from typing import Any

import keras
import numpy as np

from tfbbb.base.numbers import positive_integer, positive_number
from tfbbb.base.private_apis import sublayers
from tfbbb.base.types import (
    ArrayLike,
    Identifier,
    LearningRate,
    Options,
    Structure,
)
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.inference.batches import Batches
from tfbbb.inference.method import InferenceMethod, as_bayesian_model, dropping_layers
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.conversion import with_posterior
from tfbbb.model.optimizers import Adam
from tfbbb.prediction.dropout import check_dropout


class GradientTraining(InferenceMethod):
    """Trains by minibatches with Keras' `fit`, at a learning rate that decays to 0.

    The rate follows half a cosine over all steps, so that the result does not depend on
    the last batch. A subclass says what is trained, how, and what becomes of it.

    Args:
        epochs: Number of passes over the rows.
        batch_size: Rows of a step; a dataset has its own batches.
        learning_rate: The learning rate at the start.
    """

    def __init__(
        self, epochs: int = 200, batch_size: int = 32, learning_rate: float = 0.01
    ):
        self.epochs = positive_integer("epochs", epochs)
        self.batch_size = positive_integer("batch_size", batch_size)
        self.learning_rate = positive_number("learning_rate", learning_rate)

    def fit(
        self,
        model: keras.Model,
        x: Structure,
        y: ArrayLike = None,
        *,
        likelihood: Identifier | Likelihood | None = None,
        sample_weight: ArrayLike = None,
        verbose: int | str = "auto",
    ) -> BayesianModel:
        """Returns the trained model."""
        points = self._start(as_bayesian_model(model, likelihood))
        batches = Batches(x, y, sample_weight, self.batch_size)
        optimizer, callbacks = self._optimizer(batches), self._callbacks(points)
        points.compile(optimizer)
        options: Options = {}
        if y is not None:
            options = {"batch_size": self.batch_size, "sample_weight": sample_weight}
            y = np.asarray(y)
        history = points.fit(
            x, y, epochs=self.epochs, verbose=verbose, callbacks=callbacks, **options
        ).history
        result = self._posterior(points, optimizer, *callbacks)
        losses = {name: history[name][-1] for name in ("loss", "nll", "kl")}
        result.inference = self.result(**losses)
        return result

    def _start(self, model: BayesianModel) -> BayesianModel:
        """Returns a new model with the posteriors that are trained."""
        return with_posterior(model, "point")

    def _optimizer(self, batches: Batches) -> keras.optimizers.Optimizer:
        return Adam(self.decay(batches))

    def _callbacks(self, points: BayesianModel) -> list[keras.callbacks.Callback]:
        """Returns what observes the training, and is given to `_posterior`."""
        return []

    def _posterior(
        self, points: BayesianModel, optimizer: Any, *callbacks: Any
    ) -> BayesianModel:
        """Returns the model with the posterior, from the trained model."""
        return points

    def decay(self, batches: Batches) -> LearningRate:
        """Returns the schedule of the learning rate."""
        steps = max(1, self.epochs * len(batches))
        return keras.optimizers.schedules.CosineDecay(self.learning_rate, steps)


class MAP(GradientTraining):
    """The mode of the posterior: `argmax_w log p(D | w) + log p(w)`.

    Returns `point` posteriors with the priors of the model. On a linear network with
    noise s and normal priors of scale r they are those of ridge regression with the
    penalty `s^2 / r^2`. The mode depends on the units of the weights; a learned noise
    has no prior and is at its maximum likelihood.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.linspace(-1, 1, 20, dtype="float32")[:, np.newaxis]
    >>> network = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    >>> method = tfbbb.inference.MAP(epochs=2)
    >>> model = method.fit(network, x, 3.0 * x, likelihood="normal", verbose=0)
    >>> model.variational_layers[0].posterior
    Point()
    """


class MaximumLikelihood(GradientTraining):
    """The weights that make the data most likely: `argmax_w log p(D | w)`.

    Returns `point` posteriors without priors. On a linear network with normal noise
    they are those of least squares.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.linspace(-1, 1, 640, dtype="float32")[:, np.newaxis]
    >>> network = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    >>> method = tfbbb.inference.MaximumLikelihood(epochs=5, learning_rate=0.1)
    >>> model = method.fit(network, x, 3.0 * x, likelihood="normal", verbose=0)
    >>> round(float(model.variational_layers[0].kernel.mean[0, 0]), 2)
    3.0

    Args:
        learning_rate: The learning rate of Adam at the start; it decays to 0.
    """

    def _start(self, model: BayesianModel) -> BayesianModel:
        return with_posterior(model, "point", prior=None, bias_prior=None)


class DeepEnsemble(GradientTraining):
    """K networks from independent starts (Lakshminarayanan et al. 2017).

    Returns `point` posteriors with `members=K`, each at a mode of its own: of the
    posterior, or with `prior=False` of the likelihood. All train at once, as one
    network, on the same batches, and each learns its own noise. The spread between
    members is epistemic; it is that of the modes, not of the posterior around them.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.linspace(-1, 1, 20, dtype="float32")[:, np.newaxis]
    >>> network = keras.Sequential([
    ...     keras.Input((1,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(1)
    ... ])
    >>> method = tfbbb.inference.DeepEnsemble(members=3, epochs=2)
    >>> model = method.fit(network, x, x**2, likelihood="normal", verbose=0)
    >>> len(model.members)
    3

    Args:
        members: Number K of networks.
        prior: Whether the priors of the model count (maximum a posteriori).
        learning_rate: The learning rate of Adam at the start; it decays to 0.
    """

    def __init__(
        self,
        members: int = 5,
        prior: bool = True,
        epochs: int = 200,
        batch_size: int = 32,
        learning_rate: float = 0.01,
    ):
        super().__init__(epochs, batch_size, learning_rate)
        self.members = positive_integer("members", members)
        self.prior = bool(prior)

    def _start(self, model: BayesianModel) -> BayesianModel:
        without = {} if self.prior else {"prior": None, "bias_prior": None}
        return with_posterior(
            model, "point", members=self.members, same_start=False, **without
        )


class MCDropout(GradientTraining):
    """The masks of dropout as q(w) (Gal and Ghahramani 2016).

    A weight of q is `w = M diag(z)` with the trained values M and the random masks z of
    the network's dropout layers. Training minimises the loss of `MAP` with dropout on.

    Returns `point` posteriors, which hold M; the masks stay in the dropout layers, so
    **ask for them in each prediction**: `model.predictive(x, include_dropout=True)`.
    Other predictions, and exported models, use M alone. The spread of this q is set by
    the rates and does not shrink with more data.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.linspace(-1, 1, 20, dtype="float32")[:, np.newaxis]
    >>> network = keras.Sequential([
    ...     keras.Input((1,)),
    ...     keras.layers.Dense(32, "relu"),
    ...     keras.layers.Dropout(0.1),
    ...     keras.layers.Dense(1),
    ... ])
    >>> method = tfbbb.inference.MCDropout(epochs=2)
    >>> model = method.fit(network, x, x**2, likelihood="normal", verbose=0)
    >>> bool((model.predictive(x, include_dropout=True).epistemic > 0.0).all())
    True

    Args:
        learning_rate: The learning rate of Adam at the start; it decays to 0.
    """

    def _start(self, model: BayesianModel) -> BayesianModel:
        if not dropping_layers(model):
            raise ValueError(
                "MCDropout needs dropout layers, whose masks are its posterior. Put "
                "`keras.layers.Dropout` before layers with weights. "
                f"Received: layers {[layer.name for layer in model.layers]}"
            )
        check_dropout(model, sublayers(model))
        return super()._start(model)
