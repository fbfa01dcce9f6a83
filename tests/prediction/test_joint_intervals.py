"""Boxes that hold all targets of a row."""

import keras
import numpy as np
import pytest
from scipy import special, stats

import tfbbb
from tests.prediction.recalibration.known_models import Known
from tfbbb.prediction.recalibration import ConformalIntervals, VarianceScaling
from tfbbb.prediction.recalibration.from_outputs import predictive_from_outputs
from tfbbb.prediction.target_scores import in_boxes

GENERATOR = np.random.default_rng(0)
LEVELS = [0.5, 0.9]


def normal_prediction(correlation, rows=1, num_targets=2, draws=4):
    """Returns standard normal predictions of correlated targets."""
    likelihood = tfbbb.likelihoods.MultivariateNormal(heteroscedastic=True)
    size = likelihood.num_outputs(num_targets)
    likelihood.build((None, size))
    covariance = np.full((num_targets, num_targets), correlation)
    np.fill_diagonal(covariance, 1.0)
    factor = np.linalg.cholesky(covariance)
    scale = np.diag(factor)
    noise = np.log(np.expm1(scale - 1e-4)) - np.log(np.expm1(1.0))
    lower = (factor / scale[:, np.newaxis])[np.tril_indices(num_targets, -1)]
    outputs = np.concatenate([np.zeros(num_targets), noise, lower])
    # Four draws are one distribution.
    return predictive_from_outputs(likelihood, np.tile(outputs, (rows, draws, 1)))


def correlated(correlation, size):
    """Returns standard normal targets [size, 2]."""
    covariance = [[1.0, correlation], [correlation, 1.0]]
    return GENERATOR.multivariate_normal([0.0, 0.0], covariance, size)


def test_the_box_of_independent_normals_has_a_closed_form():
    lower, upper = normal_prediction(0.0, num_targets=3).interval(LEVELS, joint=True)
    side = special.ndtri(0.5 + 0.5 * np.cbrt(LEVELS))
    # The level comes from 2000 draws, and `d side / d level` is at most 1.8.
    error = 4.0 * 1.8 * np.sqrt(0.09 / 2000)
    np.testing.assert_allclose(upper[0], np.tile(side, (3, 1)).T, atol=error)
    np.testing.assert_allclose(lower, -upper, rtol=1e-9)


@pytest.mark.parametrize("correlation", [0.0, 0.95, -0.95])
def test_boxes_of_correlated_targets_have_their_level(correlation):
    prediction = normal_prediction(correlation)
    lower, upper = prediction.interval(LEVELS, joint=True)
    y = correlated(correlation, 20_000)[:, np.newaxis]
    held = ((lower <= y) & (y <= upper)).all(axis=-1)
    # Errors of 2000 draws of the box, and of 20 000 targets.
    error = 4.0 * np.sqrt(np.multiply(LEVELS, np.subtract(1.0, LEVELS)) / 1800)
    assert np.all(np.abs(held.mean(axis=0) - LEVELS) < error)
    volumes = np.prod(upper - lower, axis=-1)[0]
    bonferroni = (2.0 * stats.norm.ppf(0.5 + 0.5 * (0.5 + 0.5 * np.array(LEVELS)))) ** 2
    assert np.all(volumes < bonferroni)


def test_the_box_of_one_target_is_its_interval():
    for recalibration in (None, ConformalIntervals([[0.1, 0.5, 1.5, 2.0]])):
        likelihood = tfbbb.likelihoods.Normal(scale=1.0)
        likelihood.build((None, 1))
        outputs = GENERATOR.normal(size=(3, 4, 1))
        more = () if recalibration is None else (recalibration,)
        prediction = predictive_from_outputs(likelihood, outputs, *more)
        np.testing.assert_array_equal(
            prediction.interval(0.6, joint=True), prediction.interval(0.6)
        )


def test_conformal_boxes_cover_the_level_of_new_rows():
    # The prediction is too narrow, and knows nothing of the correlation.
    assumed, rows, level = normal_prediction(0.0, rows=39), 39, 0.9
    coverage = []
    for _ in range(300):
        y = 2.0 * correlated(0.9, rows)
        fitted = ConformalIntervals().fitted(assumed.answers.likelihood, assumed, y)
        reach = fitted.reach(level)[-1]
        new = np.abs(2.0 * correlated(0.9, 300)).max(axis=1)
        coverage.append(np.mean(new <= reach))
    # j = 36 of n + 1 = 40.
    error = 4.0 * stats.sem(coverage)
    assert np.mean(coverage) == pytest.approx(0.9, abs=error)


