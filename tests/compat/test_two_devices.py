"""Models of distributions under `tf.distribute.MirroredStrategy`."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest


def one_and_two_devices():
    """Returns what models find on one and two logical CPUs, in a process of its own."""
    import tensorflow as tf

    devices = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        devices[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    import keras
    import tensorflow_probability as tfp

    import tfbbb.compat.tfp_layers as tfpl

    tfd = tfp.distributions
    x = np.linspace(-1, 1, 24, dtype="float32").reshape(12, 2)
    y = x[:, :1] ** 2

    def negloglik(y, d):
        return -d.log_prob(y)

    def distance(y, d):
        return tf.abs(y - d.mean())

    def regularized():
        prior = tfd.Independent(tfd.Normal([0.0], 1.0), 1)
        return tfpl.IndependentNormal(
            1, activity_regularizer=tfpl.KLDivergenceRegularizer(prior, True)
        )

    class Subclassed(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense, self.normal = keras.layers.Dense(2), regularized()

        def call(self, x):
            return self.normal(self.dense(x))

    def sequential(*layers):
        return keras.Sequential([*layers, keras.layers.Dense(2), regularized()])

    def trained(make):
        keras.utils.set_random_seed(1)
        model = make()
        model.compile(keras.optimizers.SGD(0.1), negloglik, metrics=[distance])
        history = model.fit(x, y, batch_size=6, epochs=2, shuffle=False, verbose=0)
        found = {name: values[-1] for name, values in history.history.items()}
        found |= {f"val_{k}": v for k, v in evaluated(model).items()}
        return found, model.predict(x, verbose=0).shape, type(model(x)).__name__

    def evaluated(model):
        return model.evaluate(x, y, batch_size=6, verbose=0, return_dict=True)

    def evaluated_first(make):
        keras.utils.set_random_seed(1)
        model = make()
        model.compile("sgd", negloglik)
        return evaluated(model), model.predict(x, verbose=0).shape, "DistributionTensor"

    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    runs = {
        "built": lambda: trained(lambda: sequential(keras.Input((2,)))),
        "unbuilt": lambda: trained(sequential),
        "subclassed": lambda: trained(Subclassed),
        "evaluated": lambda: evaluated_first(sequential),
    }
    found = {}
    for name, run in runs.items():
        one = run()
        with strategy.scope():
            found[name] = one, run()
    return found


@pytest.fixture(scope="module")
def found():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        return executor.submit(one_and_two_devices).result()


@pytest.mark.parametrize("model", ["built", "unbuilt", "subclassed", "evaluated"])
def test_losses_on_two_devices_see_the_distribution(found, model):
    (one, *rest), (two, *others) = found[model]
    assert one.keys() == two.keys()
    for name, value in one.items():
        np.testing.assert_allclose(two[name], value, rtol=1e-4)
    assert rest == others == [(12, 1), "DistributionTensor"]
