"""The base class of recalibrations, which is itself the identity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from tfbbb.base import array_ops as ops
from tfbbb.base.strategy import Registry, Strategy
from tfbbb.base.types import ArrayLike, Structure, Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.answers import Quantiles, Summary
from tfbbb.prediction.mixture import Mixture
from tfbbb.prediction.result import Predictive

# Parts of the summary that are variances.
VARIANCES = ("variance", "epistemic", "aleatoric", "between_members")


class Recalibration(Strategy):
    """Transforms the predictive distribution of a model into a calibrated one.

    A recalibration is fitted once on held-out rows. It acts on the *mixture* of the
    likelihoods under the draws, or on the outputs of the network before the likelihood.
    Its methods compute the quantities of a prediction; this base class returns those of
    the mixture unchanged. They compute tensors and arrays by the same
    formulas: see `tfbbb.base.array_ops`.

    Attributes:
        least_rows: Smallest number of rows for a fit.
        acts_on_outputs: Whether the recalibration changes the outputs of the network.
        conformal: Whether intervals or prediction sets have guaranteed coverage: see
            `tfbbb.recalibration.conformal.Conformal`.
    """

    least_rows: int = 1
    acts_on_outputs: bool = False
    conformal: bool = False

    @property
    def density(self) -> Recalibration:
        """The recalibration of everything but intervals and prediction sets."""
        return self

    @property
    def of_answers(self) -> Recalibration:
        """The part of the density that acts on the mixture, not on the outputs."""
        return IDENTITY if self.density.acts_on_outputs else self.density

    def of_target(self, target: int) -> Recalibration:
        """Returns the recalibration of one of several targets, by its place."""
        return self

    def check(self, likelihood: Likelihood) -> None:
        """Raises ValueError if the recalibration does not suit a likelihood."""

    def fitted(
        self,
        likelihood: Likelihood,
        prediction: Predictive,
        targets: np.ndarray,
        weights: np.ndarray | None = None,
    ) -> Self:
        """Returns the recalibration of this class that fits held-out rows best.

        The prediction is not recalibrated, and the targets are from
        `likelihood.check_targets`. A row of weight 2 counts as two rows.
        """
        return self

    def wider(self, factor: float) -> Recalibration:
        """Returns one whose logits are divided, or spread multiplied, by a factor.

        It is the same where the recalibration has no such factor.
        """
        return self

    def outputs(self, likelihood: Likelihood, outputs: Tensor) -> Tensor:
        """Returns the transformed outputs of the network."""
        return outputs

    def summary(self, summary: Summary, quantiles: Quantiles) -> Summary:
        """Returns the summary of the recalibrated distribution from the mixture's.

        Its entries are [rows, ..., k], and quantiles of levels [Q] [rows, Q, ..., k].
        """
        return summary

    def quantiles(self, mixture: Mixture, levels: ArrayLike) -> Tensor:
        """Returns quantiles at levels [Q], [rows, Q, ..., k]."""
        return mixture.quantiles(levels)

    def reach(self, level: ArrayLike, groups: np.ndarray | None = None) -> np.ndarray:
        """Returns the greatest score that conformal intervals or sets contain.

        The score is how far the target is out in its distribution, in standard
        deviations of a normal one, or, of a class, the probability of the classes that
        are more probable. For levels [...] the result is [..., k], with groups
        [rows, ..., k]: infinite for a level that the held-out rows say nothing about.
        """
        raise NotImplementedError(f"{type(self).__name__} is not conformal.")

    def groups(self, inputs: Structure) -> np.ndarray | None:
        """Returns the index of each row's group, [rows]; None without groups."""
        return None

    def group_numbers(self, labels: ArrayLike) -> np.ndarray | None:
        """Returns the index of the group of each label, [rows]; None without groups."""
        return None

    def cdf(self, mixture: Mixture, values: ArrayLike) -> Tensor:
        """Returns P(y <= values), [rows, ..., k]."""
        return mixture.cdf(values)

    def change_of_variables(
        self, mixture: Mixture, targets: ArrayLike
    ) -> tuple[ArrayLike, Tensor | None]:
        """Returns the values at which to evaluate the density, and its log factor.

        The density of y is `p(values) exp(log_factor)`, with a `log_factor` of
        [rows, ...] or []; None for 0.
        """
        return targets, None

    def log_prob(self, mixture: Mixture, targets: ArrayLike) -> Tensor:
        """Returns the log density or mass of each row's targets, [rows, ...]."""
        values, log_factor = self.change_of_variables(mixture, targets)
        log_probs = mixture.log_prob(values)
        return log_probs if log_factor is None else log_probs + log_factor

    def log_prob_of_draws(self, mixture: Mixture, targets: ArrayLike) -> Tensor:
        """Returns the log density of all targets of a row under each draw, [rows, S].

        `log_prob` is the log of the average of the densities over the draws.
        """
        values, log_factor = self.change_of_variables(mixture, targets)
        log_probs = mixture.log_prob_of_draws(values)
        if log_factor is not None:
            by_row = len(log_factor.shape) > 0
            log_probs = log_probs + (
                log_factor[:, ops.newaxis] if by_row else log_factor
            )
        # A row may have several places, each with its own targets.
        return ops.reduce_sum(log_probs, axis=list(range(2, len(log_probs.shape))))

    def sample(self, mixture: Mixture, components: Tensor, noise: Tensor) -> Tensor:
        """Returns draws, [rows, n, ..., k], of classes [rows, n, ...].

        `components` are the components of the draws, [rows, n], and `noise` is standard
        normal, [rows, n, ..., `noise_size`].
        """
        return mixture.sample(components, noise)


IDENTITY = Recalibration()
registry = Registry(Recalibration, package="tfbbb.recalibration")
register = registry.register


def described(description: Mapping[str, Any]) -> Recalibration:
    """Returns the recalibration of a class and a config, by their names in files.

    Those of this package need no Keras.
    """
    for cls in registry.classes.values():
        if cls.__name__ == description["class_name"]:
            return cls.from_config(description["config"])
    found: Recalibration = registry.deserialize(dict(description))
    return found
