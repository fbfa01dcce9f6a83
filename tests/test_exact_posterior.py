"""A linear model with known Gaussian noise has a Gaussian posterior: do we find it?

For `y = X w + noise`, `noise ~ N(0, s^2)` and `w ~ N(0, t^2)`, the posterior is
`N(mean, P^-1)` with the precision `P = X^T X / s^2 + 1 / t^2`. Of the approximations,
those that contain it become it, at a negative ELBO equal to the negative log evidence;
the best factorised one has the same mean and the variances `1 / diag(P)`.
"""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import optimize, stats

from tests.repeated_calls import repeated
from tests.variational_weights import variational_weight
from tfbbb import BayesianModel, estimators, likelihoods, posteriors, priors
from tfbbb.bayes.divergences import kl_divergence
from tfbbb.layers import DenseVariational

NOISE, PRIOR_SCALE, ROWS, SIZE = 0.5, 0.7, 40, 5


def _problem():
    generator = np.random.default_rng(0)
    mixing = np.eye(SIZE) + 0.5 * generator.normal(size=(SIZE, SIZE))
    x = generator.normal(size=(ROWS, SIZE)) @ mixing
    y = x @ generator.normal(size=(SIZE, 1)) + NOISE * generator.normal(size=(ROWS, 1))
    # In standard units, so that what a `BayesianModel` does to targets changes nothing.
    return x, (y - y.mean()) / y.std()


X, Y = _problem()
PRECISION = X.T @ X / NOISE**2 + np.eye(SIZE) / PRIOR_SCALE**2
COVARIANCE = np.linalg.inv(PRECISION)
MEAN = COVARIANCE @ X.T @ Y / NOISE**2
EVIDENCE = stats.multivariate_normal(
    np.zeros(ROWS), NOISE**2 * np.eye(ROWS) + PRIOR_SCALE**2 * X @ X.T
).logpdf(Y[:, 0])
FACTORISED_SCALE = 1 / np.sqrt(np.diag(PRECISION))
# KL of the best factorised posterior from the exact one: what correlations tell.
FACTORISED_GAP = 0.5 * (
    np.log(np.diag(PRECISION)).sum() - np.linalg.slogdet(PRECISION)[1]
)


def root_of(weight):
    """Returns columns whose outer products sum to the covariance of q, [k, n, 1]."""
    noise_shape = weight.posterior.noise_shape(weight.shape)
    basis = np.eye(math.prod(noise_shape)).reshape((-1, *noise_shape))
    return weight.perturb(tf.constant(basis))


def covariance_of(weight):
    root = np.asarray(root_of(weight))[..., 0]
    return root.T @ root


def negative_elbo(weight):
    """Returns E_q[-log p(y | w)] + KL(q || p), both in closed form."""
    residuals = Y - X @ weight.mean
    squares = tf.reduce_sum(residuals**2) + tf.reduce_sum((X @ root_of(weight)) ** 2)
    normalizer = 0.5 * ROWS * np.log(2 * np.pi * NOISE**2)
    return 0.5 * squares / NOISE**2 + normalizer + kl_divergence(weight, None)


def optimised(posterior):
    """Returns a weight whose q minimises the closed form, in float64."""
    weight = variational_weight(
        posterior, priors.Normal(PRIOR_SCALE), (SIZE, 1), dtype="float64", spread=0.1
    )
    variables = list(weight.variables.values())
    sizes = np.cumsum([v.numpy().size for v in variables])[:-1]

    def assign(flat):
        for variable, values in zip(variables, np.split(flat, sizes), strict=True):
            variable.assign(values.reshape(variable.shape))

    @tf.function
    def value_and_gradients():
        with tf.GradientTape() as tape:
            value = negative_elbo(weight)
        return value, tape.gradient(value, [v.value for v in variables])

    def objective(flat):
        assign(flat)
        value, gradients = value_and_gradients()
        return float(value), np.concatenate([np.ravel(g) for g in gradients])

    start = np.concatenate([np.ravel(v.numpy()) for v in variables])
    best = optimize.minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 10_000, "ftol": 1e-14, "gtol": 1e-8},
    )
    assign(best.x)
    return weight


@pytest.mark.parametrize(
    "posterior",
    [
        posteriors.FullCovarianceNormal(),
        posteriors.MatrixNormal("full"),
        posteriors.LowRankNormal(rank=SIZE - 1),
    ],
    ids=repr,
)
def test_families_that_contain_the_exact_posterior_become_it(posterior):
    weight = optimised(posterior)
    # The value is exact to the square of the errors of what it is minimised over.
    np.testing.assert_allclose(negative_elbo(weight), -EVIDENCE, rtol=1e-8)
    np.testing.assert_allclose(weight.mean, MEAN, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        covariance_of(weight), COVARIANCE, rtol=1e-3, atol=1e-4 * COVARIANCE.max()
    )


