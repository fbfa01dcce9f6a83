import numpy as np
import pytest

from tfbbb.prediction.levels import (
    checked_level,
    checked_levels,
    single_precision_level,
    write_as_probability,
)


@pytest.mark.parametrize("level", [1.2e-38, 0.5, 0.99999994])
def test_levels_that_single_precision_holds_are_taken(level: float) -> None:
    assert single_precision_level(level) == level
    assert np.finfo(np.float32).tiny <= np.float32(level) < 1


@pytest.mark.parametrize(
    "level", [0.0, 1.0, 1e-300, 1e-46, 1e-40, 1 - 1e-12, -0.5, 2.0, float("nan")]
)
def test_levels_that_single_precision_rounds_away_are_refused(level: float) -> None:
    with pytest.raises(ValueError, match=r"from 1\.2e-38 to 0\.99999994"):
        single_precision_level(level)


@pytest.mark.parametrize("level", [90, "90%", [0.5, 90.0], ["90 %"]])
def test_percentages_are_refused_with_their_probability(level: object) -> None:
    with pytest.raises(ValueError, match=r"between 0 and 1\. Write 0\.9\. Received"):
        checked_levels(level)


@pytest.mark.parametrize("level", [-1, 0, 1, 100, "high", None])
def test_other_levels_are_refused_without_a_remedy(level: object) -> None:
    assert write_as_probability(level) == ""
    with pytest.raises(ValueError, match=r"between\s0 and 1\. Received"):
        checked_level(level)
