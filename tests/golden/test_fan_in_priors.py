"""A saved model keeps its priors, whatever the default of new layers is."""

from pathlib import Path

import keras
import numpy as np

from tfbbb import layers, priors
from tfbbb.base.private_apis import sublayers
from tfbbb.layers import VariationalLayer

# Written when layers without an option had the prior `Normal("fan_in")`.
STORED = Path(__file__).parent / "fan_in_priors.keras"
# The sum of the divergences in nats, as the version that wrote the file gave it.
DIVERGENCE = 301.2306


def test_a_model_saved_with_fan_in_priors_keeps_them() -> None:
    model = keras.saving.load_model(STORED)
    kinds = {type(layer) for layer in sublayers(model)}
    assert {layers.EmbeddingVariational, layers.LSTMVariational} <= kinds
    found = [x for x in sublayers(model) if isinstance(x, VariationalLayer)]
    assert len(found) == 10
    weights = [weight for layer in found for weight in layer.variational_weights]
    assert {weight.prior for weight in weights} == {priors.Normal("fan_in")}
    model([np.zeros((1, 4), "int32"), np.zeros((1, 4, 4, 1), "float32")])
    kl_weight = float(found[0].kl_weight.numpy())
    np.testing.assert_allclose(sum(model.losses) / kl_weight, DIVERGENCE, rtol=1e-5)
