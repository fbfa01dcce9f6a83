"""A prediction finds its inputs as `fit` and `predict` find them."""

import keras
import numpy as np
import pandas as pd
import pytest

import tfbbb
from tfbbb.bayes.likelihoods import Normal
from tfbbb.layers import DenseVariational

GENERATOR = np.random.default_rng(0)
NUM = GENERATOR.normal(size=(120, 4)).astype("float32")
CAT = GENERATOR.normal(size=(120, 4)).astype("float32")
Y = NUM[:, :1] - 3.0 * CAT[:, :1]
KNOWN = {"posterior": "point", "bias_posterior": "point"}
LIKELIHOOD = Normal(scale=1.0, standardize=False)


def model_of(structure, width=4, variational=False):
    """Returns a model of two inputs, of known weights unless `variational`."""
    keras.utils.set_random_seed(1)
    num, cat = keras.Input((4,), name="num"), keras.Input((width,), name="cat")
    layer = DenseVariational(1, **(KNOWN if not variational else {}))
    outputs = layer(keras.layers.Concatenate()([num, cat]))
    model = tfbbb.BayesianModel(structure(num, cat), outputs, likelihood=LIKELIHOOD)
    model.compile("adam")
    return model


LIST = model_of(lambda num, cat: [num, cat])
NAMED = model_of(lambda num, cat: {"num": num, "cat": cat})
NESTED = model_of(lambda num, cat: {"z": [num], "cat": cat})
IN_LIST = model_of(lambda num, cat: [{"z": num}, cat])


@pytest.mark.parametrize(
    ("model", "x"),
    [
        (LIST, {"num": NUM, "cat": CAT}),
        (LIST, {"cat": CAT, "num": NUM}),
        (LIST, {"cat": CAT, "id": NUM, "num": NUM}),
        (LIST, [NUM, CAT]),
        (LIST, (NUM, CAT)),
        (NAMED, {"num": NUM, "cat": CAT}),
        (NAMED, {"cat": CAT, "num": NUM}),
        (NAMED, {"all": CAT, "num": NUM, "cat": CAT, "z": NUM}),
        (NAMED, {"num": NUM, "cat": pd.DataFrame(CAT)}),
        (NESTED, {"z": [NUM], "cat": CAT}),
        (NESTED, {"cat": CAT, "z": (NUM,)}),
        (IN_LIST, [{"z": NUM}, CAT]),
    ],
)
def test_values_reach_the_inputs_that_predict_gives_them_to(model, x):
    weights = model.layers[-1]
    expected = np.concatenate([NUM, CAT], 1) @ weights.kernel.mean + weights.bias.mean
    np.testing.assert_allclose(model.predict(x, verbose=0), expected, rtol=1e-4)
    found = model.predictive(x, num_samples=4).mean
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def of_two_widths():
    """A trained model of a list of inputs, whose names are in no order."""
    model = model_of(lambda num, cat: [num, cat], width=1, variational=True)
    model.fit({"num": NUM, "cat": CAT[:, :1]}, Y, epochs=1, verbose=0)
    return model


def test_inputs_of_unequal_widths_are_found_by_name(of_two_widths):
    expected = of_two_widths.predictive([NUM, CAT[:, :1]]).mean
    for cat in (CAT[:, :1], CAT[:, 0], pd.Series(CAT[:, 0]), CAT[:, 0].tolist()):
        found = of_two_widths.predictive({"num": NUM, "cat": cat}).mean
        np.testing.assert_array_equal(found, expected)


class Nested(keras.Model):
    """A model without a graph, which takes dictionaries within dictionaries."""

    def __init__(self):
        super().__init__()
        self.layer = DenseVariational(1, **KNOWN)

    def call(self, inputs):
        num, cat = inputs["num"], inputs["others"]["cat"][0]
        return self.layer(keras.ops.concatenate([num, cat], axis=1))


def test_subclassed_models_may_nest_their_inputs():
    model, x = Nested(), {"num": NUM, "others": {"cat": [CAT]}}
    found = tfbbb.predictive(model, x, likelihood=LIKELIHOOD, num_samples=4).mean
    np.testing.assert_allclose(found, model(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "x", "message"),
    [
        (LIST, {"num": NUM}, r"takes \['num', 'cat'\]\. Received: \{'num': 'nd"),
        (
            NAMED,
            {"num": NUM, "c": CAT},
            r"'cat': 'cat'\}.*Received: \{.*'c': 'ndarray'",
        ),
        (NAMED, [NUM, CAT], r"takes \{'num': 'num', 'cat': 'cat'\}\. Received: \["),
        (LIST, [NUM], r"Received: \['ndarray'\]"),
        (NESTED, [NUM, CAT], r"in the structure of the model's inputs.*Received: \["),
        (NESTED, {"num": NUM, "cat": CAT}, r"structure of the model's inputs"),
    ],
)
def test_inputs_in_another_structure_are_refused(model, x, message):
    with pytest.raises(ValueError, match=message):
        model.predictive(x)


@pytest.mark.parametrize(("num", "cat"), [(1, 5), (5, 1)])
def test_inputs_of_unequal_length_are_refused(num, cat):
    with pytest.raises(ValueError, match=rf"same number of rows.*\[{num}, {cat}\]"):
        LIST.predictive([NUM[:num], CAT[:cat]])


def test_inputs_without_rows_are_refused():
    x = {"num": NUM, "others": {"cat": 1.0}}
    with pytest.raises(ValueError, match=r"a first dimension, the rows\. Received"):
        tfbbb.predictive(Nested(), x, likelihood=LIKELIHOOD)
