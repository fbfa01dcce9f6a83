"""The trials of temperatures."""

import numpy as np

import tfbbb
from tfbbb.training import temperature_choice

ROWS = 200


def test_members_that_diverged_are_worth_nothing():
    likelihood = tfbbb.likelihoods.LogNormal(scale=0.5)
    likelihood.build((None, 1))
    generator = np.random.default_rng(0)
    outputs = generator.normal(size=(ROWS, 4, 1)).astype(np.float32)
    targets = np.exp(outputs[:, 0] + 0.5 * generator.normal(size=(ROWS, 1)))

    def tried(drawn):
        return temperature_choice._try(likelihood, 0.1, drawn, None, targets, None)

    assert np.isfinite(tried(outputs).log_likelihood)
    far = outputs.copy()
    far[7] = 6000.0
    # The row is absurd, not infinite: a tighter bound of the means repairs it.
    assert tried(far).high < likelihood.target_high.numpy()
    missing = outputs.copy()
    missing[7] = np.nan
    assert tried(missing).log_likelihood == -np.inf
