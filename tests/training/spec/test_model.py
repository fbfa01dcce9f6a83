import pytest
from pydantic import ValidationError

from tfbbb.training.spec import ModelSpec
from tfbbb.training.spec.model import MAX_PARAMETERS


def model(**fields):
    return ModelSpec.model_validate(fields)


def test_biases_are_mean_field_unless_the_weights_are_points():
    bayesian = model(posterior="full_covariance_normal")
    assert bayesian.bias_posterior.name == "mean_field_normal"
    assert bayesian.bias_prior.name == "normal"
    point = model(posterior="point", prior="none")
    assert point.bias_posterior.name == "point"
    assert point.bias_prior.name == "none"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"layers": []}, "Extra inputs"),
        ({"hidden_units": [0]}, "greater than or equal to 1"),
        ({"hidden_units": [1] * 51}, "at most 50 items"),
        ({"hidden_units": [10_000, 10_000]}, "more than the limit of 20000000"),
        ({"members": 101}, "less than or equal to 100"),
        ({"posterior": "gaussian"}, "does not match any of the expected tags"),
        ({"posterior": {"name": "low_rank_normal", "rank": 0}}, "greater than or equ"),
        ({"posterior": {"name": "point", "rank": 1}}, "Extra inputs"),
        ({"prior": {"name": "normal", "scale": 0}}, "greater than 0|fan_in"),
        ({"prior": "none"}, "only the posterior 'point' needs no prior"),
        ({"posterior": "point", "prior": "horseshoe"}, "no upper bound"),
        (
            {"posterior": "full_covariance_normal", "hidden_units": [100, 100]},
            "covariance of 10000 × 10000",
        ),
        (
            {"likelihood": {"name": "normal", "scale": 1, "heteroscedastic": True}},
            "either given",
        ),
        ({"likelihood": {"name": "beta", "low": 2, "high": 1}}, "`low` must be small"),
        ({"likelihood": {"name": "student_t", "df": 2}}, "greater than 2"),
    ],
)  # fmt: skip
def test_a_network_that_cannot_be_is_refused_with_the_reason(fields, reason):
    with pytest.raises(ValidationError, match=reason):
        model(**fields)


def test_the_size_counts_features_members_and_what_a_posterior_takes():
    spec = model(hidden_units=[1000], members=10)
    largest = MAX_PARAMETERS // (10 * 2 * 1000) - 1
    spec.check_size(largest, num_outputs=1)
    with pytest.raises(ValueError, match="parameters, more than"):
        spec.check_size(largest + 1, num_outputs=1)
