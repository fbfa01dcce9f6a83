"""Linear models with normal noise, whose posterior and evidence are known."""

import keras
import numpy as np
import tensorflow_probability as tfp

import tfbbb
from tfbbb.lab.evidence import linear_log_evidence

NOISE, PRIOR_SCALE, ROWS = 0.3, 0.8, 30


def polynomial(degree, rows=ROWS, true=(0.7, -1.1, 0.0, 1.3), seed=0):
    """Returns columns 1, x, ..., x^degree and targets of a cubic."""
    random = np.random.default_rng(seed)
    x = random.uniform(-1.0, 1.0, rows)
    targets = x[:, None] ** np.arange(len(true)) @ np.array(true)
    targets += NOISE * random.normal(size=rows)
    return x[:, None] ** np.arange(degree + 1), targets


def exact_posterior(columns, targets):
    """Returns mean and covariance of the weights given the targets."""
    precision = columns.T @ columns / NOISE**2
    precision += np.eye(columns.shape[1]) / PRIOR_SCALE**2
    covariance = np.linalg.inv(precision)
    return covariance @ columns.T @ targets / NOISE**2, covariance


def exact_evidence(columns, targets):
    return linear_log_evidence(
        columns, targets, noise_scale=NOISE, prior_covariance=PRIOR_SCALE**2
    )


def best_model(columns, targets, posterior="full_covariance_normal"):
    """Returns the model whose q is the best of its family: see Bishop 2006, 10.1.2."""
    mean, covariance = exact_posterior(columns, targets)
    inputs = keras.Input((columns.shape[1],))
    layer = tfbbb.layers.DenseVariational(
        1, use_bias=False, posterior=posterior, prior=tfbbb.priors.Normal(PRIOR_SCALE)
    )
    likelihood = tfbbb.likelihoods.Normal(scale=NOISE, standardize=False)
    model = tfbbb.BayesianModel(inputs, layer(inputs), likelihood=likelihood)
    variables = layer.kernel.variables
    variables["mean"].assign(mean[:, None])
    if posterior == "mean_field_normal":
        scale = -0.5 * np.log(np.diag(np.linalg.inv(covariance)))
        variables["log_scale"].assign(scale[:, None])
        return model
    root = np.linalg.cholesky(covariance)
    scale = np.diag(root)
    variables["log_scale"].assign(np.log(scale))
    below = np.tril(root / scale[:, None], -1)[1:, :-1]
    if below.size:
        packed = tfp.math.fill_triangular_inverse(below)
        variables["correlations"].assign(packed)
    return model


def least_gap(columns, targets):
    """Returns KL(q || p) of the best factorised normal."""
    precision = np.linalg.inv(exact_posterior(columns, targets)[1])
    diagonal = np.log(np.diag(precision)).sum()
    return 0.5 * (diagonal - np.linalg.slogdet(precision)[1])
