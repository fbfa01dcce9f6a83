"""What was used last is kept, and so many values of it as there may be."""

import pytest

from tfbbb.prediction.recent import Recent


def test_values_that_were_used_longest_ago_make_room():
    recent = Recent(2)
    recent.keep("a", 1)
    recent.keep("b", 2)
    assert recent.get("a") == 1
    recent.keep("c", 3)
    assert recent.get("b") is None
    assert recent.values() == [1, 3]


def test_value_of_a_known_key_takes_the_place_of_the_old():
    recent = Recent(2)
    recent.keep("a", 1)
    recent.keep("b", 2)
    recent.keep("a", 3)
    assert recent.values() == [2, 3]


@pytest.mark.parametrize("most", [1, 16])
def test_there_are_never_more_values_than_asked_for(most):
    recent = Recent(most)
    for key in range(50):
        recent.keep(key, key)
        assert len(recent) == min(key + 1, most)
    assert recent.values() == list(range(50 - most, 50))
