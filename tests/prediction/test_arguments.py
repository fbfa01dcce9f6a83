"""Every argument of a prediction and of its result is checked, and named if wrong."""

import keras
import numpy as np
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


def test_words_are_no_numbers(model):
    with pytest.raises(ValueError, match=r"takes float32\. Received: string"):
        tfbbb.predictive(model, [["a", "b", "c"]], likelihood=NORMAL)


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


def test_a_linearised_network_and_dropout_exclude_each_other(model):
    with pytest.raises(ValueError, match=r"drops nothing.*Received: include_dropout"):
        tfbbb.predictive(
            model, X, likelihood=NORMAL, method="linearised", include_dropout=True
        )


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
