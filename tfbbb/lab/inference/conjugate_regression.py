"""Linear regression with conjugate priors, and the factors of its variational q."""

import math
from collections.abc import Sequence

import numpy as np

from tfbbb.base.types import ArrayLike
from tfbbb.lab.inference.gamma import Gamma
from tfbbb.lab.inference.linear_model import PriorOfColumns
from tfbbb.lab.inference.natural_normal import NaturalNormal

_LOG_2PI = math.log(2.0 * math.pi)


class ConjugateRegression:
    """`y = X w + noise` with a posterior `q(w) q(gamma) prod_g q(lambda_g)`.

        y_i ~ N(x_i^T w, 1 / gamma),   w_j ~ N(0, variance_j / lambda_g)

    with gamma priors of gamma and lambda, or given values. Each update sets a factor to
    its optimum given the others (Bishop 2006, section 10.3), or moves its natural
    parameters a step of the way (Hoffman et al. 2013). `noise` is q(gamma), and
    `precisions` are q(lambda_g) of each prior: None where the value is given.
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        priors: Sequence[PriorOfColumns],
        noise: float | Gamma,
        *,
        factorised: bool = False,
    ):
        self._x, self._y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        self._priors = priors
        self._noise_prior = noise if isinstance(noise, Gamma) else None
        self._given_noise = None if isinstance(noise, Gamma) else noise
        self.factorised = factorised
        self._variances = np.empty(self._x.shape[1])
        for prior in priors:
            self._variances[prior.place] = prior.variance
        self.noise = self._noise_prior
        self.precisions = [
            None if prior.gamma is None else Gamma(*prior.gamma) for prior in priors
        ]
        # Natural parameters of q(w): precision times mean, and precision.
        self._linear = np.zeros_like(self._variances)
        precision = self._prior_precision
        self._precision = precision if factorised else np.diag(precision)
        self._find_moments()

    @property
    def noise_precision(self) -> float:
        """E[gamma]."""
        if self.noise is not None:
            return self.noise.mean
        assert self._given_noise is not None
        return self._given_noise**-2.0

    @property
    def _prior_precision(self) -> np.ndarray:
        """E[lambda_g] / variance_j of each weight, [d]."""
        found = 1.0 / self._variances
        for prior, precision in zip(self._priors, self.precisions, strict=True):
            if precision is not None:
                found[prior.place] *= precision.mean
        return found

    def _find_moments(self) -> None:
        natural = NaturalNormal(self._linear, self._precision)
        self.mean, self.covariance = natural.moments()

    @property
    def variances(self) -> np.ndarray:
        """Var[w_j] under q, [d]."""
        return self.covariance if self.factorised else np.diag(self.covariance)

    def update(self, rows: slice | np.ndarray | None = None, step: float = 1.0) -> None:
        """Updates all factors in turn."""
        self.update_weights(rows, step)
        self.update_noise(rows, step)
        self.update_precisions(step)

    def update_weights(
        self, rows: slice | np.ndarray | None = None, step: float = 1.0
    ) -> None:
        """Updates q(w); if the weights are independent, one factor after the other."""
        x, y, copies = self._some(rows)
        gamma = copies * self.noise_precision
        linear, prior = gamma * (x.T @ y), self._prior_precision
        if not self.factorised:
            precision = np.diag(prior) + gamma * (x.T @ x)
            self._precision = (1.0 - step) * self._precision + step * precision
            self._linear = (1.0 - step) * self._linear + step * linear
            self._find_moments()
            return
        gram = gamma * (x.T @ x)
        for j, products in enumerate(gram):
            # What the other weights leave unexplained.
            of_others = products @ self.mean - products[j] * self.mean[j]
            self._linear[j] += step * (linear[j] - of_others - self._linear[j])
            self._precision[j] += step * (prior[j] + products[j] - self._precision[j])
            self.mean[j] = self._linear[j] / self._precision[j]
        self._find_moments()

    def update_noise(
        self, rows: slice | np.ndarray | None = None, step: float = 1.0
    ) -> None:
        """Updates q(gamma)."""
        if self.noise is None or self._noise_prior is None:
            return
        x, y, copies = self._some(rows)
        optimum = Gamma(
            self._noise_prior.shape + 0.5 * len(self._y),
            self._noise_prior.rate + 0.5 * copies * self._expected_squares(x, y),
        )
        self.noise = self.noise.towards(optimum, step)

    def update_precisions(self, step: float = 1.0) -> None:
        """Updates q(lambda_g) of each prior."""
        squares = (self.mean**2 + self.variances) / self._variances
        for index, prior in enumerate(self._priors):
            precision = self.precisions[index]
            if precision is not None and prior.gamma is not None:
                of_prior = squares[prior.place]
                optimum = Gamma(
                    prior.gamma[0] + 0.5 * of_prior.size,
                    prior.gamma[1] + 0.5 * float(of_prior.sum()),
                )
                self.precisions[index] = precision.towards(optimum, step)

    def bound(self) -> float:
        """Returns the evidence lower bound of all rows, in nats."""
        size = len(self._y)
        if self.noise is None:
            log_gamma = math.log(self.noise_precision)
        else:
            log_gamma = self.noise.mean_log
        expected = 0.5 * size * (log_gamma - _LOG_2PI)
        expected -= (
            0.5 * self.noise_precision * self._expected_squares(self._x, self._y)
        )
        squares = (self.mean**2 + self.variances) * self._prior_precision
        log_prior = -0.5 * (squares + np.log(self._variances)).sum()
        divergences = 0.0
        for prior, precision in zip(self._priors, self.precisions, strict=True):
            if precision is not None and prior.gamma is not None:
                number = len(self._variances[prior.place])
                log_prior += 0.5 * number * precision.mean_log
                divergences += precision.kl_divergence(Gamma(*prior.gamma))
        if self.noise is not None and self._noise_prior is not None:
            divergences += self.noise.kl_divergence(self._noise_prior)
        # Entropy of q(w); its log 2 pi is that of the prior.
        if self.factorised:
            log_det = np.log(self.covariance).sum()
        else:
            log_det = np.linalg.slogdet(self.covariance)[1]
        entropy = 0.5 * (log_det + len(self.mean))
        return float(expected + log_prior + entropy - divergences)

    def _some(
        self, rows: slice | np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Returns some rows, and the number of rows that each stands for."""
        if rows is None:
            return self._x, self._y, 1.0
        y = self._y[rows]
        return self._x[rows], y, len(self._y) / len(y)

    def _expected_squares(self, x: np.ndarray, y: np.ndarray) -> float:
        """Returns E[sum of (y - x^T w)^2] under q(w)."""
        if self.factorised:
            spread = (x**2 @ self.covariance).sum()
        else:
            spread = ((x @ self.covariance) * x).sum()
        return float(((y - x @ self.mean) ** 2).sum() + spread)
