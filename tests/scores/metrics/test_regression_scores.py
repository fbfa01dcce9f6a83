import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import root_mean_squared_error as sklearn_rmse

from tests.scores.metrics.known_predictions import Mixture, normals, values
from tfbbb.scores.metrics import negative_log_likelihood, root_mean_squared_error


def test_rmse_equals_that_of_scikit_learn():
    prediction = normals(targets=1)
    y = values(prediction)
    assert root_mean_squared_error(prediction, y) == pytest.approx(
        sklearn_rmse(y, prediction.mean)
    )


def test_rmse_of_several_targets_averages_their_squares():
    prediction = normals(rows=2, targets=2)
    errors = np.array([[3.0, -4.0], [0.0, 5.0]])
    y = prediction.mean + errors
    assert root_mean_squared_error(prediction, y) == pytest.approx(np.sqrt(50 / 4))
    np.testing.assert_allclose(
        root_mean_squared_error(prediction, y, per_row=True), np.abs(errors)
    )


def test_nll_of_a_normal_equals_the_closed_form():
    prediction = Mixture(stats.norm(np.zeros((1, 2, 2)), 2.0))
    y = np.array([[1.0, -2.0], [0.0, 0.0]])
    expected = (y**2 / 8.0 + np.log(2.0 * np.sqrt(2.0 * np.pi))).sum(axis=1)
    np.testing.assert_allclose(
        negative_log_likelihood(prediction, y, per_row=True), expected
    )
    assert negative_log_likelihood(prediction, y) == pytest.approx(expected.mean())


def test_nll_scores_the_mixture_of_draws():
    prediction = normals()
    y = values(prediction)
    density = prediction.components.pdf(y).mean(axis=0)
    assert negative_log_likelihood(prediction, y) == pytest.approx(
        -np.log(density).mean()
    )
