"""The sentence on intervals beyond the training rows."""

import re
from types import SimpleNamespace

import pytest

from tfbbb.training.familiarity import describe_extrapolation


@pytest.mark.parametrize(
    ("without", "covered", "expected"),
    [
        (0.712, 0.839, "would cover 71 % .*, and wider ones 84 %"),
        (0.659, 0.661, "hardly widen: .* would cover 66 % .* widened or not"),
    ],
)
def test_blocks_that_were_left_out_say_whether_width_helps(without, covered, expected):
    trial = {"blocks": 8, "coverage_90_without": without, "coverage_90": covered}
    (sentence,) = describe_extrapolation(SimpleNamespace(trial=trial))
    assert re.search(expected, sentence)
