import keras
import numpy as np
import pytest
from scipy import stats

from tfbbb.bayes.likelihoods import Normal
from tfbbb.layers import DenseVariational
from tfbbb.model.losses import NegativeLogLikelihood

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(20, 3)).astype("float32")
Y = GENERATOR.normal(size=(20, 2)).astype("float32")


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
    history = model.fit(X, 3.0 + Y, epochs=4, verbose=0).history["loss"]
    assert history[-1] < history[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert type(loaded.loss) is NegativeLogLikelihood
    assert loaded.loss.likelihood.heteroscedastic
