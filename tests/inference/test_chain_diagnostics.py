import numpy as np
import pytest

from tfbbb.inference.chain_diagnostics import bulk_effective_size, r_hat

RANDOM = np.random.default_rng(0)


def autoregressive(rho, draws, chains, quantities):
    values = np.empty((draws, chains, quantities))
    values[0] = RANDOM.normal(size=(chains, quantities))
    noise = RANDOM.normal(size=values.shape) * np.sqrt(1.0 - rho**2)
    for t in range(1, draws):
        values[t] = rho * values[t - 1] + noise[t]
    return values


def test_independent_draws_agree():
    draws = RANDOM.normal(size=(1000, 4, 50))
    found = r_hat(draws)
    assert found.shape == (50,)
    # R-hat - 1 of halves of 500 draws is about chi-squared_7 / 7 / 1000 at W = 1.
    assert found.max() < 1.005
    assert found.min() > 0.999


@pytest.mark.parametrize("rho", [-0.9, -0.3, 0.0, 0.5, 0.9])
def test_effective_size_is_that_of_an_autoregression(rho):
    draws = autoregressive(rho, 2000, 4, 40)
    expected = 8000.0 * min((1.0 - rho) / (1.0 + rho), np.log10(8000.0))
    # One estimate is known to about a tenth; the mean of 40 to a few hundredths.
    assert bulk_effective_size(draws).mean() == pytest.approx(expected, rel=0.06)


def test_chains_of_other_location_disagree():
    draws = RANDOM.normal(size=(500, 4))
    draws[:, 0] += 1.0
    assert r_hat(draws[..., np.newaxis])[0] > 1.05
    assert bulk_effective_size(draws[..., np.newaxis])[0] < 60.0


def test_drifting_chains_disagree():
    draws = RANDOM.normal(size=(500, 4, 1)) + np.linspace(0.0, 2.0, 500)[:, None, None]
    assert r_hat(draws)[0] > 1.05


def test_monotone_functions_have_the_same_figures():
    draws = autoregressive(0.5, 200, 3, 5)
    far = np.exp(5.0 * draws)
    np.testing.assert_allclose(bulk_effective_size(far), bulk_effective_size(draws))


def test_a_constant_has_no_figure():
    draws = np.ones((20, 2, 3))
    assert np.isnan(r_hat(draws)).all()
    assert np.isnan(bulk_effective_size(draws)).all()


def test_too_few_draws_are_refused():
    with pytest.raises(ValueError, match="at least four draws"):
        r_hat(np.zeros((3, 2, 1)))
