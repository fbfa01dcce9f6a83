"""Every method serves a model and its rows, or refuses them by name with a remedy."""

import functools

import keras
import numpy as np
import pytest

import tfbbb
from tfbbb import inference, layers
from tfbbb.inference.batches import Batches
from tfbbb.model.conversion import with_posterior

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(12, 3)).astype("float32")
Y = 2.0 * X[:, :1]
CLASSES = (X[:, 0] > 0).astype(int)

SAMPLERS = {
    "NUTS": inference.NUTS(),
    "SGLD": inference.SGLD(),
    "SGHMC": inference.SGHMC(),
}
TRAINED = {
    "MaximumLikelihood": inference.MaximumLikelihood(),
    "MAP": inference.MAP(),
    "DeepEnsemble": inference.DeepEnsemble(),
    "SWAG": inference.SWAG(),
    "IVON": inference.IVON(),
}
REGRESSIONS = {
    "ExpectationPropagation": tfbbb.lab.inference.ExpectationPropagation(),
    "CAVI": tfbbb.lab.inference.CAVI(),
    "SVI": tfbbb.lab.inference.SVI(),
}
DENSE = REGRESSIONS | {"PBP": tfbbb.lab.inference.PBP()}
LAPLACE = {"Laplace": inference.Laplace("kron")}
DROPOUT = {"MCDropout": inference.MCDropout()}
METHODS = SAMPLERS | TRAINED | DENSE | LAPLACE | DROPOUT
# One of each group that shares its `fit`.
READERS = METHODS.keys() - {"SGHMC", "MaximumLikelihood"}


def network(*operations, likelihood="normal", shape=(3,)):
    tensor = inputs = keras.Input(shape)
    for operation in operations:
        tensor = operation(tensor)
    return tfbbb.BayesianModel(inputs, tensor, likelihood=likelihood)


def dense(units=1, activation=None):
    return layers.DenseVariational(units, activation)


def linear():
    return network(dense())


def droppable():
    return network(keras.layers.Dropout(0.1), dense())


def classifier():
    return network(dense(), likelihood="bernoulli")


def shared():
    twice = dense(3, "relu")
    return network(twice, twice, dense())


def of_members():
    return with_posterior(linear(), "point", members=2)


def changed(array, value):
    """Returns a copy with `value` in the third row."""
    copy = array.copy()
    copy[2, -1] = value
    return copy


# Methods, model, inputs, targets, message.
CASES = {
    "dropout": (
        SAMPLERS | DENSE,
        lambda: network(dense(3, "relu"), keras.layers.Dropout(0.2), dense()),
        (X, Y),
        r"MCDropout|'dropout\w*' of type Dropout",
    ),
    "no dropout": (DROPOUT, linear, (X, Y), "needs dropout layers"),
    "batch normalisation": (
        SAMPLERS | DENSE | LAPLACE | {name: TRAINED[name] for name in ("SWAG", "IVON")},
        lambda: network(dense(3, "relu"), keras.layers.BatchNormalization(), dense()),
        (X, Y),
        r"LayerNormalization|layer or group normalization|of type BatchNormalization",
    ),
    "a shared layer": (DENSE | LAPLACE, shared, (X, Y), "more than once|with 2 calls"),
    "an LSTM": (
        DENSE | LAPLACE,
        lambda: network(layers.LSTMVariational(2), dense(), shape=(3, 1)),
        (X[..., np.newaxis], Y),
        "of type LSTMVariational|LSTMVariational.* from",
    ),
    "a likelihood with a kink": (
        DENSE | LAPLACE,
        lambda: network(dense(), likelihood="laplace"),
        (X, Y),
        "takes the likelihood|no curvature",
    ),
    "classes": (
        DENSE,
        lambda: network(dense(3), likelihood="categorical"),
        (X, CLASSES),
        "takes the likelihood",
    ),
    "several members": (
        READERS - {"MCDropout"},
        of_members,
        (X, Y),
        r"take one member, `model.members\[0\]`",
    ),
    "no weights": (
        SAMPLERS | DENSE | LAPLACE,
        lambda: network(keras.layers.Dense(1)),
        (X, Y),
        "no weights with a posterior|no layer with a posterior",
    ),
    "no rows": (READERS, None, (X[:0], Y[:0]), "there are no training rows"),
    "no targets": (READERS, None, (X, None), "Training needs targets"),
    "fewer targets": (READERS, None, (X, Y[:5]), "inputs of .12. rows, 5 targets"),
    "lists of numbers": (READERS, None, (X.tolist(), Y), r"Pass `np.asarray\(x\)`"),
    "inputs that are NaN": (READERS, None, (changed(X, np.nan), Y), "finite"),
    "targets that are NaN": (READERS, None, (X, changed(Y, np.nan)), "finite numbers"),
    "two targets": (
        READERS,
        None,
        (X, np.hstack([Y, Y])),
        r"must have the shape \[rows\] or \[rows, 1\]",
    ),
    "an unknown class": (
        READERS - {"PBP", "CAVI", "SVI", "MCDropout"},
        classifier,
        (X, CLASSES + 7),
        "must be class indices 0 to 1",
    ),
}


