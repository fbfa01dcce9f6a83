"""The cache holds the most recently used values, up to its limit."""

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
    for key, value in (("a", 1), ("b", 2), ("a", 3)):
        cache.keep(key, value)
    assert cache.values() == [2, 3]
