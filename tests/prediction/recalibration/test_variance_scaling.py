import keras
import numpy as np
import pytest

import tfbbb
from tests.prediction.recalibration.known_models import (
    DRAWS,
    DrawnModel,
    X,
    spread_out,
)
from tfbbb.bayes.likelihoods import MultivariateNormal, Normal, StudentT
from tfbbb.prediction.recalibration import VarianceScaling


@pytest.fixture(scope="module")
def model():
    return DrawnModel(2, Normal(scale=1.0))


@pytest.fixture(scope="module")
def raw(model):
    model.recalibration = None
    return model.predictive(X[:5], num_samples=DRAWS)


@pytest.fixture(scope="module")
def scaled(model, raw):
    model.recalibration = VarianceScaling([2.0, 0.5])
    yield model.predictive(X[:5], num_samples=DRAWS)
    model.recalibration = None


def test_a_normal_without_epistemic_variance_has_a_closed_form_factor():
    # Laves et al. (2020): the maximum is where c^2 is the mean squared standard score.
    model = DrawnModel(spread=1e-6)
    y = spread_out(model, X, 3.0)
    prediction = model.predictive(X)
    scores = (y - prediction.mean) / prediction.stddev
    found = model.recalibrate(X, y)
    assert found.factors == pytest.approx([np.sqrt(np.mean(scores**2))], rel=1e-4)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("units", "likelihood"),
    [
        (2, Normal(scale=1.0)),
        (2, StudentT(df=5.0, scale=1.0)),
        (2, MultivariateNormal()),
    ],
    ids=["normal", "student_t", "multivariate_normal"],
)
def test_the_factor_of_every_target_is_recovered(units, likelihood):
    model = DrawnModel(units, likelihood)
    y = spread_out(model, X, [2.0, 0.5])
    found = model.recalibrate(X, y, num_samples=DRAWS).factors
    # The Fisher information of a scale is (2 df / (df + 3)) / c^2 under Student's t
    # (1.25 for df = 5), 2 / c^2 under a normal; mixtures of them are close.
    error = 1.0 / np.sqrt(1.25 * len(X))
    np.testing.assert_allclose(np.log(found), np.log([2.0, 0.5]), atol=4.0 * error)


def test_the_mean_stays_and_variances_scale_with_the_square(raw, scaled):
    squares = [4.0, 0.25]
    np.testing.assert_array_equal(scaled.mean, raw.mean)
    np.testing.assert_array_equal(scaled.mean_standard_error, raw.mean_standard_error)
    for name in ("variance", "epistemic", "aleatoric"):
        np.testing.assert_allclose(getattr(scaled, name), squares * getattr(raw, name))
    parts = scaled.epistemic + scaled.aleatoric
    np.testing.assert_allclose(scaled.variance, parts, rtol=1e-12)
    np.testing.assert_allclose(scaled.stddev, [2.0, 0.5] * raw.stddev)


def test_the_part_between_members_is_scaled_too():
    model = DrawnModel(members=2)
    before = model.predictive(X[:5]).between_members
    model.recalibration = VarianceScaling(3.0)
    np.testing.assert_allclose(model.predictive(X[:5]).between_members, 9.0 * before)


def test_quantiles_move_from_the_mean_and_invert_the_distribution_function(raw, scaled):
    levels = [0.01, 0.3, 0.9]
    found = scaled.quantile(levels)
    moved = raw.quantile(levels) - raw.mean[:, None]
    np.testing.assert_allclose(found, raw.mean[:, None] + [2.0, 0.5] * moved)
    for index, level in enumerate(levels):
        np.testing.assert_allclose(scaled.cdf(found[:, index]), level, atol=1e-10)


def test_draws_have_the_moments(scaled):
    drawn = scaled.sample(20_000)
    error = scaled.stddev / np.sqrt(20_000)
    assert np.all(np.abs(drawn.mean(axis=0) - scaled.mean) < 4.0 * error)
    # The kurtosis of a mixture of normals of close means is 3, or a little less.
    error = scaled.variance * np.sqrt(2.0 / 20_000)
    assert np.all(np.abs(drawn.var(axis=0) - scaled.variance) < 4.0 * error)


def test_a_factor_beyond_its_range_is_refused():
    with pytest.raises(ValueError, match=r"No factor from 1/128 to 128.*Received"):
        DrawnModel().recalibrate(X[:50], np.full(50, 1e6))


def test_a_row_of_several_places_has_the_density_of_each():
    inputs = keras.Input((4, 3))
    outputs = tfbbb.layers.DenseVariational(1)(inputs)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=Normal(scale=1.0))
    x = X[:400].reshape(100, 4, 3)
    y = spread_out(model, x, 2.0)
    factor = model.recalibrate(x, y, num_samples=DRAWS).factors[0]
    assert np.log(factor) == pytest.approx(np.log(2.0), abs=4.0 / np.sqrt(2 * 400))
    prediction = model.predictive(x, num_samples=DRAWS)
    model.recalibration = None
    raw = model.predictive(x, num_samples=DRAWS)
    inverse = raw.mean + (y - raw.mean) / factor
    expected = raw.log_prob(inverse) - np.log(factor)
    np.testing.assert_allclose(prediction.log_prob(y), expected, rtol=1e-9)
