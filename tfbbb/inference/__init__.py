"""Ways to a posterior: each sets q of a model and returns a `BayesianModel`."""
