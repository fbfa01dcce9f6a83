"""The module `tfp.layers.util` under its own name."""

import inspect
import json

import keras
import pytest
from tensorflow_probability.python.layers import util as theirs

import tfbbb.lab.compat.tfp_layers as tfpl


@keras.saving.register_keras_serializable(package="tests.compat")
def registered(x):
    return 2 * x


def test_its_names_are_those_of_tfp():
    assert sorted(tfpl.util.__all__) == sorted(theirs.__all__)
    for name in theirs.__all__:
        our, their = getattr(tfpl.util, name), getattr(theirs, name)
        assert list(inspect.signature(our).parameters) == list(
            inspect.signature(their).parameters
        )
    for name in ("default_mean_field_normal_fn", "default_multivariate_normal_fn"):
        assert getattr(tfpl.util, name) is getattr(tfpl, name)


@pytest.mark.parametrize("kind", ["function", "lambda"])
def test_functions_survive_json(kind):
    factor = 2
    function = registered if kind == "function" else lambda x: factor * x
    serial, function_type = tfpl.util.serialize_function(function)
    assert function_type == kind
    read = tfpl.util.deserialize_function(json.loads(json.dumps(serial)), kind)
    assert read(3) == 6
    assert (read is function) == (kind == "function")


def test_unknown_types_of_functions_are_refused():
    with pytest.raises(TypeError, match="Received: function_type='method'"):
        tfpl.util.deserialize_function("registered", "method")
