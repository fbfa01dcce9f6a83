"""The fused Adam is Keras' Adam."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfbbb.model.optimizers import Adam

OPTIONS = [
    {},
    {"learning_rate": 0.1, "beta_1": 0.5, "beta_2": 0.9, "epsilon": 1e-3},
    {"amsgrad": True},
    {"clipnorm": 0.1},
    {"weight_decay": 0.01},
    {"use_ema": True, "ema_overwrite_frequency": 3},
    {"gradient_accumulation_steps": 2},
    {"learning_rate": keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options))
def test_updates_are_those_of_keras(options):
    gradients = np.random.default_rng(0).normal(size=(8, 5)).astype("float32")
    results = []
    for optimizer in (Adam(**options), keras.optimizers.Adam(**options)):
        variable = keras.Variable(np.ones(5, "float32"))
        optimizer.build([variable])
        for gradient in gradients:
            optimizer.apply([keras.ops.convert_to_tensor(gradient)])
        results.append(variable.numpy())
    np.testing.assert_allclose(results[0], results[1], rtol=2e-5)


def test_sparse_gradients_update_as_dense_ones():
    values = np.arange(4, dtype="float32").reshape(2, 2)
    sparse = tf.IndexedSlices(np.concatenate([values, values[1:]]), [1, 3, 3], [4, 2])
    results = []
    for gradient in (sparse, tf.convert_to_tensor(sparse)):
        optimizer = Adam(0.1)
        variable = keras.Variable(np.ones((4, 2), "float32"))
        optimizer.build([variable])
        for _ in range(3):
            optimizer.apply([gradient], [variable])
        results.append(variable.numpy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)
