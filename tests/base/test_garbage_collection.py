"""Fewer garbage collections within a block."""

import gc

import pytest

from tfbbb.base.garbage_collection import rare_garbage_collection


@pytest.fixture(autouse=True)
def thresholds():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(
    ("before", "within"), [(700, 100_000), (100_001, 100_001), (0, 0)]
)
def test_searches_are_rarer_within_a_block_and_as_before_after_it(before, within):
    gc.set_threshold(before, 11, 12)
    with rare_garbage_collection():
        assert gc.get_threshold() == (within, 11, 12)
    assert gc.get_threshold() == (before, 11, 12)


def test_blocks_that_overlap_end_with_the_last_of_them():
    gc.set_threshold(700, 11, 12)
    first, second = rare_garbage_collection(), rare_garbage_collection()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold()[0] == 100_000
    second.__exit__(None, None, None)
    assert gc.get_threshold() == (700, 11, 12)
