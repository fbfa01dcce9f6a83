"""Keras layers whose weights have a posterior distribution."""

import tfbbb.backend  # noqa: F401  (refuses other backends first)
from tfbbb.layers.dense_variational import DenseVariational
from tfbbb.layers.variational import VariationalLayer

__all__ = ["DenseVariational", "VariationalLayer"]
