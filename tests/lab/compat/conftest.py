import keras
import pytest


@pytest.fixture(autouse=True)
def settings_of_keras():
    """Gives each test one random state, and ends the precision that it sets."""
    # `tfp.layers` draws with random ops that have a state, which this resets.
    keras.utils.set_random_seed(0)
    yield
    keras.config.set_floatx("float32")
    keras.config.set_dtype_policy("float32")
