"""Prior precisions and noise by the maximum of Laplace's evidence."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import optimize

from tfbbb.inference.curvature import Curvature

# Natural logarithms of the smallest and the largest precision that is tried.
_RANGE = (-16.0, 25.0)


@dataclass
class Evidence:
    """Laplace's log evidence as a function of the priors' precisions and of the noise.

    `log p(y) = log p(y | w) + log p(w) + D/2 log 2 pi - 1/2 log |H|` with `H = factor *
    C + prior` and `factor = (noise of the model / noise)^2`. The prior of each tensor
    is normal around 0, so its 2 pi cancel those of the volume. `means` are the weights
    w, one flat tensor each.
    """

    curvature: Curvature
    means: Sequence[np.ndarray]
    _sizes: np.ndarray = field(init=False)
    _squares: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self._sizes = np.array([len(mean) for mean in self.means], dtype=float)
        self._squares = np.array([mean @ mean for mean in self.means])

    def log_likelihood(self, factor: float) -> float:
        """Returns log p(y | w) with the noise divided by the root of `factor`."""
        if factor == 1.0:
            return self.curvature.log_likelihood
        assert self.curvature.squares is not None
        return (
            self.curvature.log_likelihood
            + 0.5 * self.curvature.num_values * np.log(factor)
            - 0.5 * (factor - 1.0) * self.curvature.squares
        )

    def log_evidence(self, prior: np.ndarray, factor: float) -> float:
        """Returns the log evidence in nats, at precisions [tensors] of the priors."""
        determinant = sum(
            block.log_determinant(prior[list(block.tensors)], factor)
            for block in self.curvature.blocks
        )
        of_prior = (self._sizes * np.log(prior) - prior * self._squares).sum()
        return float(self.log_likelihood(factor) + 0.5 * (of_prior - determinant))

    def maximise(
        self, group_sizes: Sequence[int], *, tune_noise: bool
    ) -> tuple[np.ndarray, float]:
        """Returns the precisions [tensors] and the factor with the largest evidence.

        A gradient search (L-BFGS-B) over their logarithms; `group_sizes` counts the
        successive tensors that share a precision.
        """
        number = len(group_sizes)
        groups = np.repeat(np.arange(number), group_sizes)
        residual, num_values = self.curvature.squares, self.curvature.num_values

        def unpack(point: np.ndarray) -> tuple[np.ndarray, float]:
            factor = float(np.exp(point[number])) if tune_noise else 1.0
            return np.exp(point[:number])[groups], factor

        def loss(point: np.ndarray) -> tuple[float, np.ndarray]:
            prior, factor = unpack(point)
            variances = np.empty(len(prior))
            for block in self.curvature.blocks:
                own = list(block.tensors)
                variances[own] = block.variances(prior[own], factor)
            determined = self._sizes - prior * variances
            of_tensors = 0.5 * (determined - prior * self._squares)
            gradient = np.bincount(groups, of_tensors, minlength=number)
            if tune_noise:
                assert residual is not None
                # factor * trace(C H^-1) = D - trace(prior H^-1)
                of_noise = num_values - factor * residual - determined.sum()
                gradient = np.append(gradient, 0.5 * of_noise)
            return -self.log_evidence(prior, factor), -gradient

        totals = np.bincount(groups, self._squares, minlength=number)
        counts = np.bincount(groups, self._sizes, minlength=number)
        start = np.clip(np.log(counts / (totals + 1e-12)), -3.0, 8.0)
        if tune_noise:
            assert residual is not None
            noise = np.clip(np.log(num_values / max(residual, 1e-12)), *_RANGE)
            start = np.append(start, noise)
        found = optimize.minimize(
            loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[_RANGE] * len(start),
            options={"ftol": 1e-14, "gtol": 1e-7, "maxiter": 500},
        )
        return unpack(found.x)
