import numpy as np
import pytest

from tfbbb.model.stacking import stacking_weights

GENERATOR = np.random.default_rng(0)


@pytest.mark.parametrize("models", [2, 3, 8])
def test_no_model_is_under_its_optimal_weight(models):
    logs = GENERATOR.normal(size=(200, models)) * np.linspace(0.2, 1.5, models)
    weights = stacking_weights(logs)
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    mixture = np.exp(logs) @ weights
    ratios = (np.exp(logs) / mixture[:, None]).mean(axis=0)
    # Optimality (Karush, Kuhn and Tucker).
    assert ratios.max() < 1.0 + 1e-6
    np.testing.assert_allclose(ratios[weights > 0], 1.0, atol=1e-4)


def test_a_model_that_is_worse_everywhere_has_no_weight():
    logs = GENERATOR.normal(size=(50, 2))
    worse = logs.max(axis=1, keepdims=True) - 2.0
    logs = np.concatenate([logs, worse - 1000.0, worse], axis=1)
    weights = stacking_weights(logs)
    assert weights[2] == weights[3] == 0.0


def test_a_model_may_find_rows_impossible():
    logs = np.array([[0.0, -np.inf], [-np.inf, 0.0], [0.0, -np.inf]])
    np.testing.assert_allclose(stacking_weights(logs), [2 / 3, 1 / 3], atol=1e-6)


@pytest.mark.parametrize(
    ("logs", "message"),
    [
        ([0.0, 1.0], r"of shape \(2,\)"),
        ([[0.0, 0.0], [-np.inf, -np.inf]], "in row 1"),
        ([[0.0, np.nan]], "in row 0"),
    ],
)
def test_densities_without_an_optimum_are_refused(logs, message):
    with pytest.raises(ValueError, match=message):
        stacking_weights(logs)
