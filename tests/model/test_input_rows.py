"""Inputs that are not finite are refused where the network can't replace them."""

import keras
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tensorflow as tf

import tfbbb
from tfbbb.layers import DenseVariational
from tfbbb.tables import Schema, preprocessing

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(40, 3)).astype("float32")
Y = X[:, :1] + 0.1 * GENERATOR.normal(size=(40, 1)).astype("float32")


def with_value(value, row=7, column=2, x=X):
    x = x.copy()
    x[row, column] = value
    return x


def network(members=1):
    inputs = keras.Input((3,), name="table")
    hidden = DenseVariational(4, "tanh")(inputs)
    model = tfbbb.BayesianModel(inputs, DenseVariational(1)(hidden), members=members)
    model.compile("adam", run_eagerly=True)
    return model


@pytest.fixture(scope="module")
def trained():
    model = network()
    model.fit(X, Y, verbose=0)
    return model


def batches(x, y=Y, size=16):
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(size)


NAN = with_value(np.nan)
REFUSED = (
    r"no finite output.*`tfbbb\.tables\.preprocessing`\. Received: {} in row {} of "
)


@pytest.mark.parametrize(("value", "members"), [(np.nan, 2), (-np.inf, 1)])
def test_fit_refuses_the_row_before_the_first_step(value, members):
    model = network(members)
    before = [weight.numpy() for weight in model.weights]
    message = REFUSED.format(value, 7) + r"the input 'table', at \[2\]$"
    with pytest.raises(ValueError, match=message):
        model.fit(with_value(value), Y, epochs=2, verbose=0)
    for weight, old in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(weight.numpy(), old)


@pytest.mark.parametrize(
    ("x", "row"),
    [
        (with_value(1e300, x=X.astype("float64")), 7),
        (tf.constant(NAN), 7),
        (pd.DataFrame(NAN), 7),
        ({"table": NAN}, 7),
        (batches(with_value(np.nan, row=39)), 39),
        (with_value(np.nan, row=39, x=NAN), 7),
        (with_value(np.inf, row=3, x=NAN), 3),
    ],
)
def test_inputs_of_any_kind_are_checked(x, row):
    y = None if isinstance(x, tf.data.Dataset) else Y
    with pytest.raises(ValueError, match=REFUSED.format(".*", row)):
        network().fit(x, y, verbose=0)


def test_validation_arrays_are_checked():
    for data in ((NAN, Y), (X, np.where(np.arange(40)[:, None] == 7, np.nan, Y))):
        with pytest.raises(ValueError, match="in row 7"):
            network().fit(X, Y, validation_data=data, verbose=0)


def test_rows_are_found_in_the_input_that_holds_them():
    left, right = keras.Input((3,), name="left"), keras.Input((2, 2), name="right")
    joined = keras.layers.Concatenate()([left, keras.layers.Flatten()(right)])
    model = tfbbb.BayesianModel([left, right], DenseVariational(1)(joined))
    model.compile("adam", run_eagerly=True)
    images = np.zeros((40, 2, 2), "float32")
    images[11, 1, 0] = np.nan
    with pytest.raises(ValueError, match=r"row 11 of the input 'right', at \[1, 0\]$"):
        model.fit({"right": images, "left": X}, Y, verbose=0)


def of_columns():
    """A model of columns, the first of which may miss values, and its inputs."""
    table = pa.table(
        {"a": with_value(np.nan, column=0)[:, 0], "b": X[:, 1], "y": Y[:, 0]}
    )
    schema = Schema.infer(table, "y")
    inputs, features = preprocessing(schema)
    model = tfbbb.BayesianModel(inputs, DenseVariational(1)(features))
    model.compile("adam", run_eagerly=True)
    return model, schema.inputs(table)


def test_missing_values_that_a_layer_replaces_are_trained_on():
    model, x = of_columns()
    assert np.isnan(x["a"]).any()
    history = model.fit(x, Y, validation_data=(x, Y), verbose=0).history
    assert np.isfinite([history["loss"], history["val_loss"]]).all()
    assert np.isfinite(model.evaluate(x, Y, verbose=0)).all()
    assert np.isfinite(model.predictive(x).mean).all()


def test_infinities_beside_missing_values_are_refused():
    model, x = of_columns()
    x["a"][20] = np.inf
    with pytest.raises(ValueError, match=r"Received: inf in row 20 of the input 'a'"):
        model.fit(x, Y, verbose=0)


def test_evaluate_refuses_what_fit_refuses(trained):
    with pytest.raises(ValueError, match=REFUSED.format("nan", 7)):
        trained.evaluate(NAN, Y, verbose=0)
    with pytest.raises(ValueError, match="in row 7"):
        trained.evaluate(X, np.where(np.arange(40)[:, None] == 7, np.nan, Y), verbose=0)
    weights = np.where(np.arange(40) == 7, np.nan, 1.0)
    with pytest.raises(ValueError, match=r"sample weight must be .*in row 7"):
        trained.evaluate(X, Y, sample_weight=weights, verbose=0)


def test_evaluate_warns_of_a_dataset_without_a_finite_loss(trained):
    with pytest.warns(UserWarning, match="The loss is not finite"):
        trained.evaluate(batches(NAN), verbose=0)


def test_weights_that_are_not_finite_are_told_from_inputs():
    model = network()
    kernel = model.variational_layers[0].trainable_variables[0]
    kernel.assign(np.full(kernel.shape, np.nan))
    with pytest.raises(ValueError, match="weights of the model are not finite"):
        model.fit(NAN, Y, verbose=0)
