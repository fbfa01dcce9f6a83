import numpy as np
import pytest

from tests.bayes.likelihoods.test_contract import EVERY, REGRESSIONS, made
from tfbbb import likelihoods
from tfbbb.bayes.families.support import Support
from tfbbb.training.spec import JobSpec

BOUNDS = [(0.0, 1.0), (10.0, 20.0), (-1.0, 1.0), (-3.3, 1e8)]


@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_open_bounds_exclude_what_single_precision_rounds_to_them(low, high):
    support = Support(low, high, closed=False)
    values = np.array([low, high])
    for towards in (-np.inf, np.inf):
        steps = [np.array([low, high])]
        for _ in range(3):
            steps.append(np.nextafter(steps[-1], towards))
        singles = np.array([low, high], np.float32)
        singles = np.nextafter(singles, np.float32(towards)).astype(np.float64)
        middle = 0.5 * (singles + np.array([low, high]))
        values = np.concatenate(
            [values, *steps, singles, middle, np.nextafter(middle, towards)]
        )
    singles = values.astype(np.float32)
    expected = (singles > np.float32(low)) & (singles < np.float32(high))
    # TensorFlow flushes numbers below the smallest normal one to 0.
    expected &= (np.abs(values) >= 2.0**-126) | (low < 0.0 < high)
    np.testing.assert_array_equal(support.contains(values), expected)
    assert 0 < expected.sum() < len(values)


@pytest.mark.parametrize(
    "bounds", [(2.0, 1.0), (1e8, 1e8 + 1.0), (0.0, np.inf), (np.nan, 1.0)]
)
def test_bounds_without_room_are_refused(bounds):
    with pytest.raises(ValueError, match=r"`low` smaller than `high`.*Received: low="):
        Support(*bounds, closed=False)
    with pytest.raises(ValueError, match=r"bounds must be finite.*Received: low="):
        likelihoods.Beta(*bounds)


@pytest.mark.parametrize(("name", "arguments"), EVERY)
def test_likelihood_and_spec_state_one_support(name, arguments):
    likelihood = made(name, arguments)
    spec = JobSpec.model_validate(
        {"target": "y", "model": {"likelihood": {"name": name, **arguments}}}
    ).model.likelihood
    assert spec.support == likelihood.support
    assert (likelihood.support is None) == (likelihood.task == "classification")


@pytest.mark.parametrize(("name", "arguments"), REGRESSIONS)
def test_least_and_greatest_target_have_a_density(name, arguments):
    likelihood = made(name, arguments)
    likelihood.build((None, likelihood.num_outputs(1)))
    support = likelihood.support
    ends = np.array([[support.least], [support.greatest]])
    likelihood.check_targets(ends)
    likelihood.adapt(ends if support.integer else np.array([[0.2], [0.7]]))
    outputs = np.zeros((2, likelihood.num_outputs(1)))
    if not support.closed:
        assert np.isfinite(likelihood.log_prob(ends, outputs.astype("float32"))).all()
    for beyond in (np.nextafter(ends[0], -np.inf), np.nextafter(ends[1], np.inf)):
        with pytest.raises(ValueError, match="must be"):
            likelihood.check_targets(beyond[np.newaxis])
