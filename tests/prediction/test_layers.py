"""Models of every layer have the posterior predictive that their layers imply."""

import keras
import numpy as np
import pytest

import tfbbb
from tests.posterior_draws import assert_same_moments, brute_force_draws, engine_draws
from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.layers import (
    Conv1DTransposeVariational,
    Conv1DVariational,
    Conv2DTransposeVariational,
    Conv2DVariational,
    Conv3DTransposeVariational,
    Conv3DVariational,
    DenseVariational,
    DepthwiseConv2DVariational,
    EinsumDenseVariational,
    EmbeddingVariational,
    SeparableConv2DVariational,
)
from tfbbb.prediction.structure import widest_output

WIDE = {
    "posterior": MeanFieldNormal(initial_scale=1.0),
    "bias_posterior": MeanFieldNormal(initial_scale=0.3),
    "estimator": "weight",
}
REAL = np.random.default_rng(0).normal(size=(3, 18)).astype("float32")
INDICES = np.random.default_rng(0).integers(5, size=(3, 6)).astype("float32")


def images(hidden):
    hidden = keras.layers.Reshape((3, 3, 2))(hidden)
    hidden = Conv2DVariational(4, 2, groups=2, activation="relu", **WIDE)(hidden)
    hidden = DepthwiseConv2DVariational(2, padding="same", **WIDE)(hidden)
    return Conv2DTransposeVariational(2, 2, strides=2, **WIDE)(hidden)


def separable_images(hidden):
    hidden = keras.layers.Reshape((3, 3, 2))(hidden)
    hidden = DepthwiseConv2DVariational(2, activation="tanh", **WIDE)(hidden)
    hidden = SeparableConv2DVariational(3, 2, padding="same", **WIDE)(hidden)
    return Conv2DVariational(2, 2, dilation_rate=2, padding="same", **WIDE)(hidden)


def sequences(hidden):
    hidden = keras.layers.Reshape((6, 3))(hidden)
    hidden = Conv1DTransposeVariational(2, 2, activation="tanh", **WIDE)(hidden)
    hidden = Conv1DVariational(3, 3, padding="causal", **WIDE)(hidden)
    return EinsumDenseVariational("abc,cd->abd", (None, 2), bias_axes="d", **WIDE)(
        hidden
    )


def volumes(hidden):
    hidden = keras.layers.Reshape((2, 3, 3, 1))(hidden)
    hidden = Conv3DVariational(2, (1, 2, 2), activation="relu", **WIDE)(hidden)
    return Conv3DTransposeVariational(1, 2, **WIDE)(hidden)


def texts(hidden):
    hidden = EmbeddingVariational(5, 3, **WIDE)(hidden)
    hidden = EinsumDenseVariational(
        "abc,bcd->abd", (None, 2), "tanh", bias_axes="bd", **WIDE
    )(hidden)
    return Conv1DVariational(2, 3, padding="causal", **WIDE)(hidden)


def network(body, x):
    keras.utils.set_random_seed(1)
    inputs = keras.Input(x.shape[1:])
    hidden = keras.layers.Flatten()(body(inputs))
    outputs = DenseVariational(2, **WIDE)(hidden)
    return tfbbb.BayesianModel(
        inputs, outputs, likelihood=tfbbb.likelihoods.Normal(heteroscedastic=True)
    )


BODIES = [
    (images, REAL),
    pytest.param((separable_images, REAL), marks=pytest.mark.slow),
    pytest.param((sequences, REAL), marks=pytest.mark.slow),
    pytest.param((volumes, REAL), marks=pytest.mark.slow),
    (texts, INDICES),
]


@pytest.fixture(scope="module", params=BODIES, ids=lambda body: body[0].__name__)
def model_and_rows(request):
    return network(*request.param), request.param[1]


def test_both_methods_draw_as_a_loop_of_model_calls_does(model_and_rows):
    model, x = model_and_rows
    loop = brute_force_draws(model, x, 600)
    for method in ("local", "weight"):
        draws = engine_draws(model, x, method, 600)
        assert_same_moments(draws, loop)
    # The difference of two rows tells of the weights that they share.
    assert_same_moments(draws[:, :1] - draws[:, 1:], loop[:, :1] - loop[:, 1:])


def test_draws_depend_neither_on_blocks_nor_on_the_rows_beside(model_and_rows):
    model, x = model_and_rows
    draws = engine_draws(model, x, "local", 10)
    blocks = engine_draws(model, x[1:2], "local", 10, max_floats=2000)
    np.testing.assert_allclose(draws[:, 1:2], blocks, rtol=1e-4, atol=1e-4)






