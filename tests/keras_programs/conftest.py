"""How the programs run."""

from collections.abc import Iterator

import pytest
import tensorflow as tf


@pytest.fixture(autouse=True, scope="module")
def functions_run_eagerly() -> Iterator[None]:
    """Runs functions op by op: a trace takes longer than all that a program runs."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture
def compiled_functions() -> Iterator[None]:
    """Compiles functions in a program that exports them, or takes many steps."""
    tf.config.run_functions_eagerly(False)
    yield
    tf.config.run_functions_eagerly(True)
