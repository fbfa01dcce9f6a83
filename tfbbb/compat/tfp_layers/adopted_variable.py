"""Variables of TensorFlow as variables of Keras."""

from typing import Any

import keras
import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb.compat.tfp_layers.variable_reference import VariableReference


class AdoptedVariable(keras.Variable):
    """A Keras variable over a `tf.Variable` that exists: one value, two objects.

    So a model trains and saves the variables of distributions and of layers of legacy
    Keras, such as a trainable prior.

    Args:
        variable: The `tf.Variable`, whose constraint is kept.
    """

    def __init__(self, variable: tf.Variable):
        self._adopted = variable
        super().__init__(
            # Called where Keras traces before variables have values.
            initializer=lambda shape, dtype: tf.convert_to_tensor(variable),
            shape=variable.shape,
            dtype=variable.dtype,
            trainable=variable.trainable,
            autocast=False,
            name=variable.name.split(":")[0].replace("/", "_"),
        )
        self.constraint = getattr(variable, "constraint", None)

    def _initialize_with_initializer(self, initializer: Any) -> None:
        self._initialize(self._adopted)


def variables_of(value: Any) -> list[tf.Variable]:
    """Returns the variables that a distribution, bijector or tensor reads, each once.

    Those of Keras layers are not among them: their layers know them.
    """
    found: dict[int, tf.Variable] = {}

    def search(value: Any) -> None:
        if isinstance(value, tf.Variable):
            found[id(value)] = value
        elif isinstance(value, dict):
            search(list(value.values()))
        elif isinstance(value, list | tuple):
            for element in value:
                search(element)
        elif isinstance(value, tfp.util.DeferredTensor):
            search([value.pretransformed_input, value.also_track])
        elif isinstance(value, _PARAMETERISED):
            search(value.parameters)
        elif isinstance(value, tf.Module) and not isinstance(value, VariableReference):
            search(value.variables)

    search(value)
    return list(found.values())


_PARAMETERISED = (
    tfp.distributions.Distribution,
    tfp.bijectors.Bijector,
    tfp.math.psd_kernels.PositiveSemidefiniteKernel,
)
