"""What the error of rows left out refuses."""

from dataclasses import dataclass

import numpy as np
import pytest

import tfbbb
from tfbbb.judging.evaluation import PredictedRows
from tfbbb.prediction.from_outputs import predictive_from_outputs
from tfbbb.training.left_out_error import (
    bounded_by,
    competes,
    most_likely,
    relative_error,
    tighter_bound_of_means,
)

ROWS = 300


@dataclass
class Figures:
    log_likelihood: float
    relative_error: float
    is_off: bool = False


def counts(wild_rows):
    """Negative binomial draws around known log means; some rows have wild ones."""
    generator = np.random.default_rng(0)
    log_mean = generator.normal(0.5, 0.5, size=ROWS)
    targets = generator.negative_binomial(1.0, 1.0 / (1.0 + np.exp(log_mean)))
    targets[0] = 60.0
    likelihood = tfbbb.likelihoods.NegativeBinomial(concentration=1.0)
    likelihood.build((None, 1))
    likelihood.adapt(targets)
    outputs = log_mean[:, np.newaxis] - np.log(targets.mean())
    outputs = outputs + 0.1 * generator.normal(size=(ROWS, 20))
    outputs[1 : 1 + wild_rows] += generator.normal(6.0, 4.0, size=(wild_rows, 20))
    return likelihood, outputs[..., np.newaxis].astype(np.float32), targets[:, None]


def test_the_most_likely_candidate_with_a_sane_error_is_kept():
    absurd, sane, poor = Figures(-1.0, 5.0), Figures(-2.0, 0.8), Figures(-3.0, 0.5)
    assert most_likely([absurd, sane, poor]) is sane
    assert most_likely([Figures(np.nan, 0.1), poor]) is poor


def test_of_absurd_candidates_about_the_least_error_is_kept():
    first, second, third = Figures(-1.0, 1e5), Figures(-2.0, 3.1), Figures(-3.0, 3.0)
    assert most_likely([first, second, third]) is second


def test_a_candidate_worse_than_the_mean_gives_way_to_a_better_one():
    worse, better = Figures(-1.0, 1.05), Figures(-1.05, 0.9)
    assert most_likely([worse, better]) is better
    assert most_likely([worse, Figures(-1.2, 0.9)]) is worse


def test_a_candidate_whose_sum_is_off_gives_way_to_one_with_less_error():
    spike, mixture = Figures(-1.0, 1.02, is_off=True), Figures(-2.0, 0.98)
    assert most_likely([spike, mixture]) is mixture
    assert most_likely([spike, Figures(-2.0, 1.03)]) is spike
    assert most_likely([spike, Figures(-2.0, 0.98, is_off=True)]) is spike


def test_relative_error_is_that_of_the_mean_for_a_constant():
    likelihood = tfbbb.likelihoods.Normal(scale=1.0)
    likelihood.build((None, 1))
    targets = np.random.default_rng(0).normal(size=(50, 1))
    outputs = np.full((50, 4, 1), targets.mean(), np.float32)
    found = relative_error(predictive_from_outputs(likelihood, outputs), targets)
    assert found == pytest.approx(1.0, rel=1e-6)


def test_a_tighter_bound_repairs_wild_rows_at_no_cost():
    likelihood, outputs, targets = counts(wild_rows=12)
    before = predictive_from_outputs(likelihood, outputs)
    assert relative_error(before, targets) > 1.5
    high = tighter_bound_of_means(likelihood, outputs, targets)
    assert high < likelihood.target_high.numpy()
    with bounded_by(likelihood, high):
        after = predictive_from_outputs(likelihood, outputs)
        assert relative_error(after, targets) < 1.1
        gain = after.log_prob(targets).mean() - before.log_prob(targets).mean()
        assert gain > -0.002


def test_no_row_has_a_mean_far_beyond_those_of_rows_left_out():
    likelihood, outputs, targets = counts(wild_rows=0)
    before = predictive_from_outputs(likelihood, outputs)
    high = tighter_bound_of_means(likelihood, outputs, targets)
    # Not by the greatest target, which is 60 by chance.
    assert high == pytest.approx(np.log(before.mean.max(axis=0)))
    with bounded_by(likelihood, high):
        after = predictive_from_outputs(likelihood, outputs)
        np.testing.assert_allclose(after.mean, before.mean, rtol=0.02)
        unlike = np.full((1, 20, 1), 50.0, np.float32)
        beyond = predictive_from_outputs(likelihood, unlike).mean
    assert beyond < 1.66 * before.mean.max()


@pytest.mark.parametrize(
    ("log_likelihood", "scale", "of_classes", "expected"),
    [
        # The errors of the network are 1, those of the linear model `scale`.
        (-1.0, 1.04, False, True),
        (-1.0, 1.06, False, False),
        (-1.0, 1.04, True, False),
        (-2.01, 9.0, False, True),
        (-1.99, 9.0, False, True),
        (-1.97, 9.0, False, False),
        (-1.99, 1.0, True, True),
    ],
)
def test_a_linear_model_competes_that_is_about_as_good(
    log_likelihood, scale, of_classes, expected
):
    targets = np.array([[-3.0], [-1.0], [1.0], [3.0]])
    signs = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    network = Figures(log_likelihood, relative_error=1 / 5)
    linear = PredictedRows(
        np.full(4, -2.0), targets + scale * signs, of_classes=of_classes
    )
    assert competes(network, linear, targets) == expected
