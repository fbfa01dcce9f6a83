import keras
import numpy as np
import pytest
from matplotlib.figure import Figure

import tfbbb
from tfbbb.scores.plots import elbo_curve

LOGS = {"loss": [3.0, 2.0, 1.8], "nll": [2.5, 1.6, 1.2], "val_nll": [2.6, 1.5, 1.7]}


def drawn(axes):
    return {line.get_label(): line.get_data() for line in axes.lines}


def test_the_history_of_a_fit_is_plotted_by_epoch():
    x = np.random.default_rng(0).normal(size=(20, 1))
    inputs = keras.Input((1,))
    outputs = tfbbb.layers.DenseVariational(1)(inputs)
    model = tfbbb.BayesianModel(inputs, outputs)
    model.compile("adam", kl_schedule="linear_warmup")
    history = model.fit(x, x, epochs=3, validation_data=(x, x), verbose=0)
    axes = elbo_curve(history, axes=Figure().subplots())
    for name in ("loss", "nll", "val_nll"):
        epochs, values = drawn(axes)[name]
        assert epochs.tolist() == [1, 2, 3]
        np.testing.assert_allclose(values, history.history[name])
    strip = axes.child_axes[0].lines[0].get_ydata()
    np.testing.assert_allclose(strip, history.history["temperature"])


def test_the_cost_of_the_divergence_is_between_loss_and_nll():
    axes = elbo_curve(LOGS, axes=Figure().subplots())
    vertices = axes.collections[0].get_paths()[0].vertices
    for epoch in (1, 2, 3):
        ends = vertices[vertices[:, 0] == epoch][:, 1]
        assert ends.min() == LOGS["nll"][epoch - 1]
        assert ends.max() == LOGS["loss"][epoch - 1]


def test_the_lowest_val_nll_is_marked():
    axes = elbo_curve(LOGS, axes=Figure().subplots())
    epochs, values = drawn(axes)["lowest: 1.5 at epoch 2"]
    assert (list(epochs), list(values)) == ([2], [1.5])


@pytest.mark.parametrize("logs", [LOGS, {**LOGS, "temperature": [1.0, 1.0, 1.0]}])
def test_a_constant_temperature_has_no_strip(logs):
    assert not elbo_curve(logs, axes=Figure().subplots()).child_axes


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ({"loss": [1.0]}, r"must have a `loss` and an `nll`.*Received: \['loss'\]"),
        (None, "must have a `loss` and an `nll`.*Received: None"),
        ({"loss": [], "nll": []}, "`loss` must be an array of shape"),
        ({"loss": [1.0], "nll": [np.nan]}, "`nll` must be finite"),
        ({"loss": [1.0, 2.0], "nll": [1.0]}, "Received: lengths"),
    ],
)
def test_an_invalid_history_is_refused(history, message):
    with pytest.raises(ValueError, match=message):
        elbo_curve(history, axes=Figure().subplots())
