"""The arguments of a prediction and of its result, and those that they refuse."""

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tfbbb
from tfbbb.bayes.likelihoods import Categorical, Normal, Poisson
from tfbbb.layers import DenseVariational

X = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")
NORMAL = Normal(scale=1.0)


@pytest.fixture(scope="module")
def model():
    inputs = keras.Input((3,))
    outputs = DenseVariational(1)(DenseVariational(4, "tanh")(inputs))
    return keras.Model(inputs, outputs)


@pytest.fixture(scope="module")
def prediction(model):
    return tfbbb.predictive(model, X, likelihood=NORMAL)


NOT_POSITIVE = [0, -1.0, float("inf"), float("nan"), "1"]
WRONG_OPTIONS = {
    "num_samples": ([2.5, 100.0, "many", None, True], "`num_samples` must be an int"),
    "seed": ([1.5, "one", None, [0, 1]], "`seed` must be an integer"),
    "max_memory_mb": ([*NOT_POSITIVE, None], "`max_memory_mb` must be "),
}


@pytest.mark.parametrize("name", WRONG_OPTIONS)
def test_options_of_a_prediction_are_checked(model, name):
    values, message = WRONG_OPTIONS[name]
    for value in values:
        with pytest.raises(ValueError, match=f"{message}.*Received: {name}="):
            tfbbb.predictive(model, X, likelihood=NORMAL, **{name: value})


@pytest.mark.parametrize("seed", [2**31, -(2**31) - 1, 2**70])
def test_seed_of_more_than_32_bits_would_be_another_seed(model, prediction, seed):
    asked = (
        lambda: tfbbb.predictive(model, X, likelihood=NORMAL, seed=seed),
        lambda: prediction.sample(2, seed=seed),
        lambda: prediction.joint_sample(2, seed=seed),
    )
    for ask in asked:
        with pytest.raises(ValueError, match=r"below 2\*\*31.*Received: seed="):
            ask()


def test_arguments_of_a_result_are_checked(prediction):
    draws = prediction.sample, prediction.joint_sample
    for draw in draws:
        for number in (0, -1, 1.5, "a", None):
            with pytest.raises(ValueError, match=r"`n` must be .*Received: n="):
                draw(number)
        for seed in (1.5, "one", [0, 1]):
            with pytest.raises(ValueError, match="`seed` must be an integer"):
                draw(2, seed=seed)
    between = r"strictly between 0 and 1.*Received"
    for levels in ([], [[0.1]], [0.1, 1.0], float("nan"), None):
        with pytest.raises(ValueError, match=between):
            prediction.quantile(levels)
        with pytest.raises(ValueError, match=between):
            prediction.interval(levels)
    for level in ("a", True, 1.0):
        with pytest.raises(ValueError, match=f"{between}: level="):
            prediction.interval(level)
    for percentage in (90, "90%", [0.5, 90.0], ["90 %"]):
        with pytest.raises(
            ValueError, match=r"between 0 and 1\. Write 0\.9\. Received"
        ):
            prediction.interval(percentage)


@pytest.mark.parametrize(("asked", "given"), [(2, 4), (3, 4), (7, 8), (8, 8)])
def test_samples_come_in_pairs_and_two_of_them(model, asked, given):
    found = tfbbb.predictive(model, X, likelihood=NORMAL, num_samples=asked)
    assert found.num_samples == given


def test_every_32_bit_integer_is_a_different_seed(model):
    seeds = [0, 1, -1, np.int8(-3), np.int64(5), 2**31 - 1, -(2**31)]
    means, samples, functions = [], [], []
    for seed in seeds:
        found = tfbbb.predictive(model, X[:1], likelihood=NORMAL, seed=seed)
        means.append(found.quantile(0.3).item())
        samples.append(found.sample(1).item())
        functions.append(found.joint_sample(1).item())
    for numbers in (means, samples, functions):
        assert len(set(numbers)) == len(seeds)


def test_rows_may_be_arrays_lists_or_frames(model, prediction):
    for rows in (X.tolist(), X.astype("float64"), pd.DataFrame(X)):
        found = tfbbb.predictive(model, rows, likelihood=NORMAL).mean
        np.testing.assert_array_equal(found, prediction.mean)
    whole, integers = (
        tfbbb.predictive(model, np.ones((2, 3), dtype), likelihood=NORMAL).mean
        for dtype in (float, int)
    )
    np.testing.assert_array_equal(integers, whole)


def test_likelihoods_that_differ_are_not_taken_for_each_other(model):
    scales = [0.5, 2.0, 0.5]
    predictions = [
        tfbbb.predictive(model, X, likelihood=Normal(scale=scale)) for scale in scales
    ]
    for scale, found in zip(scales, predictions, strict=True):
        np.testing.assert_allclose(found.aleatoric, scale**2, rtol=1e-6)
    adapted = Normal(scale=0.5)
    adapted.build((None, 1))
    adapted.adapt([[10.0], [30.0]])
    shifted = tfbbb.predictive(model, X, likelihood=adapted)
    scaled = predictions[0].mean * 10.0 + 20.0
    np.testing.assert_allclose(shifted.mean, scaled, rtol=1e-5)


