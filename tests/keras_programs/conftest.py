"""How the programs run."""

import pytest
import tensorflow as tf

# Their programs compile, export or place functions on devices.
_COMPILED = ("test_policies", "test_saving", "test_custom_steps")


@pytest.fixture(autouse=True, scope="module")
def functions_run_eagerly(request):
    """Runs functions op by op: a trace takes longer than all that a program runs."""
    name = request.module.__name__.rpartition(".")[-1]
    tf.config.run_functions_eagerly(name not in _COMPILED)
    yield
    tf.config.run_functions_eagerly(False)
