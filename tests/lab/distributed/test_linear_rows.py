import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lab.distributed.linear_partitions import (
    drawn_rows,
    posterior,
    run_in_process,
)


@st.composite
def splits(draw, size=40, most=12):
    """A partition of the rows: sizes from 1 row to all, rows in any order."""
    number = draw(st.integers(1, most))
    cuts = draw(
        st.lists(
            st.integers(1, size - 1),
            min_size=number - 1,
            max_size=number - 1,
            unique=True,
        )
    )
    return np.split(np.asarray(draw(st.permutations(range(size)))), sorted(cuts))


@pytest.mark.parametrize("covariance", ["full", "factorised"])
@settings(max_examples=20, deadline=None, derandomize=True)
@given(split=splits(), seed=st.integers(0, 1000))
def test_partitions_give_the_posterior_of_all_rows(covariance, split, seed):
    x, y = drawn_rows(40, 3, seed)
    parts = [(x[rows], y[rows]) for rows in split]
    run = run_in_process(parts, covariance, rounds=400)
    mean, spread = run.server.q.moments()
    expected = posterior(x, y, covariance)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(spread, expected[1], rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("column", [0, "target"])
def test_sorted_partitions_give_the_same_posterior(column):
    x, y = drawn_rows(60, 4)
    order = np.argsort(y if column == "target" else x[:, column])
    parts = [(x[rows], y[rows]) for rows in np.array_split(order, 10)]
    mean, variances = run_in_process(parts, "factorised", 400).server.q.moments()
    expected = posterior(x, y, "factorised")
    np.testing.assert_allclose(mean, expected[0], rtol=1e-5)
    np.testing.assert_allclose(variances, expected[1], rtol=1e-5)


def test_a_full_covariance_needs_one_round():
    x, y = drawn_rows(30, 3)
    parts = [(x[:10], y[:10]), (x[10:], y[10:])]
    changes = run_in_process(parts, "full", rounds=2).changes
    # The second round repeats the sums of the first but for rounding.
    assert changes[0] > 1.0
    assert changes[1] < 1e-10
