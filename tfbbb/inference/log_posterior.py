"""The log posterior density that samplers work on."""

import numpy as np
import tensorflow as tf

from tfbbb.base.types import ArrayLike, Structure
from tfbbb.bayes.posteriors.posterior import HALF_LOG_2PI
from tfbbb.inference.batches import Batches
from tfbbb.inference.network_function import NetworkFunction
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.conversion import with_posterior


class LogPosterior:
    """The log density of weights and learned noise given all rows, up to a constant.

    `log p(w, a | D) = sum_i c_i log p(y_i | f(x_i, w), a) + log p(w) + log p(a) + c`
    with the sample weights c_i. A *state* [D + L] is a weight vector w, followed by the
    L raw parameters a that the likelihood learns, such as the noise before its
    softplus. Their prior is `N(a; a_0, learned_scale^2)` around the values a_0 of a
    likelihood that has seen no data. Every method takes K states at once. The rows are
    held in memory. Priors with variables keep their current values. The given model, of
    one member, stays as it is; `model` is a copy with point posteriors, and its
    likelihood is adapted to the targets.
    """

    def __init__(
        self,
        model: BayesianModel,
        x: Structure,
        y: ArrayLike = None,
        sample_weight: ArrayLike = None,
        learned_scale: float = 2.0,
    ):
        self.model = with_posterior(model, "point")
        batches = Batches(x, y, sample_weight, batch_size=2**30, model=self.model)
        with self.model.training_on(batches.rows):
            pass
        self.rows = batches.together()
        self.num_rows = int(self.rows[2].shape[0])
        self.network = NetworkFunction(self.model)
        likelihood = self.model.likelihood
        fresh = type(likelihood).from_config(likelihood.get_config())
        fresh.build(self.model.outputs[0].shape)
        starts = [variable.numpy().ravel() for variable in fresh.learned_variables]
        self.learned_sizes = [len(start) for start in starts]
        self._learned_start = np.concatenate([*starts, np.zeros(0)]).astype("float32")
        self._learned_scale = learned_scale
        self.size = self.network.size + len(self._learned_start)

    def log_likelihood(
        self,
        states: tf.Tensor,
        rows: tuple[Structure, tf.Tensor, tf.Tensor] | None = None,
    ) -> tf.Tensor:
        """Returns `sum_i c_i log p(y_i | x_i, state)`, [K], of all or some rows."""
        x, y, weights = self.rows if rows is None else rows
        values, learned = self._split(states)
        by_row = self.network.log_likelihood(values, x, y, learned)
        return tf.linalg.matvec(by_row, weights)

    def log_prior(self, states: tf.Tensor) -> tf.Tensor:
        """Returns log p(w) + log p(a), [K]."""
        values, _ = self._split(states)
        log_prior = self.network.log_prior(values)
        if len(self._learned_start):
            raw = states[:, self.network.size :]
            z = (raw - self._learned_start) / self._learned_scale
            log_normal = -0.5 * z**2 - HALF_LOG_2PI - np.log(self._learned_scale)
            log_prior += tf.reduce_sum(log_normal, axis=-1)
        return log_prior

    def __call__(self, states: tf.Tensor) -> tf.Tensor:
        """Returns the log density of states [K, D + L], [K]."""
        return self.log_likelihood(states) + self.log_prior(states)

    def outputs(self, states: tf.Tensor, x: Structure) -> tf.Tensor:
        """Returns the network's outputs, [K, rows, ..., P]."""
        return self.network.outputs(self._split(states)[0], x)

    def prior_scale(self) -> np.ndarray:
        """Returns the scale of the prior of each entry, [D + L].

        The slope of a normal log density of scale s changes by `-2 / s^2` from -1 to 1.
        """
        ends = tf.constant([[-1.0], [1.0]]) * tf.ones([1, self.size])
        with tf.GradientTape() as tape:
            tape.watch(ends)
            log_prior = self.log_prior(ends)
        below, above = tape.gradient(log_prior, ends).numpy()
        return np.sqrt(2.0 / np.maximum(below - above, 1e-6))

    def starts(self, count: int, seed: int) -> np.ndarray:
        """Returns `count` states: the model's weights, then draws of new networks.

        Those are independent normals of the scale of the prior or `1 / sqrt(fan_in)`,
        whichever is smaller.
        """
        vectors = np.random.default_rng(seed).normal(size=(count, self.network.size))
        fan_in = [np.full(w.size, w.fan_in, float) for w in self.network.weights]
        scale = self.prior_scale()[: self.network.size]
        vectors *= np.minimum(scale, 1.0 / np.sqrt(np.concatenate(fan_in)))
        vectors[0] = self.network.means()[0]
        learned = np.tile(self._learned_start, (count, 1))
        return np.concatenate([vectors, learned], axis=1)

    def as_model(self, states: ArrayLike) -> BayesianModel:
        """Returns a model whose members have weights and noise of states [K, D + L]."""
        states = np.asarray(states, np.float32)
        single = len(states) == 1
        members = with_posterior(self.model, "point", members=len(states))
        values, learned = self._split(tf.constant(states))
        for weight, value in zip(NetworkFunction(members).weights, values, strict=True):
            weight.variables["mean"].assign(value[0] if single else value)
        for variable, value in zip(
            members.likelihood.learned_variables, learned, strict=True
        ):
            variable.assign(value[0] if single else value)
        return members

    def _split(self, states: tf.Tensor) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        values = self.network.split(states[:, : self.network.size])
        if not self.learned_sizes:
            return values, []
        learned = states[:, self.network.size :]
        return values, tf.split(learned, self.learned_sizes, axis=-1)
