import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfbbb.data import split

PROPERTY = settings(deadline=None, derandomize=True, max_examples=100)
FRACTIONS = st.floats(0.01, 0.99)
SEEDS = st.integers(0, 2**32 - 1)


@PROPERTY
@given(num_rows=st.integers(2, 200), fraction=FRACTIONS, seed=SEEDS)
def test_a_split_partitions_the_rows(num_rows, fraction, seed):
    train, test = split(num_rows, fraction, seed=seed)
    assert sorted([*train, *test]) == list(range(num_rows))
    assert len(test) == min(max(1, round(fraction * num_rows)), num_rows - 1)


@PROPERTY
@given(
    classes=st.lists(st.sampled_from("abcd"), min_size=2, max_size=100),
    fraction=FRACTIONS,
    seed=SEEDS,
)
def test_each_class_is_split_in_proportion(classes, fraction, seed):
    train, test = split(len(classes), fraction, seed=seed, stratify=classes)
    assert sorted([*train, *test]) == list(range(len(classes)))
    for label in set(classes):
        count = classes.count(label)
        tested = sum(classes[row] == label for row in test)
        if count == 1:
            assert tested == 0
        else:
            assert 1 <= tested <= count - 1
            assert abs(tested - fraction * count) <= 1


def test_the_split_depends_on_the_seed():
    first, again, other = (split(50, 0.2, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first[1], again[1])
    assert set(first[1]) != set(other[1])


def test_rows_come_in_random_order():
    train, _ = split(100, 0.2, seed=0)
    assert not np.array_equal(train, np.sort(train))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_rows": 1}, "num_rows=1"),
        ({"fraction": 0.0}, "fraction=0.0"),
        ({"fraction": 1.0}, "fraction=1.0"),
        ({"fraction": float("nan")}, "fraction=nan"),
        ({"stratify": ["a", "b"]}, r"shape \(2,\), num_rows=10"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        split(**{"num_rows": 10, "fraction": 0.2, "seed": 0, **arguments})
