"""The fully connected layer."""

import keras

from tfbbb.base.types import Tensor
from tfbbb.bayes.estimators import Estimator
from tfbbb.bayes.estimators.drawn_kernel import matmul
from tfbbb.layers.linear_variational import LinearVariationalLayer


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class DenseVariational(LinearVariationalLayer, keras.layers.Dense):
    """A densely connected layer whose kernel and bias have a posterior distribution.

    `output = activation(input @ kernel + bias)`, `kernel, bias ~ q`

    It trains by Bayes by backprop (Blundell et al. 2015): the loss of a minibatch is
    the mean negative log likelihood of its rows plus `kl_weight * KL(q || p)`, which
    with `kl_weight = 1/N` estimates the negative evidence lower bound over N.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x, y = np.random.normal(size=(80, 3)), np.random.normal(size=(80, 1))
    >>> model = keras.Sequential([
    ...     tfbbb.layers.DenseVariational(16, activation="relu", kl_weight=1 / 80),
    ...     tfbbb.layers.DenseVariational(1, kl_weight=1 / 80),
    ... ])
    >>> model.compile("adam", loss="mse")
    >>> history = model.fit(x, y, verbose=0)
    >>> sorted(history.history)
    ['loss']

    Args:
        posterior: q of the kernel: a name such as `"mean_field_normal"` or `"point"`,
            an object of `tfbbb.posteriors`, or a class of distributions of TensorFlow
            Probability. The default is `MeanFieldNormal(initial_scale=0.02)`: standard
            deviations start at `0.02/sqrt(fan_in)`, of `fan_in` inputs.
        prior: p of the kernel: a name such as `"scale_mixture_normal"`, an object of
            `tfbbb.priors`, or a distribution of TensorFlow Probability. The default is
            `Normal(scale=0.5)`; the name `"normal"` stands for a standard deviation of
            `1/sqrt(fan_in)`. None for a point without one (maximum likelihood).
        estimator: How noise reaches the output: `"local"` draws pre-activations,
            `"weight"` one kernel per step, `"flipout"` a kernel per row by random
            signs; `"auto"` takes `"local"` if it is known to be exact (inputs of rank
            2, called once in a functional or sequential model), else `"flipout"`, else
            an estimator that can train the posterior. `"score_function"` needs no
            gradient of the draws; `"closed_form"` trains the last layer of a
            `tfbbb.BayesianModel` without draws. `tfbbb.estimators` has them as objects,
            with options.

    Input shape:
        [batch, ..., input_dim].

    Output shape:
        [batch, ..., units].
    """

    def linear(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        return matmul(inputs, kernel)

    def can_use(self, estimator: Estimator) -> bool:
        return True

    def is_local_exact(self, input_rank: int, calls: int | None) -> bool:
        return input_rank == 2 and calls == 1