def test_a_recalibrated_model_answers_joint_intervals_as_its_export(tmp_path):
    x = GENERATOR.normal(size=(300, 2)).astype("float32")
    y = correlated(0.9, 300) + x
    inputs = keras.Input((2,))
    outputs = tfbbb.layers.DenseVariational(5)(inputs)
    likelihood = tfbbb.likelihoods.MultivariateNormal(heteroscedastic=True)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)
    model.recalibrate(x, y, ConformalIntervals(density=VarianceScaling()))
    box = model.predictive(x[:4], num_samples=20).interval(0.8, joint=True)
    model.export_predictive(tmp_path / "1")
    exported = tfbbb.load(tmp_path / "1").predictive(x[:4], num_samples=20)
    np.testing.assert_allclose(
        exported.interval(0.8, joint=True), box, rtol=1e-4, atol=1e-5
    )
    # Of 300 rows, 241 are 80 % of 301.
    held = in_boxes(model.predictive(x), y, [0.8])
    assert held.sum() == 241


def test_counts_have_boxes_of_counts():
    likelihood = tfbbb.likelihoods.Poisson()
    likelihood.build((None, 2))
    prediction = predictive_from_outputs(likelihood, np.log([[[3.0, 20.0]] * 4]))
    lower, upper = prediction.interval(0.9, joint=True)
    mass = np.prod(
        [
            stats.poisson(rate).cdf(high) - stats.poisson(rate).cdf(low - 1.0)
            for rate, low, high in zip((3.0, 20.0), lower[0], upper[0], strict=True)
        ]
    )
    # The box between quantiles of counts covers more than its level.
    assert 0.9 - 4.0 * np.sqrt(0.09 / 2000) <= mass < 0.97
    assert np.all(lower == np.floor(lower))


def test_groups_have_boxes_of_their_own():
    known = Known(stats.norm(), 80)
    labels = np.repeat([0.0, 1.0], 40)
    y = np.abs(GENERATOR.normal(size=(80, 2))) * (1.0 + labels[:, np.newaxis])
    fitted = ConformalIntervals().fitted(
        tfbbb.likelihoods.Normal(), known, y, None, 0, labels
    )
    reach = fitted.reach(0.9, np.array([1, 2]))[:, -1]
    # j = 37 of n + 1 = 41.
    farthest = np.sort(y.reshape(2, 40, 2).max(axis=-1), axis=1)
    np.testing.assert_allclose(reach, farthest[:, 36], rtol=1e-6)


def test_one_of_several_targets_is_predicted_alone():
    likelihood = tfbbb.likelihoods.MultivariateNormal(heteroscedastic=True)
    likelihood.build((None, 5))
    recalibration = ConformalIntervals(
        [[0.1, 1.0], [0.5, 2.0], [0.5, 2.0]], density=VarianceScaling([2.0, 3.0])
    )
    outputs = GENERATOR.normal(size=(3, 4, 5))
    both = predictive_from_outputs(likelihood, outputs, recalibration)
    alone = both.of_target(1)
    assert alone.mean.shape == (3, 1)
    for name in ("mean", "variance", "epistemic"):
        np.testing.assert_allclose(
            getattr(alone, name)[:, 0], getattr(both, name)[:, 1]
        )
    for of_one, of_both in (
        (alone.quantile([0.1, 0.8]), both.quantile([0.1, 0.8])),
        (np.stack(alone.interval([0.5]), 1), np.stack(both.interval([0.5]), 1)),
        (alone.cdf(np.ones(3)), both.cdf(np.ones((3, 2)))),
    ):
        np.testing.assert_allclose(of_one[..., 0], of_both[..., 1])
    # The density is the derivative of the distribution function.
    step = 1e-5
    slope = (alone.cdf(np.full(3, 1.0 + step)) - alone.cdf(np.full(3, 1.0 - step)))[
        :, 0
    ]
    np.testing.assert_allclose(
        alone.log_prob(np.ones(3)), np.log(slope / (2 * step)), rtol=1e-5
    )
