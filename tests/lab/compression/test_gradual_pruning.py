"""Weights are removed while a model trains, and stay removed."""

import itertools

import keras
import numpy as np
import pytest

import tfbbb
from tfbbb.lab.compression import GradualPruning
from tfbbb.layers import DenseVariational
from tfbbb.model.compression import prune, share_removed
from tfbbb.model.compression.removal import is_removed

X = np.random.default_rng(0).normal(size=(80, 3)).astype("float32")
Y = X[:, :1] - X[:, 1:2] ** 2


def model_of(units=8, members=1, **options):
    keras.utils.set_random_seed(0)
    inputs = keras.Input((3,))
    hidden = DenseVariational(units, "relu", **options)(inputs)
    model = tfbbb.BayesianModel(inputs, DenseVariational(1)(hidden), members=members)
    model.compile(keras.optimizers.Adam(0.02))
    return model


def removed(model):
    return np.concatenate(
        [
            np.ravel(is_removed(weight))
            for layer in model.layers
            for weight in getattr(layer, "variational_weights", [])
        ]
    )


class Recorder(keras.callbacks.Callback):
    """Records the removed weights after each epoch."""

    def __init__(self):
        super().__init__()
        self.masks = []

    def on_epoch_end(self, epoch, logs=None):
        self.masks.append(removed(self.model))


@pytest.fixture(scope="module")
def trained():
    model, recorder = model_of(), Recorder()
    pruning = GradualPruning(0.6, begin=0.25, end=0.75)
    history = model.fit(
        X, Y, epochs=8, batch_size=20, verbose=0, callbacks=[pruning, recorder]
    ).history
    return model, recorder.masks, history


def test_share_rises_as_the_cubic_of_zhu_and_gupta(trained):
    _, masks, history = trained
    passed = np.clip((np.arange(1, 9) - 2) / 4, 0.0, 1.0)
    expected = 0.6 * (1.0 - (1.0 - passed) ** 3)
    np.testing.assert_allclose(history["share_removed"], expected, rtol=1e-12)
    numbers = np.floor(expected * len(masks[0]))
    np.testing.assert_array_equal([mask.sum() for mask in masks], numbers)


def test_removed_weights_stay_removed(trained):
    _, masks, _ = trained
    for earlier, later in itertools.pairwise(masks):
        assert np.all(later[earlier])


def test_trained_model_is_pruned_already(trained):
    model, _, _ = trained
    np.testing.assert_array_equal(removed(prune(model, 0.6)), removed(model))
    assert share_removed(model) == pytest.approx(0.6, abs=1 / 41)


def test_remaining_weights_train_after_the_last_removal():
    model = model_of()
    means = []
    record = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: means.append(
            model.layers[1].kernel.mean.numpy()
        )
    )
    model.fit(
        X, Y, epochs=4, verbose=0, callbacks=[GradualPruning(0.5, 0.0, 0.5), record]
    )
    changed = means[-1] != means[-2]
    np.testing.assert_array_equal(changed, means[-1] != 0.0)


def test_each_member_keeps_its_removed_weights():
    model = model_of(members=2)
    model.fit(X, Y, epochs=4, verbose=0, callbacks=[GradualPruning(0.5)])
    assert removed(model).sum() == 41


def test_constraint_of_the_layer_still_holds():
    model = model_of(kernel_constraint=keras.constraints.NonNeg())
    model.fit(X, Y, epochs=4, verbose=0, callbacks=[GradualPruning(0.5)])
    kernel = model.layers[1].kernel
    assert np.all(kernel.mean.numpy() >= 0.0)
    assert isinstance(kernel.variables["mean"].constraint, keras.constraints.NonNeg)


def test_later_training_changes_removed_weights_again():
    model = model_of()
    model.fit(X, Y, epochs=4, verbose=0, callbacks=[GradualPruning(0.5)])
    model.fit(X, Y, epochs=1, verbose=0)
    assert share_removed(model) == 0.0


def test_share_of_the_last_epoch_is_reached_for_any_span():
    for begin, end in ((0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.3, 0.35)):
        assert GradualPruning(0.9, begin, end).share_at(6, 7) == 0.9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"share": 1.5}, "`share` must be a number from 0 to 1"),
        ({"share": 0.5, "begin": -0.1}, "`begin` must be a number from 0 to 1"),
        ({"share": 0.5, "begin": 0.8, "end": 0.2}, "`begin` must be at most `end`"),
        ({"share": 0.5, "ranking": "size"}, "size"),
    ],
)
def test_arguments_out_of_range_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        GradualPruning(**arguments)


def test_refuses_weights_that_depend_on_each_other():
    model = model_of(posterior="full_covariance_normal")
    with pytest.raises(ValueError, match="mean_field_normal"):
        model.fit(X, Y, verbose=0, callbacks=[GradualPruning(0.5)])
