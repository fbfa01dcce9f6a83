"""Training on several devices by `tf.distribute.MirroredStrategy`."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest


def two_devices():
    """Returns what is found with two logical CPUs, in a process of its own."""
    import tensorflow as tf

    devices = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        devices[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    import keras

    from tests.ensembles import ALMOST_A_POINT, X, Y, network
    from tfbbb.layers import DenseVariational

    # An odd number of rows: the replicas do not have the same.
    x, y = X[:39], Y[:39]
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def plain(estimator):
        keras.utils.set_random_seed(1)
        layer = DenseVariational(
            1,
            estimator=estimator,
            posterior=ALMOST_A_POINT,
            bias_posterior=ALMOST_A_POINT,
            kl_weight=1 / 38,
        )
        model = keras.Sequential([keras.Input((3,)), layer])
        model.compile(keras.optimizers.SGD(0.05), loss="mse")
        return model

    def trained(model, rows):
        history = model.fit(
            x[:rows], y[:rows], batch_size=20, epochs=2, shuffle=False, verbose=0
        )
        variables = [v.numpy() for v in model.trainable_variables]
        return history.history, variables

    found = {}
    cases = {
        # Keras itself gives the replicas of an odd batch equal weights.
        "plain": (lambda: plain("flipout"), 38),
        "local": (lambda: network(1, "local"), 39),
        "weight": (lambda: network(1, "weight"), 39),
        "members": (lambda: network(2, "flipout"), 39),
    }
    for name, (make, rows) in cases.items():
        one = trained(make(), rows)
        with strategy.scope():
            model = make()
        found[name] = one, trained(model, rows)

    with strategy.scope():
        model = network(1, "weight", posterior="mean_field_normal")

    @tf.function
    def on_replicas():
        return strategy.run(lambda: model(x[:2]))

    found["noise"] = [value.numpy() for value in on_replicas().values]
    return found


@pytest.fixture(scope="module")
def found():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(two_devices).result()


@pytest.mark.parametrize("model", ["plain", "local", "weight", "members"])
def test_two_devices_train_as_one_where_there_is_no_noise(found, model):
    (one, variables), (two, others) = found[model]
    for name in ("nll", "kl"):
        if name in one and model != "plain":
            # The metrics average over replicas by their rows, the loss sums over both.
            np.testing.assert_allclose(two[name], one[name], rtol=1e-4)
    for variable, other in zip(variables, others, strict=True):
        np.testing.assert_allclose(other, variable, rtol=1e-4, atol=1e-5)


def test_replicas_draw_noise_of_their_own(found):
    first, second = found["noise"]
    assert np.abs(first - second).min() > 1e-3