@functools.cache
def suitable(needs_dropout):
    """Returns a model that some methods can serve."""
    return droppable() if needs_dropout else linear()


def test_all_methods_are_here():
    rings = (inference, tfbbb.lab.inference)
    public = [getattr(ring, name) for ring in rings for name in ring.__all__]
    methods = {each for each in public if hasattr(each, "fit")}
    assert {type(method) for method in METHODS.values()} == methods


@pytest.mark.parametrize("case", CASES)
def test_methods_refuse_by_name(case):
    names, build, (x, y), message = CASES[case]
    given = None if build is None else build()
    for name in sorted(names):
        model = given or suitable(name in DROPOUT)
        with pytest.raises(ValueError, match=message) as refusal:
            METHODS[name].fit(model, x, y)
        assert "Received: " in str(refusal.value), name


def test_batches_take_lists_of_targets_and_arrays_by_name():
    inputs = {"a": X[:, :2], "b": X[:, 2:]}
    (found,) = Batches(inputs, Y.tolist(), [1.0] * 12)
    np.testing.assert_array_equal(found[0]["b"], X[:, 2:])
    np.testing.assert_allclose(found[1], Y)
    np.testing.assert_array_equal(found[2], np.ones(12))


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        (inference.Laplace, {"structure": "block"}, "one of 'diagonal', 'kron'"),
        (inference.Laplace, {"subset": "first"}, "Received: subset='first'"),
        (inference.Laplace, {"curvature": "fisher"}, "Received: curvature='fisher'"),
        (inference.Laplace, {"prior_precision": -1.0}, "prior_precision=-1.0"),
        (inference.Laplace, {"prior_precision": "rows"}, "prior_precision='rows'"),
        (inference.NUTS, {"members": 50, "num_draws": 10, "num_chains": 2}, "fewer"),
        (inference.NUTS, {"num_draws": 2, "members": 1}, "at least 4"),
        (inference.NUTS, {"target_acceptance": 1.0}, "between 0 and 1"),
        (inference.NUTS, {"max_tree_depth": 0}, "positive integer"),
        (inference.SGHMC, {"exploration": 1.0}, "below 1"),
        (inference.SGHMC, {"steps_per_cycle": 4, "draws_per_cycle": 3}, "fewer sampl"),
        (inference.SGHMC, {"friction": 2.0}, "at most 1"),
        (inference.SWAG, {"rank": 10, "epochs": 5}, "at most `epochs`"),
    ],
)
def test_arguments_out_of_range_are_refused(method, arguments, message):
    with pytest.raises(ValueError, match=message):
        method(**arguments)
