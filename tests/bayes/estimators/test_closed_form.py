"""The expected loss over a linear last layer, in closed form."""

import keras
import numpy as np
import pytest
import scipy.stats
import tensorflow as tf
import tensorflow_probability as tfp

import tfbbb
from tests.repeated_calls import repeated
from tfbbb.bayes.likelihoods import Normal
from tfbbb.bayes.posteriors import MatrixNormal
from tfbbb.layers import DenseVariational

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(24, 4)).astype("float32")
Y = (X @ GENERATOR.normal(size=(4, 1)) + 50.0).astype("float32")
POSTERIORS = (
    "mean_field_normal",
    "low_rank_normal",
    "full_covariance_normal",
    "matrix_normal",
    MatrixNormal("eigenbasis"),
)


def scatter(layer):
    """Moves all variables of a layer, so that no covariance is trivial."""
    generator = np.random.default_rng(1)
    for variable in layer.trainable_variables:
        moved = variable.numpy() + 0.3 * generator.normal(size=variable.shape)
        variable.assign(moved)


def model_of(estimator, likelihood="normal", units=1, members=1, posterior=None):
    """Returns a model with a body of points, a last layer and a `kl_weight`."""
    keras.utils.set_random_seed(1)
    posterior = posterior or tfbbb.posteriors.MeanFieldNormal(initial_scale=0.7)
    inputs = keras.Input((4,))
    hidden = DenseVariational(5, "tanh", posterior="point", bias_posterior="point")
    last = DenseVariational(units, estimator=estimator, posterior=posterior)
    outputs = last(hidden(inputs))
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood, members=members)
    if model.likelihood.task == "regression":
        model.likelihood.adapt(np.repeat(Y, units, axis=1))
    for layer in model.variational_layers:
        layer.kl_weight.assign(1 / len(X))
        scatter(layer)
    return model


def loss_and_gradient(model, y, x=X):
    variables = [variable.value for variable in model.trainable_variables]
    with tf.GradientTape() as tape:
        loss = model.compute_loss(x, y, model(x, training=True))
    gradients = tape.gradient(loss, variables)
    return tf.concat([[loss], *(tf.reshape(g, [-1]) for g in gradients)], 0)


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("posterior", POSTERIORS, ids=str)
def test_output_variance_is_that_of_drawn_weights(posterior, members):
    layer = DenseVariational(3, posterior=posterior, members=members)
    layer.build((None, 4))
    scatter(layer)
    rows = X[:5] if members == 1 else np.stack([X[:5], X[5:10]])
    noise = layer.kernel.noise(tf.constant([1, 2]), 4000)
    draws = layer.kernel.draw_from(noise).numpy()
    draws = draws.reshape(*([members] if members > 1 else []), 4000, 4, 3)
    sums = np.expand_dims(rows, -3) @ draws
    # Normal sums: Var[s^2] = 2 variance^2 / n.
    variance = layer.kernel.output_variance(tf.constant(rows)).numpy()
    error = 5.0 * variance * np.sqrt(2 / 4000)
    np.testing.assert_array_less(np.abs(sums.var(axis=-3) - variance), error)


