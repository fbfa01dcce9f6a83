"""Predictions by a method that the request names."""

import numpy as np
import pytest

from service.shared.errors import InvalidRequest
from tests.served_answer import served_answer

ROWS = np.random.default_rng(0).normal(size=(3, 2)).tolist()


def asked(model, **parameters):
    return served_answer(model, {"instances": ROWS, "parameters": parameters})


@pytest.mark.parametrize("method", ["auto", "weight"])
def test_method_is_that_of_the_live_prediction(numbers, method):
    parameters = {"num_samples": 30, "seed": 4, "quantiles": [0.1], "intervals": [0.5]}
    answer = asked(numbers, method=method, **parameters)["predictions"]
    expected = numbers.predictive(ROWS, 30, method, 4)
    lower, upper = expected.interval(0.5)
    for name, values in {
        "mean": expected.mean,
        "variance": expected.variance,
        "quantiles": expected.ask("quantiles", [0.1]),
        "lower": lower[:, np.newaxis],
        "upper": upper[:, np.newaxis],
    }.items():
        found = np.array([row[name] for row in answer])
        np.testing.assert_allclose(
            found, np.reshape(values, found.shape), rtol=1e-5, err_msg=name
        )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "linearised"}, "no such method"),
        ({"method": "magic"}, "`parameters.method`"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(numbers, parameters, message):
    with pytest.raises(InvalidRequest, match=message):
        asked(numbers, **parameters)
