"""Curves of one input, whose posteriors `inference` compares."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

_GRID = 41


@dataclass(frozen=True)
class Curve:
    """Targets that are a function of one input, and noise.

    Attributes:
        function: Returns targets, given inputs and standard normal noise.
        inputs: Range of the training inputs.
        shown: Range of the inputs that are predicted.
        rows: Number of training rows.
    """

    function: Callable[[np.ndarray, np.ndarray], np.ndarray]
    inputs: tuple[float, float]
    shown: tuple[float, float]
    rows: int

    def training_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns inputs and targets, [rows] each."""
        random = np.random.default_rng(1)
        x = random.uniform(*self.inputs, self.rows)
        return x, self.function(x, random.normal(size=len(x)))

    def test_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns evenly spaced inputs, also beyond the training rows, and targets."""
        x = np.linspace(*self.shown, _GRID)
        return x, self.function(x, np.random.default_rng(2).normal(size=len(x)))


def cubic(x: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Returns `x^3 + e`, e ~ N(0, 9) (Hernández-Lobato and Adams 2015, section 5.1)."""
    return x**3 + 3.0 * noise


def waves(x: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Returns the curve of Blundell et al. 2015, section 5.2, with e ~ N(0, 0.02^2).

    `y = x + 0.3 sin(2 pi (x + e)) + 0.3 sin(4 pi (x + e)) + e`
    """
    e = 0.02 * noise
    shifted = 2.0 * math.pi * (x + e)
    return x + 0.3 * np.sin(shifted) + 0.3 * np.sin(2.0 * shifted) + e


CURVES = {
    "cubic": Curve(cubic, (-4.0, 4.0), (-6.0, 6.0), 20),
    "waves": Curve(waves, (0.0, 0.5), (-0.2, 0.7), 100),
}