def quadrature(likelihood, targets, mean, variance):
    """Returns E[-log p(targets | f)] by Gauss-Hermite quadrature, [rows]."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(30)
    width = mean.shape[-1]
    grid = np.stack(np.meshgrid(*[nodes] * width, indexing="ij"), -1)
    weights = np.stack(np.meshgrid(*[weights] * width, indexing="ij"), -1)
    weights = weights.prod(axis=-1).reshape(-1) / np.sqrt(2 * np.pi) ** width
    outputs = mean + np.sqrt(variance) * grid.reshape(-1, 1, width)
    return -weights @ likelihood.log_prob(targets, outputs).numpy()


@pytest.mark.parametrize("options", [{}, {"scale": 7.0}, {"standardize": False}])
def test_expected_loss_of_normal_is_that_of_quadrature(options):
    likelihood = Normal(**options)
    likelihood.build((None, 2))
    targets = np.concatenate([Y, 3.0 * Y], axis=1)
    likelihood.adapt(targets)
    mean = GENERATOR.normal(size=(24, 2))
    variance = GENERATOR.uniform(0.1, 2.0, size=(24, 2))
    found = likelihood.negative_log_likelihood(targets, mean, variance=variance)
    exact = quadrature(likelihood, targets, mean, variance)
    np.testing.assert_allclose(found, exact, rtol=1e-6)


@pytest.mark.few(1)
@pytest.mark.parametrize("posterior", ["full_covariance_normal", "mean_field_normal"])
def test_gradient_is_the_mean_of_that_of_draws(posterior):
    drawing = "local" if posterior == "mean_field_normal" else "weight"
    y = np.concatenate([Y, Y[::-1]], axis=1)
    exact, drawn = (
        model_of(estimator, units=2, posterior=posterior)
        for estimator in ("closed_form", drawing)
    )
    drawn.set_weights(exact.get_weights())
    draws = repeated(lambda: loss_and_gradient(drawn, y), 600)
    # 5 standard errors are exceeded by none in 10^4 of such sets of figures.
    error = 5.0 * draws.std(axis=0) / np.sqrt(len(draws)) + 1e-5
    found = loss_and_gradient(exact, y).numpy()
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - found), error)
    np.testing.assert_allclose(loss_and_gradient(exact, y), found, rtol=1e-5, atol=1e-7)


def test_members_train_as_each_would_alone():
    model = model_of("closed_form", members=2)
    losses = [float(loss_and_gradient(m, Y)[0]) for m in model.members]
    assert losses[0] != pytest.approx(losses[1], rel=1e-3)
    assert float(loss_and_gradient(model, Y)[0]) == pytest.approx(np.mean(losses))


def test_steps_of_sequences_and_weights_have_their_own_expected_loss():
    inputs = keras.Input((6, 2))
    masked = keras.layers.Masking()(inputs)
    last = DenseVariational(1, estimator="closed_form", kl_weight=0.0)
    likelihood = Normal(scale=0.5, standardize=False)
    model = tfbbb.BayesianModel(inputs, last(masked), likelihood=likelihood)
    scatter(last)
    x = GENERATOR.normal(size=(4, 6, 2)).astype("float32")
    x[0, 4:] = 0.0
    y = GENERATOR.normal(size=(4, 6, 1))
    weights = np.array([1.0, 2.0, 0.5, 3.0], "float32")
    model.compile("adam")
    found = model.evaluate(x, y, sample_weight=weights, verbose=0, return_dict=True)
    mean = x @ np.asarray(last.kernel.mean) + np.asarray(last.bias.mean)
    variance = x**2 @ np.asarray(last.kernel.variance) + np.asarray(last.bias.variance)
    places = variance / (2 * 0.5**2) - scipy.stats.norm.logpdf(y, mean, 0.5)
    rows = np.where(np.any(x != 0, axis=-1), places[..., 0], 0.0).sum(axis=1)
    assert found["nll"] == pytest.approx(rows @ weights / weights.sum(), rel=1e-5)


def sequential(*layers, likelihood="normal"):
    network = keras.Sequential([keras.Input((4,)), *layers])
    return tfbbb.BayesianModel(network, likelihood=likelihood)


@pytest.mark.parametrize(
    ("layers", "likelihood", "reason"),
    [
        ([DenseVariational(2, estimator="closed_form"), keras.layers.Dense(1)],
         "normal", "must be those of the model"),
        ([DenseVariational(1, "tanh", estimator="closed_form")],
         "normal", "no activation"),
        ([DenseVariational(2, estimator="closed_form")],
         Normal(heteroscedastic=True), "'normal' with these arguments"),
        ([DenseVariational(2, estimator="closed_form")], "categorical", "'categor"),
    ],
)  # fmt: skip
def test_losses_without_a_closed_form_are_refused(layers, likelihood, reason):
    with pytest.raises(ValueError, match=f"{reason}.*Use `estimator='auto'.*Received"):
        sequential(*layers, likelihood=likelihood)


def test_layers_and_posteriors_without_normal_outputs_are_refused():
    with pytest.raises(
        ValueError, match="closed_form' cannot train a layer of type Conv1D"
    ):
        tfbbb.layers.Conv1DVariational(1, 1, estimator="closed_form")
    with pytest.raises(ValueError, match="'closed_form' cannot train this layer"):
        DenseVariational(
            1, posterior=tfp.distributions.Laplace, estimator="closed_form"
        )


def test_a_plain_model_draws_but_does_not_train():
    layer = DenseVariational(1, estimator="closed_form", kl_weight=0.1)
    plain = keras.Sequential([keras.Input((4,)), layer])
    scatter(layer)
    assert np.any(plain(X) != plain(X))
    plain.compile("adam", "mse")
    with pytest.raises(ValueError, match=r"only `tfbbb.BayesianModel`.*Received"):
        plain.fit(X, Y, verbose=0)
