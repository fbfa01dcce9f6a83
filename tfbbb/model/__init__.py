"""`BayesianModel`, what it trains on, and what is made of it."""
