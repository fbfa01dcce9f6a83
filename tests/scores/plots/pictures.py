"""One picture of each kind, of fixed numbers."""

import numpy as np
from scipy import stats

from tests.scores.plots.normal_prediction import (
    NormalPrediction,
    UniformPrediction,
    measured,
)
from tfbbb import plots


def predictive_band(axes):
    generator = np.random.default_rng(0)
    x = np.concatenate([generator.uniform(-3, -0.5, 40), generator.uniform(1, 2.5, 30)])
    noise = 0.1 + 0.12 * (x + 3)
    data = (x, np.sin(1.5 * x) + noise * generator.normal(size=x.shape))
    grid = np.linspace(-4, 4, 200)
    distance = np.maximum(np.abs(np.abs(grid + 0.2) - 1.5) - 1.0, 0.0)
    prediction = NormalPrediction(
        mean=np.sin(1.5 * grid)[:, None],
        epistemic=(0.08 + 0.4 * distance)[:, None] ** 2,
        aleatoric=np.maximum(0.1 + 0.12 * (grid + 3), 0.1)[:, None] ** 2,
    )
    plots.predictive_band(
        prediction, grid, data=data, xlabel="x (m)", label="y (m)", axes=axes
    )


def intervals(axes):
    generator = np.random.default_rng(1)
    mean = generator.gamma(4.0, 30.0, size=(60, 1))
    prediction = NormalPrediction(mean, (0.1 * mean) ** 2, (20 + 0.15 * mean) ** 2)
    truth = mean + prediction.stddev * generator.normal(size=(60, 1))
    plots.intervals(prediction, truth, label="price (k€)", axes=axes)


def pit_values(rows):
    """Returns those of predictions two thirds as wide as they should be."""
    errors = 1.5 * np.random.default_rng(1).normal(size=rows)
    return stats.norm.cdf(errors)


def calibration_curve(axes):
    values = pit_values(200)
    plots.calibration_curve(UniformPrediction(200), values, axes=axes)


def pit_histogram(axes):
    values = pit_values(400)
    plots.pit_histogram(UniformPrediction(400), values, axes=axes)


def reliability_diagram(axes):
    confidence = np.linspace(0.35, 0.95, 7)
    counts = np.array([5, 54, 91, 87, 97, 108, 148])
    right = np.round(counts * (0.3 + 0.5 * confidence))
    given = measured(counts, confidence, right)
    plots.reliability_diagram(*given, bins=10, axes=axes)


def risk_coverage(axes):
    generator = np.random.default_rng(3)
    mean, stddev = generator.normal(size=(300, 1)), generator.gamma(3.0, size=(300, 1))
    prediction = NormalPrediction(
        mean, epistemic=generator.gamma(2.0, size=(300, 1)), aleatoric=stddev**2
    )
    truth = mean + prediction.stddev * generator.normal(size=(300, 1))
    plots.risk_coverage(
        prediction,
        truth,
        by=["variance", "epistemic"],
        label="mean squared error (m²)",
        axes=axes,
    )


def elbo_curve(axes):
    epochs = np.arange(60)
    nll = 1.0 + 2.0 * np.exp(-epochs / 3) - 0.004 * epochs
    temperature = np.minimum(epochs / 20, 1.0)
    history = {
        "nll": nll,
        "loss": nll + temperature * (0.3 + 0.2 * np.exp(-epochs / 15)),
        "kl": 30 + 20 * np.exp(-epochs / 15),
        "val_nll": nll + 0.05 + 2e-4 * np.maximum(epochs - 20, 0) ** 1.7,
        "temperature": temperature,
    }
    plots.elbo_curve(history, axes=axes)


PICTURES = {
    draw.__name__: draw
    for draw in (
        predictive_band,
        intervals,
        calibration_curve,
        pit_histogram,
        reliability_diagram,
        risk_coverage,
        elbo_curve,
    )
}
