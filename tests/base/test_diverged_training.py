"""Training whose loss is not finite ends, or warns where it may recover."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tfbbb.base.diverged_training import FiniteLoss
from tfbbb.layers import DenseVariational
from tfbbb.training import TrainingDivergedError

X = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
Y = X[:, :1]


def network():
    inputs = keras.Input((3,))
    model = tfbbb.BayesianModel(inputs, DenseVariational(1)(inputs))
    model.likelihood.adapt(Y)
    model.compile("adam")
    return model


def bad_generator():
    """Batches whose third has NaN, which no reading ahead can find."""
    x = X.copy()
    x[35] = np.nan
    while True:
        for first in range(0, 40, 10):
            yield x[first : first + 10], Y[first : first + 10]


def fit(model, **arguments):
    return model.fit(
        bad_generator(), dataset_size=40, steps_per_epoch=4, verbose=0, **arguments
    )


def test_training_without_a_finite_loss_ends_with_its_first_epoch():
    model, ended = network(), []
    log = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, _: ended.append(1))
    with pytest.raises(
        TrainingDivergedError,
        match=r"lower `learning_rate`, or look for inputs.*learning_rate=0\.001$",
    ):
        fit(model, epochs=5, callbacks=[log])
    assert ended == [1]
    assert len(model.history.history["loss"]) == 1
    assert int(model.optimizer.iterations.numpy()) == 4


def test_training_that_another_callback_stops_warns():
    with pytest.warns(UserWarning, match="Training diverged"):
        history = fit(network(), epochs=5, callbacks=keras.callbacks.TerminateOnNaN())
    assert len(history.history["loss"]) == 1


def test_weights_that_another_callback_restores_are_kept():
    model = network()
    weights = model.get_weights()
    restore = keras.callbacks.LambdaCallback(
        on_train_end=lambda logs: model.set_weights(weights)
    )
    with pytest.warns(UserWarning, match="Training diverged"):
        fit(model, epochs=5, callbacks=[restore])


def test_finite_weights_may_recover_from_an_infinite_loss():
    model, check = network(), FiniteLoss()
    check.set_model(model)
    with pytest.warns(UserWarning, match="Training diverged"):
        check.on_epoch_end(0, {"loss": np.inf})
    check.on_epoch_end(0, {"loss": 3.0})


def test_learning_rate_far_too_high_is_named():
    model = network()
    model.compile(keras.optimizers.SGD(1e30))
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(10)
    with pytest.raises(TrainingDivergedError, match=r"learning_rate=1e\+30"):
        model.fit(data, epochs=3, verbose=0)
