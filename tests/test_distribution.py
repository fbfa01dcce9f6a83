"""Training on several devices by `tf.distribute.MirroredStrategy`."""

from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context

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


def trained_on_one_and_two_devices():
    """Returns losses and variables of models without noise, on one device and two."""
    strategy = two_replicas()
    import keras

    from tests.ensembles import ALMOST_A_POINT, X, Y, network
    from tfbbb import BayesianModel
    from tfbbb.layers import DenseVariational, LSTMVariational

    # In the last batch of 41 rows, one replica has a row and the other none; in that of
    # 39 they do not have the same number.
    x, y = np.concatenate([X, X[:1]]), np.concatenate([Y, Y[:1]])

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

    def recurrent():
        keras.utils.set_random_seed(1)
        options = {"posterior": ALMOST_A_POINT, "bias_posterior": ALMOST_A_POINT}
        inputs = keras.Input((3,))
        sequence = keras.layers.Reshape((3, 1))(inputs)
        hidden = LSTMVariational(2, **options)(sequence)
        outputs = DenseVariational(1, **options)(hidden)
        model = BayesianModel(inputs, outputs, members=2)
        model.compile(keras.optimizers.SGD(0.05))
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
        "local": (lambda: network(1, "local"), 41),
        "weight": (lambda: network(1, "weight"), 39),
        "members": (lambda: network(2, "flipout"), 41),
        "recurrent": (recurrent, 41),
    }
    for name, (make, rows) in cases.items():
        model = make()
        # To trace the few steps takes longer than to run them.
        model.run_eagerly = True
        one = trained(model, rows)
        with strategy.scope():
            model = make()
        found[name] = one, trained(model, rows)
    return found


def two_devices():
    """Returns what is found with two logical CPUs."""
    strategy = two_replicas()
    import keras
    import tensorflow as tf

    from tests.ensembles import X, Y, network
    from tests.model.test_members import exact_gradient, linear
    from tests.scores.metrics import test_in_keras as metrics

    found = {}

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

    found["gradients"] = gradient_draws(400)

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
        found["metrics"] = expected, evaluated(model)

    original = network(2, "flipout", likelihood="student_t")
    with strategy.scope():
        clone = keras.models.clone_model(original)
        clone.set_weights(original.get_weights())
    replicas = clone.distribute_strategy.num_replicas_in_sync
    values = [model.evaluate(X, Y, verbose=0)[0] for model in (original, clone)]
    found["clone"] = type(clone.likelihood).__name__, replicas, values

    with strategy.scope():
        model = network(1, "weight", posterior="mean_field_normal")

    @tf.function
    def on_replicas():
        return strategy.run(lambda: model(X[:2]))

    found["noise"] = [value.numpy() for value in on_replicas().values]
    return found


def kinds_on_one_and_two_devices():
    """Returns how a model of all kinds of layers trains."""
    strategy = two_replicas()
    from tests import every_layer as kinds

    def trained():
        model = kinds.every_layer(
            of_model=2,
            kinds=tuple(kinds.KINDS),
            posterior=kinds.ALMOST_A_POINT,
            bias_posterior=kinds.ALMOST_A_POINT,
        )
        # To trace all kinds for both devices takes a minute.
        model.run_eagerly = True
        # The last batch has five rows. (Keras needs the first one to be even.)
        history = model.fit(kinds.X, kinds.Y, batch_size=8, shuffle=False, verbose=0)
        return history.history, [v.numpy() for v in model.trainable_variables]

    one = trained()
    with strategy.scope():
        return one, trained()


@pytest.fixture(scope="module")
def process():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module")
def found(process):
    return process.submit(two_devices).result()


@pytest.fixture(scope="module")
def trained(process):
    return process.submit(trained_on_one_and_two_devices).result()


@pytest.mark.slow
@pytest.mark.parametrize("model", ["plain", "local", "weight", "members", "recurrent"])
def test_two_devices_train_as_one_where_there_is_no_noise(trained, model):
    assert_alike(*trained[model], () if model == "plain" else ("loss", "nll", "kl"))


@pytest.mark.slow
def test_kinds_of_layers_train_alike_on_two_devices(process):
    found = process.submit(kinds_on_one_and_two_devices).result()
    assert_alike(*found, ("loss", "nll", "kl"))


def assert_alike(first, second, names):
    (one, variables), (two, others) = first, second
    # Keras reports the loss of the rows of each replica.
    for name in names:
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
