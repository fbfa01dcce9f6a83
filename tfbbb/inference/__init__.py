"""Ways to a posterior: each sets q of a model and returns a `BayesianModel`."""

from tfbbb.inference.laplace import Laplace

__all__ = ["Laplace"]
