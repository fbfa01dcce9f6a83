import keras
import numpy as np
import pytest

import tfbbb
from tfbbb.training.parent_version import untemper

NOISE = 0.7


def model(**options):
    inputs = keras.Input((1,))
    layer = tfbbb.layers.DenseVariational(1, use_bias=False, **options)
    return tfbbb.BayesianModel(inputs, layer(inputs), members=2)


def posterior(x, y, temperature):
    """Mean and precision of a slope with prior N(0, 1), each row counted 1/T times."""
    precision = 1.0 + np.sum(x**2) / NOISE**2 / temperature
    return np.sum(x * y) / NOISE**2 / temperature / precision, precision


@pytest.mark.parametrize("temperature", [0.03, 0.3, 2.0])
def test_a_tempered_posterior_becomes_that_of_all_rows_counted_once(temperature):
    generator = np.random.default_rng(0)
    x = generator.normal(size=20)
    y = 0.4 * x + NOISE * generator.normal(size=20)
    tempered = model(prior=tfbbb.priors.Normal(1.0))
    weight = tempered.variational_layers[0].kernel
    mean, precision = posterior(x, y, temperature)
    weight.variables["mean"].assign(np.full((2, 1, 1), mean))
    weight.variables["log_scale"].assign(np.full((2, 1, 1), -0.5 * np.log(precision)))
    untemper(tempered, temperature)
    expected_mean, expected_precision = posterior(x, y, 1.0)
    np.testing.assert_allclose(np.ravel(weight.mean), expected_mean, rtol=1e-5)
    np.testing.assert_allclose(
        1.0 / np.ravel(weight.variance), expected_precision, rtol=1e-5
    )


def test_other_families_are_refused():
    with pytest.raises(ValueError, match="Only normal posteriors"):
        untemper(model(prior="laplace"), 0.1)
