"""Predictions with a standard error, or by a method, that the request names."""

from typing import Any

import numpy as np
import pytest

from service.shared.errors import InvalidRequest, RequestTooLarge
from tests.served_answer import served_answer

ROWS = np.random.default_rng(0).normal(size=(3, 2)).tolist()


def asked(model: Any, **parameters: Any) -> Any:
    return served_answer(model, {"instances": ROWS, "parameters": parameters})


@pytest.mark.parametrize(
    ("relative", "share"), [(False, 2.0), (False, 0.2), (True, 0.5)]
)
def test_draws_suffice_for_the_standard_error(
    numbers: Any, relative: bool, share: float
) -> None:
    def largest_error(answer: Any) -> float:
        rows = answer["predictions"]
        errors = np.array([row["mean_standard_error"] for row in rows])
        if relative:
            errors /= np.sqrt([row["variance"] for row in rows])
        return float(errors.max())

    bound = share * largest_error(asked(numbers))
    answer = asked(numbers, max_standard_error=bound, relative_error=relative)
    if share > 1:
        assert answer["num_samples"] == 20
    else:
        # The error falls with the root of the number of draws.
        assert 0.5 / share**2 < answer["num_samples"] / 20 < 3.0 / share**2
    # The error of the answer is estimated anew, from its own draws.
    assert largest_error(answer) < 1.3 * bound
    expected = asked(numbers, num_samples=answer["num_samples"])
    assert answer == expected


def test_error_that_takes_too_many_draws_is_refused(numbers: Any) -> None:
    with pytest.raises(RequestTooLarge, match=r"draws of at most 3333333$"):
        asked(numbers, max_standard_error=1e-6)


@pytest.mark.parametrize("method", ["auto", "weight"])
def test_method_is_that_of_the_live_prediction(numbers: Any, method: str) -> None:
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
        ({"max_standard_error": 0.0}, "`parameters.max_standard_error`"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(
    numbers: Any, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        asked(numbers, **parameters)