def test_a_likelihood_may_be_given_in_place_of_the_models_own():
    inputs = keras.Input((3,))
    own = tfbbb.BayesianModel(inputs, DenseVariational(1)(inputs))
    np.testing.assert_array_equal(own.predictive(X).mean, tfbbb.predictive(own, X).mean)
    given = tfbbb.predictive(own, X, likelihood=Normal(scale=3.0))
    np.testing.assert_allclose(given.aleatoric, 9.0, rtol=1e-6)


NO_FINITE_ANSWER = np.where(np.arange(15).reshape(5, 3) == 11, np.nan, X)


@pytest.mark.parametrize(
    ("x", "options", "message"),
    [
        (X[:0], {}, "no rows to predict"),
        (X[:, :2], {}, r"has the shape \['rows', 3\]\. Received"),
        (X[..., None, None], {}, r"has the shape \['rows', 3\]\. Received"),
        ([["a", "b", "c"]], {}, r"takes float32\. Received: string"),
        (NO_FINITE_ANSWER, {}, r"no finite answer.*Received: row 3 of 5"),
        (
            X,
            {"method": "moments"},
            r"'auto', 'local', 'weight', 'linearised'\. Received: method='moments'",
        ),
        (
            X,
            {"method": "linearised", "include_dropout": True},
            r"drops nothing.*Received: include_dropout",
        ),
        (X, {"likelihood": None}, r"does not know its likelihood.*`likelihood=`"),
        (X, {"likelihood": "normal"}, "has not been trained with the model"),
    ],
)
def test_rows_and_options_that_have_no_answer_are_refused(model, x, options, message):
    with pytest.raises(ValueError, match=message):
        tfbbb.predictive(model, x, **{"likelihood": NORMAL, **options})


def test_model_without_a_variational_layer_is_refused():
    known = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)], name="known")
    with pytest.raises(ValueError, match=r"no variational layer.*model='known'"):
        tfbbb.predictive(known, X, likelihood=NORMAL)


def test_numbers_are_no_words():
    inputs = keras.Input((1,), dtype="string")
    index = keras.layers.StringLookup(vocabulary=["a", "b"], output_mode="one_hot")
    model = keras.Model(inputs, DenseVariational(1)(index(inputs)))
    with pytest.raises(ValueError, match=r"takes string\. Received: float32"):
        tfbbb.predictive(model, [[1.0]], likelihood=NORMAL)
    found = tfbbb.predictive(model, [["a"], ["b"], ["z"]], likelihood=NORMAL)
    assert len(found) == 3


@pytest.mark.usefixtures("compiled_functions")
def test_prediction_within_a_tensorflow_function_is_refused(model):
    function = tf.function(
        lambda x: tfbbb.predictive(model, x, likelihood=NORMAL).mean, autograph=False
    )
    with pytest.raises(RuntimeError, match=r"not within a `tf.function`.*Received"):
        function(tf.constant(X))


def heads():
    inputs = keras.Input((3,))
    hidden = DenseVariational(4, "tanh")(inputs)
    return inputs, [DenseVariational(size)(hidden) for size in (1, 3, 1)]


def test_outputs_have_likelihoods_of_their_own_in_any_structure():
    keras.utils.set_random_seed(0)
    inputs, (real, label, count) = heads()
    likelihoods = Categorical(), Poisson(), NORMAL
    expected = tfbbb.predictive(
        # In the order in which Keras flattens a dictionary: by its names.
        keras.Model(inputs, [label, count, real]),
        X,
        likelihood=likelihoods,
    )
    assert [p.mean.shape for p in expected] == [(5, 3), (5, 1), (5, 1)]
    named = tfbbb.predictive(
        keras.Model(inputs, {"y": real, "others": [label, {"n": count}]}),
        X,
        likelihood={
            "y": likelihoods[2],
            "others": (likelihoods[0], {"n": likelihoods[1]}),
        },
    )
    found = named["others"][0], named["others"][1]["n"], named["y"]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.mean, other.mean)
        np.testing.assert_array_equal(one.variance, other.variance)


@pytest.mark.parametrize(
    "given",
    [
        NORMAL,
        [NORMAL, "categorical"],
        {"y": NORMAL, "others": ["categorical", "poisson"]},
        {"y": NORMAL, "others": ["categorical"]},
        {"y": NORMAL, "z": ["categorical", {"n": "poisson"}]},
    ],
)
def test_likelihoods_in_another_structure_are_refused(given):
    inputs, (real, label, count) = heads()
    model = keras.Model(inputs, {"y": real, "others": [label, {"n": count}]})
    with pytest.raises(ValueError, match=r"3 outputs, each of which has a likelihood"):
        tfbbb.predictive(model, X, likelihood=given)
