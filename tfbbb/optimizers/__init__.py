"""Optimizers that do what Keras' do, in less time."""

import tfbbb.backend  # noqa: F401  (refuses other backends first)
from tfbbb.optimizers.adam import Adam

__all__ = ["Adam"]
