"""Tests of encodings that are computed once per row of a repeated batch."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tests.training import trainings
from tfbbb.base.call_context import call_with
from tfbbb.layers.row_axes import row_axes
from tfbbb.tables.number_features import PiecewiseLinearEncoding, Standardize
from tfbbb.tables.text_features import OneHot

NUMBERS = np.array([[0.5], [np.nan], [3.0], [20.0]], np.float32)
COLUMN = {"mean": 2.0, "scale": 4.0, "missing": True, "constant": False}


@pytest.mark.parametrize(
    ("layer", "inputs"),
    [
        (Standardize([COLUMN]), NUMBERS),
        (PiecewiseLinearEncoding([[0.0, 1.0, 10.0]]), NUMBERS),
        (OneHot([["blue", "red"]]), [np.array(["red", "green", "blue", "red"])]),
    ],
)
def test_copies_get_the_features_of_their_rows(layer, inputs):
    repeated = keras.tree.map_structure(
        lambda x: tf.concat([tf.constant(x)] * 3, axis=0), inputs
    )
    expected = np.asarray(layer(repeated))
    with call_with(copies_in_batch=3):
        found = np.asarray(layer(repeated))
    assert found.shape == (12, expected.shape[1])
    np.testing.assert_array_equal(found, expected)


def test_members_share_the_encoding_of_a_batch(monkeypatch):
    inputs = keras.Input((1,))
    features = Standardize([COLUMN])(inputs)
    outputs = tfbbb.layers.DenseVariational(1, seed=0)(features)
    model = tfbbb.BayesianModel(inputs, outputs, members=3)
    encoded = []
    encode = Standardize._encode

    def counted(layer, numbers):
        encoded.append(len(numbers))
        return encode(layer, numbers)

    monkeypatch.setattr(Standardize, "_encode", counted)
    assert model(NUMBERS).shape == (12, 1)
    assert encoded == [4]


def test_the_axes_of_rows_are_found_within_a_call_with_copies():
    model = trainings.model(members=4)
    with call_with(copies_in_batch=4, samples_in_batch=1):
        axes = row_axes(model)
    assert axes.no_output is None
    assert not axes.unfoldable
