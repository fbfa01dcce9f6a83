import math

import keras
import numpy as np
import pytest

import tfbbb
from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.bayes.divergences import kl_divergence
from tfbbb.layers import DenseVariational
from tfbbb.model.callbacks import PosteriorMonitor
from tfbbb.model.callbacks.layer_posterior import layer_posterior

N = 60
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(N, 3)).astype("float32")
Y = X[:, :1]


def bayesian(**first):
    inputs = keras.Input((3,))
    hidden = DenseVariational(4, "tanh", name="first", **first)(inputs)
    model = tfbbb.BayesianModel(inputs, DenseVariational(1, name="second")(hidden))
    # The few steps run faster than they would be traced.
    model.compile("sgd", run_eagerly=True)
    return model


def plain(kl_weight=1 / N, loss="mse", name=None):
    model = keras.Sequential(
        [keras.Input((3,)), DenseVariational(1, kl_weight=kl_weight, name=name)]
    )
    model.compile("sgd", loss=loss, run_eagerly=True)
    return model


def history_of(model, monitor, **arguments):
    arguments = {"batch_size": 20, "verbose": 0, "callbacks": [monitor], **arguments}
    return model.fit(X, Y, **arguments).history


def test_reports_each_layers_divergence_bits_and_ratios():
    model = bayesian()
    history = history_of(model, PosteriorMonitor(), epochs=2)
    for name, size in (("first", 16), ("second", 5)):
        layer = model.get_layer(name)
        kl = sum(float(kl_divergence(w, None)) for w in layer.variational_weights)
        ratios = np.concatenate(
            [np.ravel(abs(w.mean) / w.stddev) for w in layer.variational_weights]
        )
        last = {key: values[-1] for key, values in history.items() if name in key}
        assert {len(values) for values in history.values()} == {2}
        np.testing.assert_allclose(last[f"kl/{name}"], kl, rtol=1e-6)
        bits = kl / size / math.log(2)
        np.testing.assert_allclose(last[f"bits_per_weight/{name}"], bits, rtol=1e-6)
        np.testing.assert_allclose(
            last[f"snr_median/{name}"], np.median(ratios), rtol=1e-6
        )
        assert last[f"collapsed/{name}"] == 0.0


def test_collapsed_is_the_share_of_weights_near_the_prior():
    layer = DenseVariational(2, prior="normal")
    layer.build((None, 4))
    # KL = mean^2 / (2 s^2) with s = 1/2: 0.005, 0.02, 0.08, ... nats.
    means = 0.05 * 2.0 ** np.arange(8).reshape(4, 2)
    layer.kernel.variables["mean"].assign(means)
    layer.kernel.variables["log_scale"].assign(np.full((4, 2), np.log(0.5)))
    layer.bias.variables["log_scale"].assign(np.zeros(2))
    # The biases are the prior, and KL of the smallest mean is below 0.01 nats.
    assert layer_posterior(layer).collapsed == 3 / 10


@pytest.mark.slow
def test_estimated_divergences_are_repeatable_means_of_draws():
    layer = DenseVariational(8, prior="scale_mixture_normal")
    layer.build((None, 30))
    few, many = layer_posterior(layer, 16), layer_posterior(layer, 400)
    assert layer_posterior(layer, 16).kl == few.kl
    assert few.divergences is None
    assert few.collapsed is None
    weights = layer.variational_weights
    draws = [
        sum(float(kl_divergence(w, lambda w=w, i=i: w.draw([7, i]))) for w in weights)
        for i in range(400)
    ]
    error = np.std(draws) * np.sqrt(1 / 16 + 1 / 400)
    assert abs(few.kl - np.mean(draws)) < 4 * error
    # Two means over 400 draws each.
    assert abs(many.kl - np.mean(draws)) < 4 * np.std(draws) * np.sqrt(2 / 400)


