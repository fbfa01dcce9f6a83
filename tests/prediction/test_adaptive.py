"""As many draws as the error that is asked for needs, and as the time allows."""

import keras
import numpy as np
import pytest
from scipy import stats

import tfbbb
from tfbbb.bayes.likelihoods import Normal
from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.layers import DenseVariational
from tfbbb.prediction import adaptive

X = np.random.default_rng(0).normal(size=(6, 3)).astype("float32")
X[3:] *= 4.0
WIDE = {"posterior": MeanFieldNormal(initial_scale=1.0)}


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    inputs = keras.Input((3,))
    hidden = DenseVariational(8, "relu", **WIDE)(inputs)
    return tfbbb.BayesianModel(
        inputs, DenseVariational(2, **WIDE)(hidden), likelihood=Normal(scale=1.0)
    )


def test_every_row_gets_the_draws_that_its_error_needs(model):
    found = model.predictive(X, 64, "local", max_standard_error=0.05)
    error = found.mean_standard_error.max(axis=1)
    # The pilot leaves a margin of two standard errors of its own; as much again.
    assert np.all(error < 0.05 * 1.25)
    assert np.mean(error < 0.05) > 0.8
    assert not found.truncated.any()
    assert found.num_samples.shape == (6,)
    # Rows far out vary more, and one that needs no more than the pilot has no more.
    assert found.num_samples[3:].min() > found.num_samples[:3].max() / 4
    assert set(found.num_samples.tolist()) <= {64 * 2**n for n in range(15)}
    easy = model.predictive(X, 64, "local", max_standard_error=100.0)
    np.testing.assert_array_equal(easy.num_samples, 64)
    same = model.predictive(X, 64, "local")
    np.testing.assert_array_equal(easy.mean, same.mean)


def test_error_may_be_relative_to_the_predictive_standard_deviation(model):
    asked = {"num_samples": 64, "method": "local", "max_standard_error": 0.05}
    found = model.predictive(X, **asked, relative_error=True)
    share = found.mean_standard_error / found.stddev
    assert np.all(share < 0.05 * 1.25)
    # Rows that vary more need fewer draws than for an error in units of the target.
    wide = found.stddev.min(axis=1) > 2.0
    absolute = model.predictive(X, **asked)
    assert wide.any()
    assert np.all(found.num_samples[wide] < absolute.num_samples[wide])
    for wrong in ({"relative_error": True}, {"relative_error": 0.05}):
        with pytest.raises(ValueError, match="`relative_error=True` makes"):
            model.predictive(X, 64, **wrong)


def test_rows_of_different_numbers_answer_in_their_own_place(model):
    found = model.predictive(X, 64, "local", max_standard_error=0.05)
    assert len(set(found.num_samples.tolist())) > 1
    y = found.mean + 0.5
    for row, number in enumerate(found.num_samples):
        alone = model.predictive(X[row : row + 1], int(number), "local")
        np.testing.assert_allclose(found.mean[row], alone.mean[0], rtol=1e-4)
        np.testing.assert_allclose(found.variance[row], alone.variance[0], rtol=1e-4)
        np.testing.assert_allclose(
            found.quantile(0.9)[row], alone.quantile(0.9)[0], rtol=1e-4
        )
        np.testing.assert_allclose(
            found.log_prob(y)[row], alone.log_prob(y[row : row + 1])[0], rtol=1e-3
        )
    drawn = found.sample(2000)
    error = found.stddev / np.sqrt(2000)
    assert np.all(np.abs(drawn.mean(axis=0) - found.mean) < 4.5 * error)
    assert found.joint_sample(3).shape == (3, 6, 2)


def test_stopping_does_not_bias_a_skewed_predictive():
    # f = exp(3 w): a pilot whose draws miss the tail believes that few are enough.
    inputs = keras.Input((1,))
    output = DenseVariational(1, use_bias=False, **WIDE)(inputs)
    skewed = keras.Model(inputs, keras.ops.exp(output))
    layer = skewed.layers[1]
    layer.kernel.variables["mean"].assign([[0.0]])
    likelihood = Normal(scale=1.0)
    means = np.array(
        [
            tfbbb.predictive(
                skewed,
                np.ones((1, 1)),
                likelihood=likelihood,
                num_samples=8,
                method="local",
                seed=seed,
                max_standard_error=0.3,
            ).mean[0, 0]
            for seed in range(150)
        ]
    )
    expected = np.exp(0.5)
    assert abs(means.mean() - expected) < 4.0 * stats.sem(means)


def test_no_row_gets_more_than_the_most(model, monkeypatch):
    monkeypatch.setattr(adaptive, "MOST_SAMPLES", 256)
    found = model.predictive(X, 64, "local", max_standard_error=1e-9)
    np.testing.assert_array_equal(found.num_samples, 256)
    assert found.truncated.all()
