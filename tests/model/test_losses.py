import keras
import numpy as np
import pytest
from scipy import special, stats

from tfbbb.bayes.likelihoods import Normal
from tfbbb.layers import DenseVariational
from tfbbb.model.losses import NegativeLogLikelihood

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(20, 3)).astype("float32")
Y = GENERATOR.normal(size=(20, 2)).astype("float32")
LABELS = GENERATOR.integers(3, size=20)


def evaluated(model, y, likelihood):
    """Returns the loss by Keras, in batches that do not divide the rows."""
    model.compile("sgd", loss=NegativeLogLikelihood(likelihood), run_eagerly=True)
    return model.evaluate(X, y, batch_size=7, verbose=0)


def dense(units):
    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(units)])


def test_loss_sums_over_targets_and_averages_over_rows():
    model = dense(2)
    densities = stats.norm.logpdf(Y, model(X), 0.5)
    np.testing.assert_allclose(
        evaluated(model, Y, Normal(scale=0.5)), -densities.sum(1).mean(), rtol=1e-5
    )


def test_loss_of_a_heteroscedastic_net_judges_its_noise():
    model = dense(4)
    mean, raw = np.split(np.asarray(model(X)), 2, axis=1)
    densities = stats.norm.logpdf(Y, mean, np.logaddexp(0.0, raw) + 1e-4)
    np.testing.assert_allclose(
        evaluated(model, Y, Normal(heteroscedastic=True)),
        -densities.sum(1).mean(),
        rtol=1e-5,
    )


@pytest.mark.parametrize(
    "y",
    [LABELS, LABELS[:, np.newaxis], np.eye(3)[LABELS]],
    ids=["[B]", "[B, 1]", "one-hot"],
)
def test_classes_may_be_indices_or_one_hot_rows(y):
    model = dense(3)
    log_probabilities = special.log_softmax(np.asarray(model(X)), axis=1)
    np.testing.assert_allclose(
        evaluated(model, y, "categorical"),
        -log_probabilities[np.arange(20), LABELS].mean(),
        rtol=1e-5,
    )


def test_sample_weights_weigh_rows():
    weights = np.linspace(0.0, 2.0, 20).astype("float32")
    outputs = np.zeros((20, 2), dtype="float32")
    loss = NegativeLogLikelihood(Normal(scale=1.0))(Y, outputs, sample_weight=weights)
    densities = stats.norm.logpdf(Y).sum(1)
    np.testing.assert_allclose(loss, -(weights * densities).mean(), rtol=1e-5)


def test_loss_cannot_learn_the_noise():
    for likelihood in ("normal", Normal()):
        with pytest.raises(ValueError, match=r"cannot train the noise.*Normal\(scale="):
            NegativeLogLikelihood(likelihood)


def test_plain_keras_model_trains_and_is_saved_with_it(tmp_path):
    model = keras.Sequential(
        [
            keras.Input((3,)),
            DenseVariational(8, "tanh", kl_weight=1 / 20),
            DenseVariational(4, kl_weight=1 / 20),
        ]
    )
    model.compile(
        keras.optimizers.Adam(0.05),
        loss=NegativeLogLikelihood(Normal(heteroscedastic=True)),
        run_eagerly=True,
    )
    history = model.fit(X, 3.0 + Y, epochs=10, verbose=0).history["loss"]
    assert history[-1] < history[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert type(loaded.loss) is NegativeLogLikelihood
    assert loaded.loss.likelihood.heteroscedastic
