import keras
import pytest


@pytest.fixture(autouse=True)
def no_random_state() -> None:
    # `tfp.layers` draws with random ops that have a state, which this resets.
    keras.utils.set_random_seed(0)
