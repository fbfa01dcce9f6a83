"""What every test stands on: the backend, quiet logs, fixed seeds."""

import os
import sys

import pytest

# Read when TensorFlow, Keras or Matplotlib is first imported, so set before any
# test or doctest is collected.
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["MPLBACKEND"] = "Agg"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    # Tests that do without Keras need not wait for its import.
    if "keras" in sys.modules:
        sys.modules["keras"].utils.set_random_seed(0)
