"""The families in a model: training, ensembles, saving, predictions."""

import keras
import numpy as np
import pytest
import tensorflow_probability as tfp

from tfbbb import BayesianModel, posteriors, priors
from tfbbb.layers import DenseVariational

FAMILIES = [
    *map(posteriors.get, posteriors.names()),
    posteriors.MatrixNormal("eigenbasis"),
    posteriors.JointNormal(200),
    posteriors.TFPDistribution(tfp.distributions.Laplace),
]
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


def trained(layers, members=1):
    """Returns a trained model of a layer for each of the options in `layers`."""
    tensor = inputs = keras.Input((3,))
    for seed, options in enumerate(layers):
        units = 1 if seed == len(layers) - 1 else 4
        tensor = DenseVariational(units, members=members, seed=seed, **options)(tensor)
    model = BayesianModel(inputs, tensor)
    # To trace all the families takes longer than to run the two steps.
    model.compile(run_eagerly=True)
    model.fit(X, Y, batch_size=12, verbose=0)
    return model


def assert_trained_and_saved(model, path):
    for layer in model.variational_layers:
        for weight in layer.variational_weights:
            assert all(np.isfinite(v.numpy()).all() for v in weight.all_variables)
    prediction = model.predictive(X, num_samples=4)
    assert np.isfinite(prediction.mean).all()
    model.save(path)
    again = keras.models.load_model(path)
    layers = zip(model.variational_layers, again.variational_layers, strict=True)
    assert all(mine.get_config() == other.get_config() for mine, other in layers)
    for mine, other in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(mine, other, err_msg=mine.path)


@pytest.mark.slow
def test_all_posteriors_train_and_save_in_one_model(tmp_path):
    layers = [{"posterior": q, "bias_posterior": q} for q in FAMILIES]
    layers.append({"posterior": "point", "prior": None})
    model = trained(layers, members=2)
    assert_trained_and_saved(model, tmp_path / "model.keras")


def test_all_priors_train_and_save_in_one_model(tmp_path):
    model = trained([{"prior": p, "bias_prior": p} for p in PRIORS], members=2)
    assert_trained_and_saved(model, tmp_path / "model.keras")


def test_score_function_refuses_a_posterior_without_a_density():
    with pytest.raises(ValueError, match=r"'weight'.*Received: estimator="):
        DenseVariational(4, posterior="point", estimator="score_function")
