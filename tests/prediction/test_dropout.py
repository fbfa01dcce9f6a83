"""Monte Carlo dropout: masks against Keras' own dropout, coherent over rows."""

import keras
import numpy as np
import pytest

import tfbbb
from tests.posterior_draws import assert_same_moments
from tests.repeated_calls import repeated
from tfbbb.bayes.likelihoods import Normal
from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.layers import DenseVariational

X = np.random.default_rng(0).normal(size=(3, 4)).astype("float32")
IMAGES = np.random.default_rng(1).normal(size=(3, 5, 4, 2)).astype("float32")
SEQUENCES = np.random.default_rng(2).normal(size=(3, 5, 4)).astype("float32")
NORMAL = Normal(scale=1.0)


def network(layer, x, before=None):
    keras.utils.set_random_seed(0)
    inputs = hidden = keras.Input(x.shape[1:])
    if before is not None:
        hidden = before(hidden)
    hidden = keras.layers.Flatten()(layer(hidden))
    return keras.Model(inputs, keras.layers.Dense(2)(hidden))


def draws_of(model, x, num_samples=1000, **kwargs):
    """Returns independent draws [n, rows, k], one of each pair."""
    drawn = tfbbb.predictive(
        model,
        x,
        likelihood=NORMAL,
        num_samples=2 * num_samples,
        include_dropout=True,
        method="weight",
        **kwargs,
    )
    return drawn.joint_sample(num_samples)


LAYERS = [
    (keras.layers.Dropout(0.3, noise_shape=(None, 1, 4)), SEQUENCES),
    (keras.layers.SpatialDropout2D(0.4), IMAGES),
    (keras.layers.GaussianDropout(0.3), X),
]


@pytest.mark.parametrize(
    ("layer", "x"), LAYERS, ids=[type(layer).__name__ for layer, _ in LAYERS]
)
def test_draws_are_those_of_keras_in_training(layer, x):
    model = network(layer, x)
    loop = repeated(lambda: model(x, training=True), 1000)
    assert_same_moments(draws_of(model, x), loop)


def test_rows_share_a_mask_but_not_their_answers():
    model = network(keras.layers.Dropout(0.5), X)
    same = draws_of(model, np.repeat(X[:1], 3, axis=0), num_samples=20)
    np.testing.assert_allclose(same[:, 1:], same[:, :1].repeat(2, axis=1), rtol=1e-5)
    together = draws_of(model, X, num_samples=20)
    alone = draws_of(model, X[1:2], num_samples=20)
    np.testing.assert_allclose(together[:, 1:2], alone, rtol=1e-5, atol=1e-6)


def test_dropout_adds_to_the_variance_of_weights():
    wide = {"posterior": MeanFieldNormal(initial_scale=1.0)}
    inputs = keras.Input((4,))
    hidden = keras.layers.Dropout(0.5)(inputs)
    model = keras.Model(inputs, DenseVariational(1, use_bias=False, **wide)(hidden))
    options = {"likelihood": NORMAL, "num_samples": 6000, "method": "local"}
    without = tfbbb.predictive(model, X, **options)
    dropped = tfbbb.predictive(model, X, include_dropout=True, **options)
    kernel = model.layers[-1].kernel
    # E[x^2 m^2] = 2 x^2: twice the weights' variance, and as much of the mean.
    variance = X**2 @ kernel.variance.numpy()
    more = X**2 @ (2.0 * kernel.variance.numpy() + kernel.mean.numpy() ** 2)
    np.testing.assert_allclose(without.epistemic, variance, rtol=1e-5)
    # A variance from 3000 pairs, of moderate kurtosis.
    np.testing.assert_allclose(dropped.epistemic, more, rtol=5.0 * np.sqrt(3.0 / 3e3))


def test_layers_that_drop_within_themselves_are_refused_by_name():
    model = network(keras.layers.LSTM(3, dropout=0.2, name="memory"), SEQUENCES)
    with pytest.raises(ValueError, match=r"'memory' drops within itself.*0\.2"):
        tfbbb.predictive(model, SEQUENCES, likelihood=NORMAL, include_dropout=True)


class Dropping(keras.Model):
    """A subclassed model that drops."""

    def __init__(self, rate):
        super().__init__()
        self.hidden = keras.layers.Dense(2)
        self.drop = keras.layers.Dropout(rate, name="within")

    def call(self, inputs):
        return self.drop(self.hidden(inputs))


def test_dropout_called_from_other_code_is_refused_by_name():
    inputs = keras.Input(SEQUENCES.shape[1:])
    each = keras.layers.TimeDistributed(keras.layers.Dropout(0.5, name="within"))
    wrapped = keras.Model(inputs, keras.layers.Flatten()(each(inputs)))
    for model, x in ((Dropping(0.5), X), (wrapped, SEQUENCES)):
        with pytest.raises(ValueError, match=r"'within' is called from the code of"):
            tfbbb.predictive(model, x, likelihood=NORMAL, include_dropout=True)


def test_layers_of_rate_zero_drop_nothing_wherever_they_are():
    inputs = keras.Input((4,))
    outputs = keras.layers.Dropout(0.5)(Dropping(0.0)(inputs))
    drawn = draws_of(keras.Model(inputs, outputs), X, num_samples=10)
    assert drawn.shape == (10, 3, 2)
