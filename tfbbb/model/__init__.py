"""`BayesianModel`, its training rows, conversion from Keras, callbacks and losses."""
