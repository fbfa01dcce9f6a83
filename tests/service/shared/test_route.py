"""Which version of a label answers, by the key of a request."""

import numpy as np
import pytest

from service.shared.route import Route

KEYS = [f"customer-{number}" for number in range(4000)]


def canary_keys(weight: float, canary: int = 4, model: str = "houses") -> set[str]:
    route = Route(3, canary, weight)
    return {key for key in KEYS if route.uses_canary(model, key)}


@pytest.mark.parametrize("weight", [0.02, 0.5])
def test_canary_answers_its_share_of_the_keys(weight: float) -> None:
    # Four standard deviations of a binomial share.
    tolerance = 4 * np.sqrt(weight * (1 - weight) / len(KEYS))
    assert len(canary_keys(weight)) / len(KEYS) == pytest.approx(weight, abs=tolerance)


def test_keys_stay_with_a_canary_whose_weight_grows() -> None:
    assert canary_keys(0.1) < canary_keys(0.3) < canary_keys(0.9)


def test_next_canary_gets_other_keys() -> None:
    first = canary_keys(0.2)
    for others in (canary_keys(0.2, canary=5), canary_keys(0.2, model="flats")):
        # Independent shares: 0.2 of 0.2, within four standard deviations.
        both = len(first & others) / len(KEYS)
        assert both == pytest.approx(0.04, abs=4 * np.sqrt(0.04 * 0.96 / len(KEYS)))


def test_any_text_is_a_key() -> None:
    assert not Route(3).uses_canary("houses", "x")
    assert Route(3, 4, 1 - 2**-50).uses_canary("houses", "\ud800 \0 é")
