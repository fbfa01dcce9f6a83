import keras
import numpy as np
import pytest

import tfbbb
from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.layers import DenseVariational


@pytest.mark.parametrize(("members", "method"), [(1, "weight"), (2, "local")])
def test_draws_of_a_pair_cancel_in_a_linear_network(method, members):
    keras.utils.set_random_seed(0)
    inputs = keras.Input((3,))
    wide = MeanFieldNormal(initial_scale=1.0)
    layer = DenseVariational(1, posterior=wide)
    model = tfbbb.BayesianModel(inputs, layer(inputs), members=members)
    x = np.random.default_rng(1).normal(size=(5, 3)).astype("float32")
    prediction = model.predictive(x, num_samples=2 * members, method=method)
    kernel = np.reshape(layer.kernel.mean, (members, 3, 1)).mean(axis=0)
    bias = np.reshape(layer.bias.mean, (members, 1)).mean(axis=0)
    np.testing.assert_allclose(prediction.mean, x @ kernel + bias, atol=1e-5)
    assert np.all(prediction.epistemic > 0.01)
