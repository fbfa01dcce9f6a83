"""What is asked of a predictive distribution, as functions of a network's outputs."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import numpy as np


class Answers(Protocol):
    """Answers of the mixture of the likelihoods under S draws.

    `outputs` is [rows, S, ..., P] throughout: what the network gave for a row and draw,
    as the likelihood takes it. Answers are tensors in raw units, float64 but for
    samples.

    Attributes:
        task: `"regression"` or `"classification"`.
        ordered: Whether targets have a distribution function and quantiles.
        discrete: Whether targets are integers.
        noise_size: How many standard normals a sample takes.
        central_intervals: Whether intervals lie between two quantiles.
        classes: Names of the classes, None where there are none.
    """

    task: Literal["regression", "classification"]
    ordered: bool
    discrete: bool
    noise_size: int
    central_intervals: bool = True
    classes: Sequence[str] | None

    def check_targets(self, targets: Any) -> np.ndarray:
        """Returns targets, of one row each, in the shape that the answers take.

        Raises:
            ValueError: Where they cannot be targets.
        """

    def mean(self, outputs: Any) -> Any:
        """Returns E[y | x, w] of each draw, [rows, S, ..., k]."""

    def summary(
        self, summary: dict[str, Any], quantiles: Callable[[np.ndarray], Any]
    ) -> dict[str, Any]:
        """Returns the summary of what is answered; the same where nothing differs.

        Args:
            summary: That of the mixture.
            quantiles: Returns the answered quantiles of all rows at levels [Q].
        """
        return summary

    def reach(self, level: float) -> Any:
        """Returns how far intervals reach from the mean, in standard deviations.

        Of levels [...], [..., k]. That is infinitely far for a level of which nothing
        is known, and None where intervals lie between quantiles.
        """
        return None

    def quantiles(self, outputs: Any, levels: Any) -> Any:
        """Returns quantiles at levels [Q], [rows, Q, ..., k]."""

    def cdf(self, outputs: Any, values: Any) -> Any:
        """Returns P(y <= values), [rows, ..., k].

        Args:
            outputs: [rows, S, ..., P].
            values: Numbers [rows, ..., k]; of ordered classes k is 1.
        """

    def log_prob(self, outputs: Any, targets: Any) -> Any:
        """Returns the log of the average likelihood, [rows, ...], in nats."""

    def log_prob_of_draws(self, outputs: Any, targets: Any) -> Any:
        """Returns log p(targets | x, w) of each draw, [rows, S], in nats."""

    def sample(self, outputs: Any, draws: Any, noise: Any) -> Any:
        """Returns values of y, [rows, n, ..., k]; of classes indices, [rows, n, ...].

        Args:
            outputs: [rows, S, ..., P].
            draws: Which draw each value belongs to, [rows, n].
            noise: Standard normal noise, [rows, n, ..., noise_size].
        """
