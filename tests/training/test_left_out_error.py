"""What the error of rows left out refuses."""

import numpy as np
import pytest

import tfbbb
from tfbbb.judging.evaluation.predicted_rows import PredictedRows
from tfbbb.prediction.recalibration.from_outputs import predictive_from_outputs
from tfbbb.training.left_out_error import Trial, competes, most_likely, relative_error


def figures(log_likelihood, relative_error, is_off=False):
    return Trial(0.1, log_likelihood, 1.0, relative_error, is_off)


def test_the_most_likely_candidate_with_a_sane_error_is_kept():
    absurd, sane, poor = figures(-1.0, 5.0), figures(-2.0, 0.8), figures(-3.0, 0.5)
    assert most_likely([absurd, sane, poor]) is sane
    assert most_likely([figures(np.nan, 0.1), poor]) is poor


def test_of_absurd_candidates_about_the_least_error_is_kept():
    first, second, third = figures(-1.0, 1e5), figures(-2.0, 3.1), figures(-3.0, 3.0)
    assert most_likely([first, second, third]) is second


def test_a_candidate_worse_than_the_mean_gives_way_to_a_better_one():
    worse, better = figures(-1.0, 1.05), figures(-1.05, 0.9)
    assert most_likely([worse, better]) is better
    assert most_likely([worse, figures(-1.2, 0.9)]) is worse


def test_a_candidate_whose_sum_is_off_gives_way_to_one_with_less_error():
    spike, mixture = figures(-1.0, 1.02, is_off=True), figures(-2.0, 0.98)
    assert most_likely([spike, mixture]) is mixture
    assert most_likely([spike, figures(-2.0, 1.03)]) is spike
    assert most_likely([spike, figures(-2.0, 0.98, is_off=True)]) is spike


def test_relative_error_is_that_of_the_mean_for_a_constant():
    likelihood = tfbbb.likelihoods.Normal(scale=1.0)
    likelihood.build((None, 1))
    targets = np.random.default_rng(0).normal(size=(50, 1))
    outputs = np.full((50, 4, 1), targets.mean(), np.float32)
    found = relative_error(predictive_from_outputs(likelihood, outputs), targets)
    assert found == pytest.approx(1.0, rel=1e-6)


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
    network = figures(log_likelihood, relative_error=1 / 5)
    linear = PredictedRows(
        np.full(4, -2.0), targets + scale * signs, of_classes=of_classes
    )
    assert competes(network, linear, targets) == expected
