"""Optimizers that do what Keras' do in less time, or learn a posterior."""

import tfbbb.backend  # noqa: F401  (refuses other backends first)
from tfbbb.optimizers.adam import Adam
from tfbbb.optimizers.ivon import IVON

__all__ = ["IVON", "Adam"]
