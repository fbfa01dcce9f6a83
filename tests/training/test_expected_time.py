from itertools import pairwise
from typing import get_args

import pytest

from tfbbb.training.effort import defaults_for
from tfbbb.training.expected_time import expected_seconds
from tfbbb.training.spec import JobSpec
from tfbbb.training.spec.training import Effort


def expected(rows=1000, columns=8, training=None, **model):
    spec = {"target": "y", "training": training or {}, "model": model}
    return expected_seconds(rows, columns, JobSpec.model_validate(spec))


def test_more_of_anything_takes_longer():
    for name, amounts in {
        "rows": (100, 4_000, 100_000),
        "columns": (1, 10, 100),
        "training": ({"steps": 10}, {"steps": 1000}, {"steps": 10_000}),
        "members": (1, 8, 32),
    }.items():
        found = [expected(**{name: amount}) for amount in amounts]
        assert all(x < y for x, y in pairwise(found)), name
    efforts = [expected(training={"effort": effort}) for effort in get_args(Effort)]
    assert efforts == sorted(efforts)


def test_the_range_has_the_form_of_the_measured_formula():
    least, most = expected(training={"epochs": 10, "kl_schedule": "constant"})
    # 16 batches of 64 rows make an epoch.
    seconds = 7 + 1 + 8 * 0.03 + 10 * 16 * 8 * (5e-4 + 8 * 1.7e-5)
    assert (least, most) == pytest.approx((0.6 * seconds, 2.5 * seconds), abs=0.05)
    assert expected(training={"max_seconds": 2}) == (2.0, 2.0)


@pytest.mark.parametrize(
    ("effort", "rows", "trainings"),
    [("quick", 1000, 1.0), ("default", 1000, 3.5), ("best", 5000, 2.2)],
)
def test_trainings_are_those_of_networks_and_temperatures(effort, rows, trainings):
    spec = JobSpec.model_validate({"target": "y", "training": {"effort": effort}})
    assert defaults_for(spec, rows).trainings == pytest.approx(trainings)
