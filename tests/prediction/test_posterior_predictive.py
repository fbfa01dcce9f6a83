"""What `tfbbb.predictive` takes and what it refuses."""

import keras
import numpy as np
import pytest

import tfbbb
from tfbbb.bayes.likelihoods import Normal
from tfbbb.layers import DenseVariational

X = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")
NORMAL = Normal(scale=1.0)


@pytest.fixture(scope="module")
def plain():
    """A Keras model that knows no likelihood."""
    inputs = keras.Input((3,))
    hidden = DenseVariational(4, "relu", kl_weight=0.1)(inputs)
    return keras.Model(inputs, DenseVariational(2, kl_weight=0.1)(hidden), name="net")


@pytest.fixture(scope="module")
def pair():
    first, second = keras.Input((3,), name="p"), keras.Input((3,), name="q")
    output = DenseVariational(1, kl_weight=0.1)(first + second)
    return keras.Model({"p": first, "q": second}, output)


def test_rows_may_be_arrays_lists_or_frames(plain):
    pandas = pytest.importorskip("pandas")
    expected = tfbbb.predictive(plain, X, likelihood=NORMAL).mean
    for rows in (X.tolist(), X.astype("float64"), pandas.DataFrame(X)):
        np.testing.assert_array_equal(
            tfbbb.predictive(plain, rows, likelihood=NORMAL).mean, expected
        )
    whole = tfbbb.predictive(plain, np.ones((2, 3)), likelihood=NORMAL).mean
    integers = tfbbb.predictive(plain, np.ones((2, 3), int), likelihood=NORMAL).mean
    np.testing.assert_array_equal(integers, whole)


def test_likelihoods_that_differ_are_not_taken_for_each_other(plain):
    scales = [0.5, 2.0, 0.5]
    predictions = [
        tfbbb.predictive(plain, X, likelihood=Normal(scale=scale)) for scale in scales
    ]
    adapted = Normal(scale=0.5)
    adapted.build((None, 2))
    adapted.adapt([[10.0, 0.0], [30.0, 1.0]])
    shifted = tfbbb.predictive(plain, X, likelihood=adapted)
    for scale, prediction in zip(scales, predictions, strict=True):
        np.testing.assert_allclose(prediction.aleatoric, scale**2, rtol=1e-6)
    scaled = predictions[0].mean * [10.0, 0.5] + [20.0, 0.5]
    np.testing.assert_allclose(shifted.mean, scaled, rtol=1e-5)


def test_own_likelihood_of_a_model_is_not_to_be_given():
    inputs = keras.Input((3,))
    model = tfbbb.BayesianModel(inputs, DenseVariational(1)(inputs))
    prediction = tfbbb.predictive(model, X)
    np.testing.assert_array_equal(model.predictive(X).mean, prediction.mean)
    given = tfbbb.predictive(model, X, likelihood=Normal(scale=3.0))
    np.testing.assert_allclose(given.aleatoric, 9.0, rtol=1e-6)


def test_no_rows_are_refused(plain):
    with pytest.raises(ValueError, match="no rows to predict"):
        tfbbb.predictive(plain, X[:0], likelihood=NORMAL)


def test_unknown_method_is_answered_with_the_names_of_the_known(plain):
    with pytest.raises(
        ValueError,
        match=r"one of 'auto', 'local', 'weight', 'linearised'\. "
        "Received: method='moments'",
    ):
        tfbbb.predictive(plain, X, likelihood=NORMAL, method="moments")


def test_model_without_a_variational_layer_is_refused():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)], name="known")
    with pytest.raises(ValueError, match=r"no variational layer.*model='known'"):
        tfbbb.predictive(model, X, likelihood=NORMAL)


def test_plain_model_needs_a_likelihood(plain):
    with pytest.raises(
        ValueError, match=r"does not know its likelihood.*`likelihood=`"
    ):
        tfbbb.predictive(plain, X)


def test_noise_that_was_not_trained_with_the_model_is_refused(plain):
    for likelihood in ("normal", Normal()):
        with pytest.raises(ValueError, match="has not been trained with the model"):
            tfbbb.predictive(plain, X, likelihood=likelihood)


def test_inputs_of_unequal_length_are_refused(pair):
    for p, q in ((1, 5), (5, 1)):
        x = {"p": X[:p], "q": X[:q]}
        with pytest.raises(ValueError, match=rf"same number of rows.*\[{p}, {q}\]"):
            tfbbb.predictive(pair, x, likelihood=NORMAL)


@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 4, 1, 1)])
def test_inputs_of_another_shape_are_refused(shape):
    inputs = keras.Input((4,), name="table")
    model = tfbbb.BayesianModel(inputs, DenseVariational(1)(inputs))
    with pytest.raises(
        ValueError, match=r"'table' of the model has the shape \['rows', 4\]. Received"
    ):
        model.predictive(np.ones(shape))


def test_rows_without_a_finite_answer_are_refused_by_number():
    inputs = keras.Input((4,))
    model = tfbbb.BayesianModel(inputs, DenseVariational(1)(inputs))
    x = np.ones((5, 4))
    x[3, 2] = np.nan
    with pytest.raises(ValueError, match=r"no finite answer.*Received: row 3 of 5"):
        model.predictive(x)