def test_mean_field_takes_the_inverse_of_the_precisions_diagonal():
    weight = optimised("mean_field_normal")
    np.testing.assert_allclose(weight.mean, MEAN, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        np.ravel(weight.stddev), FACTORISED_SCALE, rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(
        negative_elbo(weight), FACTORISED_GAP - EVIDENCE, rtol=1e-8
    )


def test_low_rank_normal_approaches_the_exact_posterior_with_its_rank():
    families = [posteriors.LowRankNormal(rank) for rank in range(1, SIZE)]
    weights = map(optimised, [posteriors.MeanFieldNormal(), *families])
    gaps = [float(negative_elbo(weight)) + EVIDENCE for weight in weights]
    assert all(np.diff(gaps[:3]) < -1e-3)
    # Rank 3 will do for a generic matrix: its 5 + 15 - 3 parameters are enough for 15
    # covariances, and the 5 + 10 - 1 of rank 2 are not.
    assert gaps[2] > 1e-3
    assert gaps[3:] == pytest.approx([0.0, 0.0], abs=1e-6)


def exact_model(posterior, estimator):
    """Returns a model whose layer is at the optimum of its family."""
    layer = DenseVariational(
        1,
        use_bias=False,
        posterior=posterior,
        prior=priors.Normal(PRIOR_SCALE),
        estimator=estimator,
        kl_weight=1.0 / ROWS,
        seed=0,
    )
    inputs = keras.Input((SIZE,))
    model = BayesianModel(
        inputs, layer(inputs), likelihood=likelihoods.Normal(scale=NOISE)
    )
    model.likelihood.adapt(Y)
    kernel = layer.kernel
    kernel.variables["mean"].assign(MEAN)
    if posterior == "mean_field_normal":
        kernel.variables["log_scale"].assign(np.log(FACTORISED_SCALE)[:, None])
    else:
        root = np.linalg.cholesky(COVARIANCE)
        unit = root / np.diag(root)[:, None]
        inverse_fill = np.argsort(_filled_indices())
        kernel.variables["log_scale"].assign(np.log(np.diag(root)))
        kernel.variables["correlations"].assign(
            unit[np.tril_indices(SIZE, -1)][inverse_fill]
        )
    return model


def _filled_indices():
    """Returns where TFP's triangle of n (n - 1) / 2 numbers puts each, row by row."""
    import tensorflow_probability as tfp

    count = SIZE * (SIZE - 1) // 2
    triangle = tfp.math.fill_triangular(np.arange(count))
    return np.asarray(triangle)[np.tril_indices(SIZE - 1)]


def losses_and_gradients(model, count):
    """Returns the losses of a training step, times N, and their gradients."""
    x, y = X.astype("float32"), Y.astype("float32")

    def step():
        with tf.GradientTape() as tape:
            outputs = model(x, training=True)
            loss = ROWS * model.compute_loss(x, y, outputs, training=True)
        gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
        return loss, tf.concat([tf.reshape(g, [-1]) for g in gradients], axis=0)

    return repeated(step, count)


CASES = [
    ("mean_field_normal", "flipout"),
    ("full_covariance_normal", "weight"),
    ("full_covariance_normal", estimators.ScoreFunction(num_samples=4)),
]


@pytest.mark.parametrize(("posterior", "estimator"), CASES, ids=str)
def test_optimum_is_where_training_stands_still(posterior, estimator):
    model = exact_model(posterior, estimator)
    losses, gradients = losses_and_gradients(model, 1000)
    error = gradients.std(axis=0) / np.sqrt(len(gradients))
    assert (np.abs(gradients.mean(axis=0)) < 4.5 * error).all()
    gap = FACTORISED_GAP if posterior == "mean_field_normal" else 0.0
    error = losses.std() / np.sqrt(len(losses))
    assert abs(losses.mean() - (gap - EVIDENCE)) < 4.5 * error
    # Enough to tell the optima of the two families apart.
    assert 4.5 * error < FACTORISED_GAP


def test_every_draw_of_the_exact_posterior_tells_the_evidence():
    model = exact_model("full_covariance_normal", "weight")
    kernel = model.layers[-1].kernel
    draws = kernel.draw(tf.constant([0, 1]), samples=20)
    residuals = (Y - X @ np.asarray(draws, np.float64))[..., 0]
    log_likelihood = stats.norm.logpdf(residuals, scale=NOISE).sum(axis=1)
    elbo = log_likelihood + kernel.prior_log_prob(draws) - kernel.log_prob(draws)
    # Rounding of float32 in the residuals' squares.
    np.testing.assert_allclose(elbo, np.full(20, EVIDENCE), rtol=1e-4)
