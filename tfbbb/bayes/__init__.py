"""Posteriors, priors, divergences, likelihoods and how training draws weights."""
