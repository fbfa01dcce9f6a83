import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.metrics import log_loss

import tfbbb
from tests.benchmarks.programs import load

scores = load("scores")
# Two rows of three components, far apart in the first row.
MEANS = np.array([[0.0, 1.0], [3.0, 1.2], [-4.0, 0.5]])
STDDEVS = np.array([[1.0, 0.2], [0.5, 0.4], [2.0, 0.1]])
MIXTURE = scores.MixtureOfNormals(MEANS, STDDEVS)
Y = np.array([0.7, 1.1])


def density(z, row):
    return stats.norm.pdf(z, MEANS[:, row], STDDEVS[:, row]).mean()


@pytest.mark.parametrize("row", [0, 1])
def test_a_mixture_is_the_mean_of_its_components(row):
    assert MIXTURE.mean[row] == pytest.approx(MEANS[:, row].mean())
    assert MIXTURE.log_prob(Y)[row] == pytest.approx(np.log(density(Y[row], row)))
    below, _ = integrate.quad(density, -30.0, Y[row], args=(row,), limit=200)
    assert MIXTURE.cdf(Y)[row] == pytest.approx(below, abs=1e-7)
    assert MIXTURE.cdf(MIXTURE.quantile(0.05))[row] == pytest.approx(0.05)


@pytest.mark.parametrize("row", [0, 1])
def test_crps_is_the_integral_of_the_squared_distance(row):
    def distance(z):
        return (MIXTURE.cdf(np.full(2, z))[row] - (z >= Y[row])) ** 2

    expected = sum(
        integrate.quad(distance, *bounds, limit=200)[0]
        for bounds in ((-30.0, Y[row]), (Y[row], 30.0))
    )
    assert MIXTURE.crps(Y)[row] == pytest.approx(expected, rel=1e-5)


def test_probability_of_a_whole_number_is_exact_in_both_tails():
    mixture = scores.MixtureOfNormals(np.zeros((1, 3)), np.ones((1, 3)))
    found = mixture.log_probability(np.array([-6.0, 0.0, 6.0]))
    tail = np.log(stats.norm.sf(5.5) - stats.norm.sf(6.5))
    assert found == pytest.approx([tail, np.log(1 - 2 * stats.norm.sf(0.5)), tail])


def test_intervals_cover_their_share_of_draws():
    generator = np.random.default_rng(0)
    n = 4000
    means, stddevs = (
        generator.normal(size=(3, n)),
        np.exp(generator.normal(size=(3, n))),
    )
    chosen = generator.integers(3, size=n), np.arange(n)
    y = generator.normal(means[chosen], stddevs[chosen])
    mixture = scores.MixtureOfNormals(means, stddevs)
    found = scores.distribution_scores(mixture, y, whole_numbers=False)
    for percent in (50, 90, 95):
        p = percent / 100
        # Five standard errors of a share.
        error = 5 * np.sqrt(p * (1 - p) / n)
        assert found[f"coverage_{percent}"] == pytest.approx(p, abs=error)
    assert "log_probability" not in found


def test_a_prediction_is_scored_as_the_mixture_that_it_is():
    """A network without hidden noise, whose prediction is one normal per row."""
    import keras

    inputs = keras.Input((1,))
    point = {"posterior": "point", "prior": None}
    point |= {f"bias_{name}": value for name, value in point.items()}
    outputs = tfbbb.layers.DenseVariational(1, **point)(inputs)
    model = tfbbb.BayesianModel(inputs, outputs)
    y = np.round(np.random.default_rng(0).normal(5.0, 2.0, size=60))
    x = (y + np.random.default_rng(1).normal(size=60))[:, np.newaxis]
    model.likelihood.adapt(y[:, np.newaxis])
    prediction = model.predictive(x)
    mixture = scores.MixtureOfNormals(
        np.asarray(prediction.mean, float).T, np.asarray(prediction.stddev, float).T
    )
    found = scores.prediction_scores(prediction, y, whole_numbers=True)
    expected = scores.distribution_scores(mixture, y, whole_numbers=True)
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, rel=2e-3)


def test_interval_score_is_the_width_and_twenty_times_the_distance_outside():
    found = scores.interval_score(
        np.zeros(3), np.full(3, 2.0), np.array([1.0, 2.5, -0.1]), 0.9
    )
    assert found == pytest.approx([2.0, 2.0 + 20 * 0.5, 2.0 + 20 * 0.1])


def test_given_intervals_replace_those_of_the_density():
    interval = np.array([[0.0, 2.0], [1.0, 3.0]])
    found = scores.distribution_scores(
        MIXTURE, Y, whole_numbers=False, interval=interval
    )
    assert found["coverage_90"] == 0.5
    assert found["interval_score_90"] == pytest.approx((1.0 + 1.0 + 20 * 0.9) / 2)


def test_scores_of_classes_are_those_of_scikit_learn():
    generator = np.random.default_rng(0)
    p = generator.uniform(size=500)
    y = (generator.uniform(size=500) < p).astype(int)
    probabilities = np.column_stack([1 - p, p])
    found = scores.class_scores(probabilities, np.array([0, 1]), y)
    assert found["log_likelihood"] == pytest.approx(-log_loss(y, p))
    assert found["accuracy"] == np.mean((p > 0.5) == y)


def test_a_label_that_training_lacked_has_no_probability():
    probabilities = np.array([[0.9, 0.1], [0.5, 0.5]])
    found = scores.class_scores(
        probabilities, np.array(["a", "b"]), np.array(["a", "new"])
    )
    assert found["accuracy"] == 0.5
    assert found["log_likelihood"] == pytest.approx((np.log(0.9) + np.log(1e-12)) / 2)
