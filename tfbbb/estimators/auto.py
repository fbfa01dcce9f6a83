"""The default: the estimator of least gradient variance that is exact."""

from typing import TYPE_CHECKING, Any

import keras

from tfbbb.estimators.estimator import Estimator
from tfbbb.estimators.flipout import Flipout
from tfbbb.estimators.local import Local
from tfbbb.estimators.weight import Weight

if TYPE_CHECKING:
    from tfbbb.layers.variational import VariationalLayer


@keras.saving.register_keras_serializable(package="tfbbb.estimators")
class Auto(Estimator):
    """Takes `local` where it is exact, else `flipout`, else `weight`.

    `local` is exact where q factorises and each weight is used once per row: not in a
    layer that is shared, nor where one kernel serves several positions of a row. In a
    subclassed model it cannot be known whether a layer is shared.

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(4, estimator="auto")
    """

    def choose(self, layer: "VariationalLayer", input_rank: int) -> Estimator:
        """Returns the estimator for this layer in the model being called."""
        families = [weight.posterior for weight in layer.variational_weights]
        if all(map(Local().can_serve, families)) and layer.is_local_exact(
            input_rank, layer.calls_in_this_pass()
        ):
            return Local()
        return Flipout() if all(map(Flipout().can_serve, families)) else Weight()

    def __call__(
        self, layer: "VariationalLayer", inputs: Any
    ) -> tuple[Any, dict[str, Any]]:
        return self.choose(layer, len(inputs.shape))(layer, inputs)
