"""Programs and weights of other libraries, under Keras 3."""

from tfbbb.compat.load_tfp_weights import load_tfp_weights

__all__ = ["load_tfp_weights"]
