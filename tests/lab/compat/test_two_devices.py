"""Models of distributions under `tf.distribute.MirroredStrategy`."""

from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from types import FunctionType

import numpy as np
import pytest


@cache
def two_replicas():
    """Returns a strategy of two logical CPUs, in a process of its own."""
    import tensorflow as tf

    devices = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        devices[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def one_and_two_devices(name):
    """Returns what a model finds on one and two logical CPUs."""
    strategy = two_replicas()
    import keras
    import tensorflow as tf
    import tensorflow_probability as tfp

    import tfbbb.lab.compat.tfp_layers as tfpl

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

    def trained(make, **options):
        keras.utils.set_random_seed(1)
        model = make()
        model.compile(
            keras.optimizers.SGD(0.1), negloglik, metrics=[distance], **options
        )
        history = model.fit(x, y, batch_size=6, epochs=2, shuffle=False, verbose=0)
        found = {name: values[-1] for name, values in history.history.items()}
        scores = model.evaluate(x, y, batch_size=6, verbose=0, return_dict=True)
        found |= {f"val_{k}": v for k, v in scores.items()}
        return found, model.predict(x, verbose=0).shape, type(model(x)).__name__

    make = {
        "built": lambda: sequential(keras.Input((2,))),
        "subclassed": Subclassed,
    }[name]
    # To trace the few steps takes longer than to run them.
    one = trained(make, run_eagerly=True)
    with strategy.scope():
        return one, trained(make)


@pytest.fixture(scope="module")
def process():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        yield executor


def test_keras_model_is_not_changed_by_the_import():
    import keras

    import tfbbb.lab.compat.tfp_layers

    functions = {
        name: value.__module__
        for kind in keras.Model.__mro__
        for name, value in vars(kind).items()
        if isinstance(value, FunctionType)
    }
    assert tfbbb.lab.compat.tfp_layers.DistributionLambda
    assert not {k: v for k, v in functions.items() if v.startswith("tfbbb")}


# A subclassed model is built by its first step.
@pytest.mark.slow
@pytest.mark.parametrize("model", ["built", "subclassed"])
def test_losses_on_two_devices_see_the_distribution(process, model):
    found = process.submit(one_and_two_devices, model).result()
    (one, *rest), (two, *others) = found
    assert one.keys() == two.keys()
    for name, value in one.items():
        np.testing.assert_allclose(two[name], value, rtol=1e-4)
    assert rest == others == [(12, 1), "DistributionTensor"]