def test_statistics_are_means_over_members():
    layer = DenseVariational(4, members=3)
    layer.build((None, 5))
    mean = layer.kernel.variables["mean"]
    mean.assign(GENERATOR.normal(size=mean.shape))
    posterior = layer_posterior(layer)
    every = sum(np.asarray(kl_divergence(w, None)) for w in layer.variational_weights)
    assert every.shape == (3,)
    np.testing.assert_allclose(posterior.kl, every.mean(), rtol=1e-6)
    np.testing.assert_allclose(
        posterior.bits_per_weight, every.mean() / math.log(2) / 24, rtol=1e-6
    )
    assert posterior.signal_to_noise.shape == (3 * 24,)
    np.testing.assert_allclose(posterior.divergences.sum(), every.sum(), rtol=1e-5)


def test_nested_and_subclassed_models_get_distinct_names():
    class Subclassed(keras.Model):
        def __init__(self):
            super().__init__()
            self.body, self.head = plain(name="same"), plain(name="same")

        def call(self, x):
            return self.head(keras.ops.repeat(self.body(x), 3, axis=1))

    model = Subclassed()
    model.compile("sgd", loss="mse", run_eagerly=True)
    history = history_of(model, PosteriorMonitor())
    assert sum(key.startswith("kl/") for key in history) == 2


def test_parts_of_a_layer_have_their_own_statistics():
    inputs = keras.Input((3, 1))
    attention = tfbbb.layers.MultiHeadAttentionVariational(2, 2, name="attention")
    flat = keras.layers.Flatten()(attention(inputs, inputs))
    inner = keras.Sequential([keras.Input((3,)), DenseVariational(1, name="out")])
    model = tfbbb.BayesianModel(inputs, inner(flat))
    model.compile("sgd", run_eagerly=True)
    monitor = PosteriorMonitor()
    history = model.fit(X[..., None], Y, verbose=0, callbacks=[monitor]).history
    assert {key for key in history if key.startswith("kl/")} == {
        *(f"kl/attention_{n}" for n in ("query", "key", "value", "attention_output")),
        "kl/out",
    }


def test_weights_without_a_spread_have_infinite_ratios():
    point = {"posterior": "point", "bias_posterior": "point"}
    history = history_of(bayesian(**point), PosteriorMonitor())
    assert history["snr_median/first"] == [np.inf]
    assert "collapsed/first" not in history


def test_collapse_of_dependent_weights_uses_their_marginals():
    family = tfbbb.posteriors.FullCovarianceNormal(initial_scale=1.0)
    options = {"posterior": family, "prior": "normal", "bias_posterior": family}
    layer = DenseVariational(2, kernel_initializer="zeros", **options)
    layer.build((None, 4))
    assert layer_posterior(layer).collapsed == 1.0
    correlations = layer.bias.variables["correlations"]
    correlations.assign([1.0])
    posterior = layer_posterior(layer)
    assert posterior.collapsed == 0.9
    # N(0, 2) from N(0, 1)
    expected = 0.5 * (2.0 - 1.0 - math.log(2.0))
    assert posterior.divergences.max() == pytest.approx(expected, rel=1e-5)


def test_reports_every_few_epochs():
    model = bayesian()
    history = history_of(model, PosteriorMonitor(every=2), epochs=5)
    assert len(history["kl/first"]) == 2
    assert len(history["loss"]) == 5


def test_reports_the_epoch_in_which_training_diverged():
    model = bayesian()
    model.get_layer("second").kernel.variables["mean"].assign(np.full((4, 1), np.nan))
    with pytest.raises(TrainingDivergedError):
        history_of(model, PosteriorMonitor())
    history = model.history.history
    assert np.isnan(history["kl/second"][0])
    assert np.isnan(history["snr_median/second"][0])


def test_warns_once_for_each_collapsed_layer():
    wide = tfbbb.posteriors.MeanFieldNormal(initial_scale=1.0)
    options = {"posterior": wide, "prior": "normal", "bias_posterior": wide}
    model = bayesian(kernel_initializer="zeros", **options)
    model.optimizer.learning_rate = 0.0
    monitor = PosteriorMonitor()
    with pytest.warns(UserWarning, match="'first' has collapsed.*: 100%") as caught:
        history = history_of(model, monitor, epochs=3)
    assert sum("collapsed" in str(w.message) for w in caught) == 1
    assert history["collapsed/first"] == [1.0, 1.0, 1.0]
