import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tfbbb.bayes.likelihoods import Normal
from tfbbb.layers import DenseVariational
from tfbbb.model.callbacks.objective_check import objective_mismatch
from tfbbb.model.losses import NegativeLogLikelihood

N, BATCHES = 80, 5


def sequential(loss, *kl_weights, units=1, inputs=(3,)):
    layers = [
        DenseVariational(units, kl_weight=weight, name=f"dense_{index}")
        for index, weight in enumerate(kl_weights)
    ]
    model = keras.Sequential([keras.Input(inputs), *layers])
    model.compile("sgd", loss=loss)
    return model


class Subclassed(keras.Model):
    def __init__(self, kl_weight):
        super().__init__()
        self.dense = DenseVariational(1, kl_weight=kl_weight)

    def call(self, x):
        return self.dense(x)


def subclassed(kl_weight):
    model = Subclassed(kl_weight)
    model.compile("sgd", loss="mse")
    model(np.zeros((2, 3)))
    return model


NLL = NegativeLogLikelihood(Normal(scale=1.0))
SUM = keras.losses.MeanSquaredError(reduction="sum")


@pytest.mark.parametrize(
    ("model", "right"),
    [
        (lambda w: sequential("mse", w), 1 / N),
        (lambda w: sequential("mse", w, w), 1 / N),
        (lambda w: sequential("mean_absolute_error", w), 1 / N),
        (lambda w: sequential(keras.losses.MeanSquaredError(), w), 1 / N),
        (lambda w: sequential(NLL, w), 1 / N),
        (lambda w: sequential(NLL, w, units=4), 1 / N),
        (lambda w: sequential("mse", w, units=4), 1 / (4 * N)),
        (lambda w: sequential("mse", w, units=4, inputs=(7, 3)), 1 / (28 * N)),
        (lambda w: sequential("binary_crossentropy", w, units=4), 1 / (4 * N)),
        (lambda w: sequential("categorical_crossentropy", w, units=4), 1 / N),
        (
            lambda w: sequential(
                "sparse_categorical_crossentropy", w, units=4, inputs=(7, 3)
            ),
            1 / (7 * N),
        ),
        (lambda w: sequential(SUM, w), 1 / BATCHES),
        (lambda w: sequential(SUM, w, units=4), 1 / (4 * BATCHES)),
    ],
)
def test_only_the_right_weight_passes(model, right):
    assert objective_mismatch(model(right), N, BATCHES) is None
    for factor in (0.5, 2.0):
        message = objective_mismatch(model(factor * right), N, BATCHES)
        assert f"has kl_weight={right:.4g}." in message
        assert f"{factor * right:.4g} (temperature {factor:.4g})" in message


def brute_force_weight(loss, targets, outputs):
    """Returns how much one row adds to an epoch's mean loss, against the sum over D.

    Changing every output of one row changes the sum over its D outputs by a known
    amount; the loss of the batch changes by that times the likelihood's weight.
    """
    moved = outputs.copy()
    moved[0] += 1.0
    change = float(loss(targets, moved) - loss(targets, outputs))
    in_full = np.square(moved[0] - targets[0]) - np.square(outputs[0] - targets[0])
    return change / in_full.sum()


@pytest.mark.parametrize("shape", [(1,), (4,), (7, 4)])
@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "sum"])
def test_the_right_weight_gives_the_evidence_lower_bound(shape, reduction):
    batch_size = N // BATCHES
    generator = np.random.default_rng(0)
    targets, outputs = generator.normal(size=(2, batch_size, *shape)).astype("float32")
    loss = keras.losses.MeanSquaredError(reduction=reduction)
    # An epoch adds up likelihood_weight * (sum over N rows) and batches * kl_weight *
    # KL: the evidence lower bound where the two weights are the same.
    likelihood_weight = brute_force_weight(loss, targets, outputs)
    right = likelihood_weight / BATCHES
    model = sequential(loss, right, units=shape[-1], inputs=(*shape[:-1], 3))
    assert objective_mismatch(model, N, BATCHES) is None
    wrong = sequential(loss, 1.2 * right, units=shape[-1], inputs=(*shape[:-1], 3))
    assert f"kl_weight={right:.4g}" in objective_mismatch(wrong, N, BATCHES)


def test_unknown_averages_refute_only_weights_that_are_too_large():
    def own(targets, outputs):
        return tf.reduce_sum(tf.square(targets - outputs), axis=-1)

    for model in (subclassed, lambda weight: sequential(own, weight)):
        for weight in (1 / N, 1 / (4 * N)):
            assert objective_mismatch(model(weight), N, BATCHES) is None
        assert "temperature 80" in objective_mismatch(model(1.0), N, BATCHES)


def test_layers_with_different_weights_are_named():
    def own(targets, outputs):
        return tf.reduce_sum(tf.square(targets - outputs), axis=-1)

    message = objective_mismatch(sequential("mse", 1 / N, 1.0), N, BATCHES)
    assert "dense_1: 1 (temperature 80)" in message
    assert "dense_0:" not in message
    message = objective_mismatch(sequential(own, 1 / N, 1 / (9 * N)), N, BATCHES)
    assert "different weights" in message


def test_losses_of_several_outputs_are_not_checked():
    inputs = keras.Input((3,))
    outputs = [DenseVariational(1, kl_weight=1.0)(inputs) for _ in range(2)]
    model = keras.Model(inputs, outputs)
    model.compile("sgd", loss=["mse", "mse"])
    assert objective_mismatch(model, N, BATCHES) is None


def test_given_weights_of_bayesian_models_are_checked():
    def fitted(kl_weight):
        inputs = keras.Input((3,))
        hidden = DenseVariational(2)(inputs)
        model = tfbbb.BayesianModel(
            inputs, DenseVariational(1, kl_weight=kl_weight, name="last")(hidden)
        )
        model.compile("sgd")
        x = np.random.default_rng(0).normal(size=(N, 3))
        model.fit(x, x[:, :1], verbose=0)
        return model

    assert objective_mismatch(fitted(None), N, BATCHES) is None
    assert objective_mismatch(fitted(1 / N), N, BATCHES) is None
    assert "last: 1 (temperature 80)" in objective_mismatch(fitted(1.0), N, BATCHES)
