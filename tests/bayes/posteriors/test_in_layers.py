"""The priors in a model: training, ensembles, saving, predictions."""

import keras
import numpy as np
import pytest
import tensorflow_probability as tfp

from tfbbb import BayesianModel, priors
from tfbbb.layers import DenseVariational

PRIORS = [
    priors.Normal(trainable=True),
    priors.ScaleMixtureNormal(),
    priors.Laplace(),
    priors.StudentT(),
    priors.Horseshoe(),
    priors.GammaNormal(),
    priors.TFPDistribution(
        tfp.distributions.MixtureSameFamily(
            tfp.distributions.Categorical(probs=[0.3, 0.7]),
            tfp.distributions.Normal([0.0, 0.0], [1.0, 0.01]),
        )
    ),
]
X = np.random.default_rng(0).normal(size=(24, 3)).astype("float32")
Y = X[:, :1] ** 2


def test_all_priors_train_and_save_in_one_model(tmp_path):
    tensor = inputs = keras.Input((3,))
    for seed, prior in enumerate(PRIORS):
        units = 1 if seed == len(PRIORS) - 1 else 4
        both = {"prior": prior, "bias_prior": prior}
        tensor = DenseVariational(units, members=2, seed=seed, **both)(tensor)
    model = BayesianModel(inputs, tensor)
    # To trace all the families takes longer than to run the two steps.
    model.compile(run_eagerly=True)
    model.fit(X, Y, batch_size=12, verbose=0)
    assert all(np.isfinite(variable.numpy()).all() for variable in model.variables)
    assert np.isfinite(model.predictive(X, num_samples=4).mean).all()
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    layers = zip(model.variational_layers, again.variational_layers, strict=True)
    assert all(mine.get_config() == other.get_config() for mine, other in layers)
    for mine, other in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(mine, other, err_msg=mine.path)


def test_score_function_refuses_a_posterior_without_a_density():
    with pytest.raises(ValueError, match=r"'weight'.*Received: estimator="):
        DenseVariational(4, posterior="point", estimator="score_function")
