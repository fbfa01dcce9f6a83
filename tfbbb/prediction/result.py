"""The result of a prediction: a distribution for every row."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfbbb.likelihoods import Likelihood
from tfbbb.prediction import mixture
from tfbbb.prediction.quantiles import checked_levels, quantiles

# Blocks of rows of the network's outputs, [rows, S, ..., P], in order.
OutputBlocks = Callable[[], Iterator[Any]]


class Predictive:
    """The posterior predictive distribution p(y | x, data) of each row.

    A uniform mixture of the likelihoods under S draws of the weights. Everything is in
    raw units, and shapes are those of the targets: [rows, k], or [rows, C] for classes,
    whose mean is that of the one-hot code. Make one with `BayesianModel.predictive` or
    `tfbbb.predictive`.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> prediction = model.predictive([[1.0, 2.0]], num_samples=50)
    >>> prediction
    Predictive(rows=1, targets=1, num_samples=50)
    >>> lower, upper = prediction.interval(0.9)
    >>> bool((lower < prediction.mean).all() and (prediction.mean < upper).all())
    True

    Attributes:
        num_samples: Number S of draws from the posterior.
    """

    def __init__(
        self,
        likelihood: Likelihood,
        likelihood_state: list[tuple[keras.Variable, Any]],
        summary: dict[str, Any],
        blocks: OutputBlocks,
        num_samples: int,
        seed: int,
    ):
        self.num_samples = num_samples
        self._likelihood = likelihood
        self._likelihood_state = likelihood_state
        self._summary = {name: np.asarray(value) for name, value in summary.items()}
        self._blocks = blocks
        self._seed = seed

    @property
    def mean(self) -> np.ndarray:
        """E[y], [rows, k]."""
        return self._summary["mean"]

    @property
    def variance(self) -> np.ndarray:
        """Var[y], [rows, k]: `epistemic + aleatoric`."""
        return self._summary["variance"]

    @property
    def stddev(self) -> np.ndarray:
        """Standard deviation of y, [rows, k]."""
        return np.sqrt(self.variance)

    @property
    def epistemic(self) -> np.ndarray:
        """Var_w[E[y | w]], [rows, k]: the variance that more data would lower."""
        return self._summary["epistemic"]

    @property
    def aleatoric(self) -> np.ndarray:
        """E_w[Var[y | w]], [rows, k]: the variance of the noise."""
        return self._summary["aleatoric"]

    @property
    def mean_standard_error(self) -> np.ndarray:
        """Monte Carlo standard error of `mean`, [rows, k]."""
        return self._summary["mean_standard_error"]

    @property
    def probabilities(self) -> np.ndarray:
        """Probabilities of the classes, [rows, C]."""
        return self._of_classes("probabilities")

    @property
    def entropy(self) -> np.ndarray:
        """Entropy of the predicted class, [rows], in nats."""
        return self._of_classes("entropy")

    @property
    def mutual_information(self) -> np.ndarray:
        """Mutual information of class and weights, [rows], in nats: epistemic."""
        return self._of_classes("mutual_information")

    def quantile(self, p: float | Sequence[float]) -> np.ndarray:
        """Returns quantiles of y, by inverting the mixture's distribution function.

        Args:
            p: A probability strictly between 0 and 1, or Q of them.

        Returns:
            [rows, k] for one probability, [rows, Q, k] for Q of them.

        Raises:
            ValueError: For unordered classes, or a probability of 0 or 1 or beyond.
        """
        if self._likelihood.task == "classification":
            raise ValueError(
                "Classes have no order and hence no quantiles; read `probabilities`, "
                "or draw labels with `sample`."
            )
        levels = checked_levels(p)
        found = self._of_blocks(
            lambda outputs: quantiles(self._likelihood, levels, outputs)
        )
        return found[:, 0] if np.ndim(p) == 0 else found

    def interval(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Returns the central interval that holds y with probability `level`.

        Returns:
            Lower and upper bounds, [rows, k] each.
        """
        checked_levels(level)
        bounds = self.quantile([0.5 - level / 2.0, 0.5 + level / 2.0])
        return bounds[:, 0], bounds[:, 1]

    def log_prob(self, y: Any) -> np.ndarray:
        """Returns log p(y | x, data) of each row, [rows], in nats.

        That is the log of the likelihood averaged over the draws, of all of a row's
        targets together.

        Args:
            y: Targets in raw units, [rows, k] (or [rows] for one target); for classes
                their indices or one-hot rows.
        """
        return self._of_blocks(
            lambda outputs, y: mixture.log_prob(self._likelihood, y, outputs),
            self._checked_targets(y),
        )

    def log_prob_of_draws(self, y: Any) -> np.ndarray:
        """Returns log p(y | x, w) of each row under each draw w, [rows, S], in nats.

        That of all of a row's targets together; `log_prob` is the log of an average
        over the draws, and the average of these is what the evidence lower bound has.

        Args:
            y: Targets in raw units, as for `log_prob`.
        """

        def of_draws(outputs: Any, y: np.ndarray) -> tf.Tensor:
            outputs = tf.cast(outputs, tf.float64)
            log_probs = self._likelihood.log_prob(y[:, np.newaxis], outputs)
            # A row may have several places, each with targets of its own.
            return tf.reduce_sum(log_probs, axis=list(range(2, len(log_probs.shape))))

        return self._of_blocks(of_draws, self._checked_targets(y))

    def sample(self, n: int, seed: int | None = None) -> np.ndarray:
        """Draws n values of y for each row, from the mixture.

        Rows are drawn independently of each other.

        Args:
            n: Number of draws.
            seed: Seed of the draws; None for that of the prediction.

        Returns:
            [n, rows, k]; for classes their indices, [n, rows].
        """
        if n < 1:
            raise ValueError(f"`n` must be at least 1. Received: n={n}")
        # NumPy takes no negative seed.
        seed = (self._seed if seed is None else seed) % 2**64
        generator = np.random.default_rng(seed)
        event_shape = self.mean.shape[1:]
        if self._likelihood.task == "classification":
            event_shape = (*event_shape[:-1], 1)
        shape = (len(self), n)
        components = generator.integers(self.num_samples, size=shape)
        normals = generator.standard_normal((*shape, *event_shape), dtype=np.float32)

        def drawn(outputs: Any, components: np.ndarray, normals: np.ndarray) -> Any:
            chosen = tf.gather(outputs, components, axis=1, batch_dims=1)
            return self._likelihood.sample(chosen, normals)

        return np.moveaxis(self._of_blocks(drawn, components, normals), 0, 1)

    def __len__(self) -> int:
        return len(self.mean)

    def __repr__(self) -> str:
        what = (
            f"classes={self.mean.shape[-1]}"
            if self._likelihood.task == "classification"
            else f"targets={self.mean.shape[-1]}"
        )
        return f"Predictive(rows={len(self)}, {what}, num_samples={self.num_samples})"

    def _checked_targets(self, y: Any) -> np.ndarray:
        targets = self._likelihood.check_targets(y)
        if len(targets) != len(self.mean):
            raise ValueError(
                f"There is one predictive distribution per row, {len(self.mean)} in "
                f"all. Received: {len(targets)} targets"
            )
        return targets

    def _of_blocks(
        self, compute: Callable[..., Any], *of_rows: np.ndarray
    ) -> np.ndarray:
        """Returns what `compute` makes of outputs and `of_rows`, block by block."""
        results, first = [], 0
        for outputs in self._blocks():
            rows = slice(first, first + len(outputs))
            first = rows.stop
            # The likelihood as it was: its noise may have been trained further.
            with keras.StatelessScope(state_mapping=self._likelihood_state):
                result = compute(outputs, *(array[rows] for array in of_rows))
            results.append(np.asarray(result))
        return np.concatenate(results)

    def _of_classes(self, name: str) -> np.ndarray:
        if name not in self._summary:
            raise AttributeError(
                f"`{name}` is defined for classes only. Read `mean`, `variance` or "
                "`quantile` of a regression."
            )
        return self._summary[name]
