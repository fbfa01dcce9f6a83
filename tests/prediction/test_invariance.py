"""A row's answer is its own: alone, in any batch and in whatever blocks."""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfbbb
from tests.posterior_draws import engine_draws
from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.layers import DenseVariational

METHODS = ("local", "weight")
X = np.random.default_rng(0).normal(size=(6, 3)).astype("float32")
# Sums of single precision in another order: a part in 10^5 of what is summed.
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    wide = {"posterior": MeanFieldNormal(initial_scale=1.0)}
    inputs = keras.Input((3,))
    hidden = DenseVariational(7, "tanh", **wide)(inputs)
    hidden = keras.layers.Dense(5, "relu")(hidden)
    outputs = DenseVariational(2, **wide)(hidden)
    model = tfbbb.BayesianModel(inputs, outputs)
    model.likelihood.adapt([[100.0, 0.0], [300.0, 0.01]])
    return model


@pytest.fixture(scope="module")
def whole(model):
    return {method: engine_draws(model, X, method, 9) for method in METHODS}


def answers(model, x, method):
    prediction = model.predictive(x, num_samples=20, method=method)
    lower, upper = prediction.interval(0.9)
    return {
        "mean": prediction.mean,
        "lower": lower,
        "upper": upper,
        "variance": prediction.variance,
        "epistemic": prediction.epistemic,
        "aleatoric": prediction.aleatoric,
    }


@settings(max_examples=6, deadline=None, derandomize=True)
@given(
    method=st.sampled_from(METHODS),
    rows=st.lists(st.integers(0, 5), min_size=1, max_size=8),
    max_floats=st.sampled_from([1, 100, 200, 500, 1000, 1 << 26]),
)
def test_draws_depend_neither_on_rows_nor_on_blocks(
    model, whole, method, rows, max_floats
):
    drawn = engine_draws(model, X[rows], method, 9, max_floats=max_floats)
    np.testing.assert_allclose(drawn, whole[method][:, rows], **CLOSE)


@pytest.mark.parametrize("method", METHODS)
def test_fewer_samples_are_the_first_of_more(model, whole, method):
    np.testing.assert_allclose(
        engine_draws(model, X, method, 4), whole[method][:4], **CLOSE
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_prediction_does_not_depend_on_the_other_rows(model, method):
    together = answers(model, X, method)
    backwards = answers(model, X[::-1], method)
    variance = together["variance"]
    for row in range(len(X)):
        alone = answers(model, X[row : row + 1], method)
        for name, expected in together.items():
            moves = name in ("mean", "lower", "upper")
            unit = np.sqrt(variance[row]) if moves else variance[row]
            for same in (alone[name][0], backwards[name][len(X) - 1 - row]):
                assert np.all(np.abs(same - expected[row]) < 2e-5 * unit), name


@pytest.mark.parametrize("method", METHODS)
def test_same_question_gets_the_same_answer_bit_for_bit(model, method):
    first, second = (
        model.predictive(X, num_samples=20, method=method, seed=5) for _ in range(2)
    )
    np.testing.assert_array_equal(first.mean, second.mean)
    np.testing.assert_array_equal(first.variance, second.variance)
    np.testing.assert_array_equal(first.quantile([0.1]), second.quantile([0.1]))
    np.testing.assert_array_equal(first.sample(3), second.sample(3))
    other = model.predictive(X, num_samples=20, method=method, seed=6)
    assert not np.any(first.mean == other.mean)


def test_prediction_moves_neither_weights_nor_the_noise_of_training(model):
    before = [variable.numpy() for variable in model.variables]
    model.predictive(X, num_samples=5)
    for value, variable in zip(before, model.variables, strict=True):
        np.testing.assert_array_equal(variable, value)
