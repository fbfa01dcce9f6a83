import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfbbb.tables import split
from tfbbb.tables.splitting import draw_folds

PROPERTY = settings(deadline=None, derandomize=True, max_examples=40)
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


GROUPS = st.lists(st.integers(0, 12), min_size=2, max_size=80)


@PROPERTY
@given(groups=GROUPS, fraction=FRACTIONS, seed=SEEDS)
def test_no_group_is_on_both_sides(groups, fraction, seed):
    train, test = split(len(groups), fraction, seed=seed, groups=groups)
    assert sorted([*train, *test]) == list(range(len(groups)))
    groups = np.array(groups)
    assert not set(groups[train]) & set(groups[test])
    if len(set(groups)) == 1:
        assert len(test) == 0
        return
    assert len(train) > 0
    smallest = np.bincount(groups)[groups].min()
    assert smallest <= len(test) <= max(smallest, round(fraction * len(groups)))


def test_groups_of_each_class_are_split():
    groups = np.repeat(np.arange(40), 5)
    classes = (groups < 4).astype(int)
    _, test = split(200, 0.25, seed=0, stratify=classes, groups=groups)
    np.testing.assert_array_equal(np.bincount(classes[test]), [45, 5])


@PROPERTY
@given(groups=GROUPS, num_folds=st.integers(2, 5), seed=SEEDS)
def test_folds_are_of_whole_groups_and_about_equal(groups, num_folds, seed):
    generator = np.random.default_rng(seed)
    folds = draw_folds(groups, num_folds, generator=generator)
    for group in set(groups):
        assert len(set(folds[np.array(groups) == group])) == 1
    sizes = np.bincount(folds, minlength=num_folds)
    largest = max(map(groups.count, groups))
    # The largest goes first: no fold gets a group while another is smaller.
    assert sizes.max() - sizes.min() <= largest
    if len(set(groups)) >= num_folds:
        assert sizes.min() > 0


def test_folds_share_a_rare_class():
    generator = np.random.default_rng(0)
    groups = generator.integers(0, 300, 1000)
    classes = (groups % 25 == 0).astype(int)
    folds = draw_folds(groups, 4, generator=generator, stratify=classes)
    rare = np.bincount(folds[classes == 1], minlength=4)
    assert rare.max() - rare.min() <= np.bincount(groups).max()
    np.testing.assert_allclose(np.bincount(folds), 250, atol=10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_rows": 1}, "num_rows=1"),
        ({"fraction": 0.0}, "fraction=0.0"),
        ({"fraction": float("nan")}, "fraction=nan"),
        ({"groups": ["a", "b"]}, r"one group per row.*shape \(2,\), num_rows=10"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        split(**{"num_rows": 10, "fraction": 0.2, "seed": 0, **arguments})
