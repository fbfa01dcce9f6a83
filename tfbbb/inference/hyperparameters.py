"""Prior precisions and noise by the maximum of Laplace's evidence."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import optimize

from tfbbb.bayes.posteriors.normal_posterior import HALF_LOG_2PI
from tfbbb.inference.curvature import Curvature

# Natural logarithms of the smallest and the largest precision that is tried.
_RANGE = (-16.0, 25.0)


@dataclass
class Evidence:
    """Laplace's log evidence as a function of the prior's precision and of the noise.

        log p(y) = log p(y | w) + log p(w) + D/2 log 2 pi - 1/2 log |H|,
        H = factor * C + prior,   factor = (noise of the model / noise)^2

    Args:
        curvature: Curvature and log likelihood at w.
        means: The weights w, one flat tensor each.
    """

    curvature: Curvature
    means: Sequence[np.ndarray]
    _squares: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self._squares = [float(mean @ mean) for mean in self.means]

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

    def log_evidence(
        self, prior: Sequence[np.ndarray], factor: float, log_prior: float
    ) -> float:
        """Returns the log evidence in nats.

        Args:
            prior: The prior's curvature of each tensor, [n] each.
            factor: Factor of the curvature.
            log_prior: log p(w).
        """
        determinant = sum(
            block.log_determinant([prior[i] for i in block.tensors], factor)
            for block in self.curvature.blocks
        )
        size = sum(len(mean) for mean in self.means)
        volume = size * HALF_LOG_2PI - 0.5 * determinant
        return float(self.log_likelihood(factor) + log_prior + volume)

    def normal_log_prior(self, precisions: Sequence[float]) -> float:
        """Returns log p(w) of normal priors with a precision for each tensor."""
        return sum(
            -0.5 * precision * square
            + len(mean) * (0.5 * np.log(precision) - HALF_LOG_2PI)
            for precision, square, mean in zip(
                precisions, self._squares, self.means, strict=True
            )
        )

    def maximise(
        self,
        groups: Sequence[int] | None,
        prior: Sequence[np.ndarray],
        *,
        factor: float,
        tune_noise: bool,
    ) -> tuple[list[np.ndarray], float]:
        """Returns the prior curvatures and the factor with the largest evidence.

        A gradient search (L-BFGS-B) over the logarithms of precisions and factor.
        """
        number = 0 if groups is None else max(groups) + 1
        membership = np.asarray(groups if groups is not None else [], dtype=int)
        sizes = np.array([len(mean) for mean in self.means], dtype=float)
        squares = np.array(self._squares)

        def unpack(point: np.ndarray) -> tuple[list[np.ndarray], float]:
            chosen = float(np.exp(point[number])) if tune_noise else factor
            if groups is None:
                return list(prior), chosen
            values = np.exp(point[:number])[membership]
            return [np.full(int(n), v) for n, v in zip(sizes, values, strict=True)], (
                chosen
            )

        def loss(point: np.ndarray) -> tuple[float, np.ndarray]:
            priors, chosen = unpack(point)
            determinant, traces = 0.0, np.zeros(len(sizes))
            for block in self.curvature.blocks:
                own = [priors[i] for i in block.tensors]
                determinant += block.log_determinant(own, chosen)
                traces[list(block.tensors)] = block.traces(own, chosen)
            value = self.log_likelihood(chosen) - 0.5 * determinant
            gradient = np.zeros(len(point))
            if groups is not None:
                precisions = np.array([each[0] for each in priors])
                value += float(
                    (
                        0.5 * sizes * np.log(precisions) - 0.5 * precisions * squares
                    ).sum()
                )
                each = 0.5 * (sizes - precisions * squares - traces)
                gradient[:number] = np.bincount(membership, each, minlength=number)
            if tune_noise:
                residual = self.curvature.squares
                assert residual is not None
                # factor * trace(C H^-1) = D - trace(prior H^-1)
                gradient[number] = 0.5 * (
                    self.curvature.num_values
                    - chosen * residual
                    - (sizes.sum() - traces.sum())
                )
            return -value, -gradient

        start = np.zeros(number + tune_noise)
        if groups is not None:
            totals = np.bincount(membership, squares, minlength=number)
            counts = np.bincount(membership, sizes, minlength=number)
            start[:number] = np.clip(np.log(counts / (totals + 1e-12)), -3.0, 8.0)
        if tune_noise:
            assert self.curvature.squares is not None
            share = self.curvature.num_values / max(self.curvature.squares, 1e-12)
            start[number] = np.clip(np.log(share), *_RANGE)
        if not len(start):
            return list(prior), factor
        found = optimize.minimize(
            loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[_RANGE] * len(start),
            options={"ftol": 1e-14, "gtol": 1e-7, "maxiter": 500},
        )
        return unpack(found.x)
