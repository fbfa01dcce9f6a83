import pytest

from tfbbb.prediction.levels import checked_level, checked_levels, write_as_probability


@pytest.mark.parametrize("level", [90, "90%", [0.5, 90.0], ["90 %"]])
def test_percentages_are_refused_with_their_probability(level: object) -> None:
    with pytest.raises(ValueError, match=r"between 0 and 1\. Write 0\.9\. Received"):
        checked_levels(level)


@pytest.mark.parametrize("level", [-1, 0, 1, 100, "high", None])
def test_other_levels_are_refused_without_a_remedy(level: object) -> None:
    assert write_as_probability(level) == ""
    with pytest.raises(ValueError, match=r"between\s0 and 1\. Received"):
        checked_level(level)
