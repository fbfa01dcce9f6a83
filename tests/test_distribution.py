"""Training on several devices by `tf.distribute.MirroredStrategy`."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest


def two_devices():
    """Returns what is found with two logical CPUs, in a process of its own."""
    import keras
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * 2
    )
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    # Only now: these make variables.
    from tests.ensembles import X, Y, network
    from tests.model.test_members import exact_gradient, linear
    from tests.scores.metrics import test_in_keras as metrics

    found = {}

    def trained(model):
        # In the last batch of 21 rows, one replica has a row and the other none.
        options = {"batch_size": 10, "shuffle": False, "verbose": 0}
        history = model.fit(X[:21], Y[:21], **options).history
        return history, [v.numpy() for v in model.trainable_variables]

    model = network(2, "flipout")
    # To trace the few steps would take longer than to run them.
    model.run_eagerly = True
    one = trained(model)
    with strategy.scope():
        model = network(2, "flipout")
    found["trained"] = one, trained(model)

    def gradient_draws(number):
        """Returns draws of the sum of both replicas' gradients, and its mean."""
        with strategy.scope():
            model, layer = linear(2, "weight")
        parts = strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(
                [[0, 25], [25, 40]][context.replica_id_in_sync_group]
            )
        )
        variables = [variable.value for variable in model.trainable_variables]

        def gradient(part):
            rows = slice(part[0], part[1])
            x_part, y_part = tf.constant(X)[rows], tf.constant(Y)[rows]
            with tf.GradientTape() as tape:
                outputs = model(x_part, training=True)
                loss = model.compute_loss(x_part, y_part, outputs)
            return tf.concat(
                [tf.reshape(g, [2, -1]) for g in tape.gradient(loss, variables)], 1
            )

        @tf.function
        def draw():
            return strategy.reduce("SUM", strategy.run(gradient, [parts]), axis=None)

        exact = np.stack([exact_gradient(layer, member) for member in range(2)])
        return np.stack([draw() for _ in range(number)]), exact

    found["gradients"] = gradient_draws(100)

    def evaluated(model, **options):
        chosen = [metric(name=name) for name, (metric, _) in metrics.NUMBERS.items()]
        values = metrics.evaluated(model, chosen, metrics.Y, **options)
        return {name: values[name] for name in metrics.NUMBERS}

    one = metrics.of_numbers(2)
    expected = evaluated(one, run_eagerly=True)
    with strategy.scope():
        model = metrics.of_numbers(2)
        # In the last batch of 9 rows the replicas have 5 and 4.
        model.set_weights(one.get_weights())
        found["metrics"] = expected, evaluated(model, run_eagerly=True)

    original = network(2, "flipout", likelihood="student_t")
    with strategy.scope():
        clone = keras.models.clone_model(original)
        clone.set_weights(original.get_weights())
    replicas = clone.distribute_strategy.num_replicas_in_sync
    original.run_eagerly = clone.run_eagerly = True
    values = [model.evaluate(X, Y, verbose=0)[0] for model in (original, clone)]
    found["clone"] = type(clone.likelihood).__name__, replicas, values

    with strategy.scope():
        model = network(1, "weight", posterior="mean_field_normal")

    @tf.function
    def on_replicas():
        return strategy.run(lambda: model(X[:2]))

    found["noise"] = [value.numpy() for value in on_replicas().values]
    return found


@pytest.fixture(scope="module")
def found():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(two_devices).result()


def test_two_devices_train_as_one_where_there_is_no_noise(found):
    (one, variables), (two, others) = found["trained"]
    for name in ("loss", "nll", "kl"):
        np.testing.assert_allclose(two[name], one[name], rtol=1e-4)
    for variable, other in zip(variables, others, strict=True):
        np.testing.assert_allclose(other, variable, rtol=1e-4, atol=1e-5)


def test_two_devices_estimate_the_gradient_of_the_whole_batch(found):
    draws, exact = found["gradients"]
    error = draws.std(axis=0) / np.sqrt(len(draws)) + 1e-6
    # 16 figures: 5 standard errors are exceeded in one of 100 000 such sets.
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - exact), 5.0 * error)


def test_two_devices_give_the_metrics_of_one(found):
    one, two = found["metrics"]
    for name, value in one.items():
        assert two[name] == pytest.approx(value, rel=1e-4), name


def test_replicas_draw_noise_of_their_own(found):
    first, second = found["noise"]
    assert np.abs(first - second).min() > 1e-3


def test_a_clone_on_two_devices_is_the_same_model(found):
    likelihood, replicas, (one, two) = found["clone"]
    assert (likelihood, replicas) == ("StudentT", 2)
    # The weights are almost points.
    assert two == pytest.approx(one, rel=1e-4)
