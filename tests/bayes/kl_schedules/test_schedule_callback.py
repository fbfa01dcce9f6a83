import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tfbbb.bayes.kl_schedules import (
    Blundell,
    LinearWarmup,
    Tempered,
)
from tfbbb.layers import DenseVariational

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(60, 3)).astype("float32")
Y = X[:, :1] + GENERATOR.normal(size=(60, 1))


class Recorder(keras.callbacks.Callback):
    """Keeps the weights of the divergence as each step and validation sees them."""

    def __init__(self, layer=0):
        super().__init__()
        self.layer, self.steps, self.validations = layer, [], []

    def _weight(self):
        return float(self.model.variational_layers[self.layer].kl_weight.numpy())

    def on_train_batch_end(self, batch, logs=None):
        self.steps.append(self._weight())

    def on_test_batch_end(self, batch, logs=None):
        self.validations.append(self._weight())


def network(kl_weight=None, **compile_arguments):
    inputs = keras.Input((3,))
    hidden = DenseVariational(4, "tanh")(inputs)
    outputs = DenseVariational(1, kl_weight=kl_weight)(hidden)
    model = tfbbb.BayesianModel(inputs, outputs)
    model.compile("sgd", **compile_arguments)
    return model


# The few steps of these tests run faster than they would be traced.
def trained(schedule, *data, model=None, recorder=None, **arguments):
    model = model or network()
    together = model.steps_per_execution
    model.compile(
        "sgd",
        kl_schedule=schedule,
        steps_per_execution=together,
        run_eagerly=together == 1,
    )
    recorder = recorder or Recorder()
    data = data or (X, Y)
    arguments = {"batch_size": 20, "verbose": 0, **arguments}
    history = model.fit(*data, callbacks=[recorder], **arguments).history
    return recorder, history


@pytest.mark.few(1)
@pytest.mark.parametrize("schedule", [Blundell(), LinearWarmup(3)], ids=repr)
def test_every_step_has_its_temperature_over_n(schedule):
    recorder, history = trained(schedule, epochs=4)
    temperatures = [
        schedule.temperature(epoch, batch, 3, 60)
        for epoch in range(4)
        for batch in range(3)
    ]
    # A weight is float32.
    np.testing.assert_allclose(recorder.steps, np.divide(temperatures, 60), rtol=1e-6)
    means = np.reshape(temperatures, (4, 3)).mean(axis=1)
    np.testing.assert_allclose(history["temperature"], means, rtol=1e-12)


def test_a_continued_fit_continues_the_schedule():
    recorder, _ = trained(LinearWarmup(4), initial_epoch=2, epochs=3)
    np.testing.assert_allclose(recorder.steps, np.array([6, 7, 8]) / 12 / 60, rtol=1e-6)


def test_validation_uses_the_target_temperature_and_then_restores():
    schedule, model = LinearWarmup(9), network()
    recorder, history = trained(schedule, model=model, epochs=2, validation_data=(X, Y))
    np.testing.assert_allclose(recorder.validations, 1.0 / 60, rtol=1e-6)
    bound = np.add(history["val_nll"], np.divide(history["val_kl"], 60))
    np.testing.assert_allclose(history["val_loss"], bound, rtol=1e-5)
    first = schedule.temperature(1, 0, 3, 60) / 60
    np.testing.assert_allclose(recorder.steps[3], first, rtol=1e-6)
    weight = model.variational_layers[0].kl_weight.numpy()
    np.testing.assert_allclose(weight, 1.0 / 60, rtol=1e-6)


def test_several_batches_per_execution_need_a_schedule_by_epoch():
    model = network(steps_per_execution=3)
    with pytest.raises(ValueError, match=r"`steps_per_execution=1`.*LinearWarmup\(ep"):
        trained(Blundell(), model=model)
    recorder, _ = trained(LinearWarmup(2, each_batch=False), model=model, epochs=3)
    np.testing.assert_allclose(recorder.steps, np.array([0, 0.5, 1]) / 60, rtol=1e-6)


def test_an_unknown_number_of_batches_error_names_the_remedy():
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(20)
    unknown = data.filter(lambda *_: True)
    arguments = {"batch_size": None, "dataset_size": 60}
    for schedule in (Blundell(), LinearWarmup()):
        with pytest.raises(ValueError, match="Pass `steps_per_epoch` to `fit`"):
            trained(schedule, unknown, **arguments)
    counted = unknown.apply(tf.data.experimental.assert_cardinality(3))
    for found, more in ((unknown, {"steps_per_epoch": 3}), (counted, {})):
        recorder, _ = trained(Blundell(), found, **arguments, **more)
        np.testing.assert_allclose(
            recorder.steps, [4 / 140, 2 / 140, 1 / 140], rtol=1e-6
        )


def test_temperature_is_that_of_the_weights_the_layers_were_given():
    def fitted(first, last, schedule="constant"):
        inputs = keras.Input((3,))
        hidden = DenseVariational(2, kl_weight=first, name="first")(inputs)
        outputs = DenseVariational(1, kl_weight=last, name="last")(hidden)
        model = tfbbb.BayesianModel(inputs, outputs)
        model.compile("sgd", kl_schedule=schedule, run_eagerly=True)
        history = model.fit(X, Y, verbose=0).history
        return {k: v[0] for k, v in history.items() if k not in ("loss", "nll", "kl")}

    assert fitted(0.5 / 60, 0.5 / 60) == pytest.approx({"temperature": 0.5})
    assert fitted(None, 0.5 / 60, Tempered(0.25)) == pytest.approx(
        {"temperature": 0.25, "temperature_last": 0.5}
    )
    assert fitted(1 / 60, 0.5 / 60) == pytest.approx(
        {"temperature_first": 1.0, "temperature_last": 0.5}
    )
    with pytest.raises(ValueError, match=r"every layer has one of its own.*Received"):
        fitted(1 / 60, 1 / 60, "linear_warmup")
