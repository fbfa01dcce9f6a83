"""Encodes each row once where a batch holds it several times."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from keras import tree

from tfbbb.base.call_context import current_call


def once_per_row(encode: Callable[[Any], Any], inputs: Any) -> Any:
    """Encodes the rows of a batch, each once.

    A `BayesianModel` repeats its batch for its members and draws. The encoding of a row
    has no weights: the copies share it.

    Args:
        encode: Encodes inputs as features `[n, p]`, row by row.
        inputs: Tensors with the rows of the batch as first dimension.
    """
    copies = current_call().copies_in_batch
    if copies == 1:
        return encode(inputs)
    rows = tree.map_structure(lambda x: x[: tf.shape(x)[0] // copies], inputs)
    return tf.tile(encode(rows), [copies, 1])
