"""The cache holds the most recently used values, up to its limit."""

import pytest

from tfbbb.prediction.lru_cache import LRUCache


def test_the_least_recently_used_value_is_evicted():
    cache = LRUCache(2)
    cache.keep("a", 1)
    cache.keep("b", 2)
    assert cache.get("a") == 1
    cache.keep("c", 3)
    assert cache.get("b") is None
    assert cache.values() == [1, 3]


def test_a_new_value_replaces_the_old_one_of_its_key():
    cache = LRUCache(2)
    cache.keep("a", 1)
    cache.keep("b", 2)
    cache.keep("a", 3)
    assert cache.values() == [2, 3]


@pytest.mark.parametrize("most", [1, 16])
def test_the_cache_never_holds_more_than_its_limit(most):
    cache = LRUCache(most)
    for key in range(50):
        cache.keep(key, key)
        assert len(cache) == min(key + 1, most)
    assert cache.values() == list(range(50 - most, 50))
