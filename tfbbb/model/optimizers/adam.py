"""Adam by TensorFlow's fused kernel."""

import keras
import tensorflow as tf

from tfbbb.base.private_apis import adam_moments
from tfbbb.base.types import LearningRate, Tensor


@keras.saving.register_keras_serializable(package="tfbbb.optimizers")
class Adam(keras.optimizers.Adam):
    """Keras' Adam, each update of a variable in one pass over memory.

    A variational layer has two variables for each weight, and Keras' Adam passes over
    each some ten times in a step. This is the same update (Kingma and Ba 2015, in the
    order of the operations before section 2.1),

        variable -= learning_rate * sqrt(1 - beta_2^t) / (1 - beta_1^t)
                    * m / (sqrt(v) + epsilon)

    by `tf.raw_ops.ResourceApplyAdam`. With `amsgrad`, which that kernel lacks, and
    under a `tf.distribute` strategy it is Keras' own. Arguments, configuration and
    state are those of `keras.optimizers.Adam`.

    Example:

    >>> import tfbbb
    >>> optimizer = tfbbb.optimizers.Adam(learning_rate=0.01)
    """

    def update_step(
        self, gradient: Tensor, variable: keras.Variable, learning_rate: LearningRate
    ) -> None:
        if self.amsgrad or tf.distribute.has_strategy():
            super().update_step(gradient, variable, learning_rate)
            return
        dtype = variable.dtype
        first_moment, second_moment = adam_moments(self, variable)
        step = tf.cast(self.iterations, dtype) + 1
        beta_1, beta_2 = tf.cast(self.beta_1, dtype), tf.cast(self.beta_2, dtype)
        tf.raw_ops.ResourceApplyAdam(
            var=_resource(variable),
            m=_resource(first_moment),
            v=_resource(second_moment),
            beta1_power=tf.pow(beta_1, step),
            beta2_power=tf.pow(beta_2, step),
            lr=tf.cast(learning_rate, dtype),
            beta1=beta_1,
            beta2=beta_2,
            epsilon=tf.cast(self.epsilon, dtype),
            grad=tf.cast(tf.convert_to_tensor(gradient), dtype),
        )


def _resource(variable: keras.Variable) -> Tensor:
    if isinstance(variable, keras.Variable):
        variable = variable.value
    return variable.handle
