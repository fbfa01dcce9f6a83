import numpy as np
import pyarrow as pa
import pytest

from tfbbb import likelihoods
from tfbbb.tables import Schema
from tfbbb.training import JobSpec, ModelSpec, SpecError, train_table
from tfbbb.training.network import make_network

ROWS = 40
X = np.linspace(0, 1, ROWS)


def targets_of(x):
    """A target of each kind, which numbers from 0 to 1 decide."""
    return {
        "number": np.sin(6 * x),
        "share": 0.1 + 0.8 * x,
        "count": np.round(5 * x),
        "side": np.where(x > 0.5, "right", "left"),
        "grade": np.floor(2.9 * x).astype(int),
        "rating": 1.0 + np.floor(4.9 * x),
        "amount": np.where(x > 0.4, 1000.0 * x, 0.0),
    }


TABLE = pa.table({"x": X, **targets_of(X)})
OF_TARGET = {
    "normal": "number",
    "laplace": "number",
    "student_t": "number",
    "normal_mixture": "number",
    "multivariate_normal": "number",
    "log_normal": "share",
    "gamma": "share",
    "weibull": "share",
    "beta": "share",
    "inflated_beta": "share",
    "zero_inflated": "amount",
    "grades": "rating",
    "poisson": "count",
    "negative_binomial": "count",
    "categorical": "side",
    "bernoulli": "side",
}
assert set(OF_TARGET) == set(likelihoods.names())


def schema(target, task=None):
    return Schema.infer(TABLE, target, features=["x"], task=task)


def network(**model):
    return make_network(schema("number"), ModelSpec.model_validate(model), seed=0)


def of_its_own_target(likelihood):
    """The spec of a small network with the likelihood."""
    return JobSpec.model_validate(
        {
            "target": OF_TARGET[likelihood],
            "features": ["x"],
            "model": {"likelihood": likelihood, "hidden_units": [4], "members": 3},
            "training": {"epochs": 1},
        }
    )


@pytest.mark.parametrize(
    "likelihood",
    [
        *("zero_inflated", "grades"),
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in OF_TARGET
            if name not in ("zero_inflated", "grades")
        ),
    ],
)
def test_every_likelihood_trains_on_targets_of_its_own(likelihood):
    trained = train_table(TABLE, of_its_own_target(likelihood))
    assert np.isfinite(trained.metrics["nll"])
    figure = "accuracy" if trained.schema.classes else "coverage_90"
    assert 0 <= trained.metrics[figure] <= 1


def test_layers_are_those_of_the_spec_in_their_order():
    model = network(
        posterior="low_rank_normal",
        activation="tanh",
        hidden_units=[4, 3],
    )
    first, second, output = model.variational_layers
    assert [first.name, second.name, output.name] == ["hidden_1", "hidden_2", "output"]
    assert [first.units, second.units] == [4, 3]
    assert type(second.posterior).__name__ == "LowRankNormal"
    assert type(output.bias_posterior).__name__ == "MeanFieldNormal"
    assert first.activation.__name__ == "tanh"
    assert output.activation.__name__ == "linear"


def test_members_have_starts_of_their_own():
    kernel = network(hidden_units=[5], members=3).variational_layers[0].kernel
    first, second, _ = np.asarray(kernel.mean)
    assert not np.array_equal(first, second)


def test_points_without_a_prior_are_maximum_likelihood():
    (layer,) = network(
        hidden_units=[], posterior="point", prior="none"
    ).variational_layers
    assert layer.prior is layer.bias_prior is None


def test_the_same_seed_makes_the_same_network():
    first, same = network(hidden_units=[5]), network(hidden_units=[5])
    for weight, other in zip(first.weights, same.weights, strict=True):
        np.testing.assert_array_equal(weight, other)


@pytest.mark.parametrize(
    ("target", "model", "reason"),
    [
        ("number", {"likelihood": "categorical"}, "is for a classification, but"),
        ("grade", {"likelihood": "bernoulli"}, "has two classes, but the target"),
        ("number", {"prior": "empirical_normal"}, "needs at least 10 weights"),
    ],
)
def test_a_network_that_the_table_does_not_allow_is_refused(target, model, reason):
    task = "classification" if target == "grade" else None
    with pytest.raises(SpecError, match=reason):
        make_network(schema(target, task), ModelSpec.model_validate(model))
