"""XLA draws random numbers ten times slower on a CPU, so Keras does not use it."""

import warnings

import keras
import numpy as np
import pytest

import tfbbb
from tfbbb.layers import Conv2DVariational, DenseVariational, LSTMVariational

X, Y = np.ones((8, 3), "float32"), np.arange(8.0)[:, None]


def plain():
    return keras.Sequential([keras.Input((3,)), DenseVariational(1, kl_weight=0.1)])


def bayesian():
    inputs = keras.Input((3,))
    return tfbbb.BayesianModel(inputs, DenseVariational(1)(inputs))


def fit(model):
    model.fit(X, Y, verbose=0)
    model.evaluate(X, Y, verbose=0)
    model.predict(X, verbose=0)


@pytest.mark.parametrize("make", [plain, bayesian])
def test_keras_does_not_choose_xla_by_itself(make):
    model = make()
    loss = {} if isinstance(model, tfbbb.BayesianModel) else {"loss": "mse"}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model.compile("adam", jit_compile="auto", **loss)
        fit(model)
    assert not model.jit_compile


@pytest.mark.parametrize("make", [plain, bayesian])
def test_requested_xla_is_refused_with_a_warning(make):
    model = make()
    loss = {} if isinstance(model, tfbbb.BayesianModel) else {"loss": "mse"}
    with pytest.warns(UserWarning, match="doesn't support `jit_compile=True`"):
        model.compile("adam", jit_compile=True, **loss)
    assert not model.jit_compile
    fit(model)


@pytest.mark.parametrize("kind", [DenseVariational, Conv2DVariational, LSTMVariational])
def test_every_layer_says_that_it_is_not_for_xla(kind):
    arguments = (2, 3) if kind is Conv2DVariational else (2,)
    assert not kind(*arguments).supports_jit
