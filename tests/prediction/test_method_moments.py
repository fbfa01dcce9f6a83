"""Predictions by `moments` beside those by draws, and where there are none."""

import keras
import numpy as np
import pytest

import tfbbb
from tfbbb.bayes.likelihoods import (
    Categorical,
    Normal,
    Poisson,
)
from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.layers import DenseVariational
from tfbbb.prediction.moments import MomentsError

X = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
SAMPLES = 20_000


def network(units, members=1):
    keras.utils.set_random_seed(0)
    narrow = {"posterior": MeanFieldNormal(initial_scale=0.2), "members": members}
    inputs = keras.Input((3,))
    hidden = DenseVariational(20, "relu", **narrow)(inputs)
    outputs = [DenseVariational(size, **narrow)(hidden) for size in units]
    return keras.Model(inputs, outputs if len(units) > 1 else outputs[0])


def both(model, likelihood):
    return (
        tfbbb.predictive(
            model, X, likelihood=likelihood, method=method, num_samples=SAMPLES
        )
        for method in ("moments", "local")
    )


@pytest.mark.parametrize("members", [1, 3])
def test_moments_of_one_hidden_layer_are_exact(members):
    moments, drawn = both(network([2], members), Normal(scale=0.5))
    error = 5.0 * drawn.mean_standard_error + 1e-6
    assert np.all(np.abs(moments.mean - drawn.mean) < error)
    # Variances from 10 000 pairs, of a kurtosis below 6.
    tolerance = 5.0 * np.sqrt(5.0 / (SAMPLES / 2))
    np.testing.assert_allclose(moments.epistemic, drawn.epistemic, rtol=tolerance)
    np.testing.assert_allclose(moments.aleatoric, 0.25, rtol=1e-6)
    if members > 1:
        # Of three means, each with the error of its share of the draws.
        slack = 10.0 * np.sqrt(drawn.between_members) * drawn.mean_standard_error
        off = np.abs(moments.between_members - drawn.between_members)
        assert np.all(off < slack * np.sqrt(members) + 1e-5)


def test_outputs_of_other_likelihoods_are_averaged_over_independent_normals():
    likelihoods = [Normal(heteroscedastic=True), Categorical(), Poisson()]
    predictions = zip(*both(network([2, 3, 1]), likelihoods), strict=True)
    # Logits of classes share their hidden units: what these let them vary in common
    # does not change the softmax, and what they differ in does, by more than of
    # independent ones.
    for (moments, drawn), off in zip(predictions, (0.15, 0.5, 0.15), strict=True):
        # Sums of 20 units are nearly normal: a few parts in a hundred of what varies.
        scale = np.sqrt(drawn.epistemic)
        error = 5.0 * drawn.mean_standard_error + 0.05 * scale
        assert np.all(np.abs(moments.mean - drawn.mean) < error)
        np.testing.assert_allclose(moments.epistemic, drawn.epistemic, rtol=off)
        np.testing.assert_allclose(moments.aleatoric, drawn.aleatoric, rtol=0.05)


def test_answer_says_which_operations_are_approximate():
    moments = tfbbb.predictive(
        network([1]), X, likelihood=Normal(scale=1.0), method="moments"
    )
    assert moments.operations
    assert not np.any(moments.mean_standard_error)
    drawn = tfbbb.predictive(network([1]), X, likelihood=Normal(scale=1.0))
    assert not drawn.operations


def test_error_names_the_first_layer_without_moments():
    inputs = keras.Input((3, 1))
    hidden = DenseVariational(4)(inputs)
    hidden = keras.layers.LSTM(3, name="memory")(hidden)
    model = keras.Model(inputs, DenseVariational(1)(hidden))
    x, options = X[..., np.newaxis], {"likelihood": Normal(scale=1.0)}
    with pytest.raises(MomentsError, match=r"'memory'.*method='local'.*Received"):
        tfbbb.predictive(model, x, method="moments", **options)
    for method in ("auto", "local", "weight"):
        found = tfbbb.predictive(model, x, method=method, **options)
        assert np.all(found.epistemic > 0.0)
