import inspect

import numpy as np
import pytest
from keras import activations

from tfbbb.prediction.folding import ELEMENTWISE_ACTIVATIONS

# `glu` halves the number of units, and `threshold` needs arguments.
OTHERS = {activations.get, activations.serialize, activations.deserialize} | {
    activations.glu,
    activations.threshold,
}
FUNCTIONS = {
    function
    for _, function in inspect.getmembers(activations, inspect.isfunction)
    if function not in OTHERS
}


@pytest.mark.parametrize(
    "activation", sorted(FUNCTIONS, key=lambda function: function.__name__)
)
def test_elementwise_activations_are_those_of_keras(activation):
    x = np.linspace(-3.0, 3.0, 8, dtype="float32").reshape(2, 4)
    alone = [np.ravel(activation(value.reshape(1, 1))) for value in x.ravel()]
    # Vectorised functions may round in another way.
    is_elementwise = np.allclose(np.ravel(activation(x)), np.ravel(alone), atol=1e-6)
    assert is_elementwise == (activation in ELEMENTWISE_ACTIVATIONS)
