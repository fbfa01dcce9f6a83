"""Optimizers that do what Keras' do in less time, or learn a posterior."""

import tfbbb.base.backend  # noqa: F401  (refuses other backends first)
from tfbbb.model.optimizers.adam import Adam
from tfbbb.model.optimizers.ivon import IVON

__all__ = ["IVON", "Adam"]
