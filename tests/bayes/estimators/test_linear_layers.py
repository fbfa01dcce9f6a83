"""Layers that are linear in a kernel draw what q implies, together for each row.

Their outputs are `A @ weights`, with a matrix A that Keras' own layer tells. With
independent normal weights a row is therefore normal, of mean `A @ mean` and covariance
`A @ diag(sigma^2) @ A.T`: positions that share weights are correlated.
"""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.keras_twins import (
    design_matrix,
    flat_posterior,
    set_known_posterior,
)
from tests.repeated_calls import running_functions
from tfbbb import estimators
from tfbbb.layers import (
    Conv1DTransposeVariational,
    Conv1DVariational,
    Conv2DTransposeVariational,
    Conv2DVariational,
    Conv3DTransposeVariational,
    Conv3DVariational,
    DepthwiseConv2DVariational,
    EinsumDenseVariational,
    EmbeddingVariational,
)

DRAWS = 2000
INDICES = np.array([[1, 1, 0], [2, 0, 1]])
CASES = {
    "conv1d": (
        lambda **o: Conv1DVariational(2, 2, padding="causal", dilation_rate=2, **o),
        (2, 4, 2),
    ),
    "conv2d": (lambda **o: Conv2DVariational(2, 2, groups=2, **o), (2, 3, 3, 2)),
    "conv2d_channels_first": (
        lambda **o: Conv2DVariational(2, 2, data_format="channels_first", **o),
        (2, 2, 2, 4),
    ),
    "conv3d": (lambda **o: Conv3DVariational(2, (1, 2, 2), **o), (2, 2, 2, 3, 1)),
    "conv1d_transpose": (
        lambda **o: Conv1DTransposeVariational(2, 3, strides=2, **o),
        (2, 2, 2),
    ),
    "conv2d_transpose": (
        lambda **o: Conv2DTransposeVariational(1, 2, **o),
        (2, 2, 2, 2),
    ),
    "conv3d_transpose": (
        lambda **o: Conv3DTransposeVariational(1, (1, 2, 2), **o),
        (2, 2, 1, 2, 2),
    ),
    "depthwise_conv2d": (
        lambda **o: DepthwiseConv2DVariational(2, depth_multiplier=2, **o),
        (2, 3, 3, 2),
    ),
    "einsum_of_positions": (
        lambda **o: EinsumDenseVariational("abc,cd->abd", (3, 2), None, "d", **o),
        (2, 3, 2),
    ),
    "einsum_of_blocks": (
        lambda **o: EinsumDenseVariational("abc,bcd->abd", (3, 2), None, "bd", **o),
        (2, 3, 2),
    ),
    "einsum_that_sums_positions": (
        lambda **o: EinsumDenseVariational("abc,cd->ad", 2, None, "d", **o),
        (2, 3, 2),
    ),
    "embedding": (lambda **o: EmbeddingVariational(3, 2, **o), (2, 3)),
}

# Each layer has two of the estimators.
PAIRS = [
    (estimators.Weight, "local"),
    (estimators.Flipout, estimators.Weight),
    ("local", estimators.Flipout),
]


def rows_of(name):
    if name == "embedding":
        return INDICES
    return np.random.default_rng(2).normal(size=CASES[name][1]).astype("float32")


def made(name, estimator, x):
    layer = CASES[name][0](estimator=estimator, kl_weight=0.1, seed=0)
    layer.build(x.shape)
    set_known_posterior(layer)
    return layer


@running_functions(eagerly=False)
def draws_of(layer, x):
    """Returns DRAWS independent draws of the outputs, [draws, rows, outputs].

    In one call: the estimator has so many samples, to each of which it deals its rows.
    """
    rows = np.concatenate([x] * DRAWS)
    outputs = tf.function(lambda: layer(rows))()
    return np.asarray(outputs).reshape(DRAWS, len(x), -1)


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("name", "estimator"),
    [
        (name, estimator)
        for name, two in zip(CASES, itertools.cycle(PAIRS), strict=False)
        for estimator in two
        if not (estimator == "local" and "sums" in name)
    ],
)
def test_outputs_of_a_row_have_the_joint_distribution(name, estimator):
    x = rows_of(name)
    is_local = estimator == "local"
    layer = made(name, "local" if is_local else estimator(num_samples=DRAWS), x)
    draws = draws_of(layer, x)
    matrix, (mean, stddev) = design_matrix(layer, x), flat_posterior(layer)
    covariance = np.einsum("noi,npi,i->nop", matrix, matrix, stddev**2)
    variance = np.einsum("noo->no", covariance)
    if is_local:
        # Positions are drawn apart.
        covariance = variance[:, :, None] * np.eye(variance.shape[1])
    # Some 4000 figures in all: beyond 5 standard errors is one in one of 400 suites.
    # Of normal draws, Var[s_op] = (c_oo c_pp + c_op^2) / n.
    error = np.sqrt(variance / DRAWS)
    assert np.all(np.abs(draws.mean(axis=0) - matrix @ mean) < 5 * error + 1e-5)
    centred = draws - draws.mean(axis=0)
    found = np.einsum("sno,snp->nop", centred, centred) / DRAWS
    error = np.sqrt((variance[:, :, None] * variance[:, None] + covariance**2) / DRAWS)
    assert np.all(np.abs(found - covariance) < 5 * error + 1e-5)
