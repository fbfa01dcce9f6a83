"""Linear regressions with a known noise, whose posterior has a closed form."""

import keras
import numpy as np

import tfbbb

NOISE = 0.5


def rows(count, coefficients, scales=1.0):
    """Inputs [count, k] and targets [count] of a linear model with the bias 0.3."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(count, len(coefficients))) * scales
    y = x @ coefficients + 0.3 + NOISE * generator.normal(size=count)
    return x.astype("float32"), y.astype("float32")


def linear_model(width, scale, likelihood=None, **options):
    """One layer with normal priors of a scale; by default its noise is known."""
    prior = options.pop("prior", tfbbb.priors.Normal(scale=scale))
    layer = tfbbb.layers.DenseVariational(1, prior=prior, bias_prior=prior, **options)
    inputs = keras.Input((width,))
    likelihood = likelihood or tfbbb.likelihoods.Normal(scale=NOISE, standardize=False)
    return tfbbb.BayesianModel(inputs, layer(inputs), likelihood=likelihood)


def posterior(x, y, scale):
    """Mean and covariance of kernel and bias."""
    design = np.c_[x, np.ones(len(x))].astype(float)
    precision = design.T @ design / NOISE**2 + np.eye(design.shape[1]) / scale**2
    covariance = np.linalg.inv(precision)
    return covariance @ design.T @ y / NOISE**2, covariance
