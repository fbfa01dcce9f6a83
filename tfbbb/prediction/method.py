"""Which method of prediction is the faster one."""

import keras

from tfbbb.layers import VariationalLayer
from tfbbb.layers.sharing import sublayers
from tfbbb.prediction.blocks import is_local_when_built

METHODS = ("local", "weight")

# Nanoseconds on one machine of two cores; only their ratio matters.
_PER_NORMAL = 7.0
_PER_MULTIPLY_ADD = 0.04


def resolve_method(model: keras.Model, method: str, num_rows: int) -> str:
    """Returns the method to use: `method` itself unless it is `"auto"`.

    `local` pays two products per row and no noise to speak of, `weight` one product
    per row and a normal per weight. `local` is taken where its products cost less.

    Raises:
        ValueError: For an unknown name.
    """
    if method in METHODS:
        return method
    if method != "auto":
        names = ", ".join(f"'{name}'" for name in ("auto", *METHODS))
        raise ValueError(
            f"Unknown prediction method. Pass one of {names}. "
            f"Received: method={method!r}"
        )
    layers = [x for x in sublayers(model) if isinstance(x, VariationalLayer)]
    # In the other layers the two methods do the same.
    different = [layer for layer in layers if is_local_when_built(model, layer)]
    # The first variational layer computes its moments once, not once per sample.
    first = layers[0] if layers else None
    local_cost = weight_cost = 0.0
    for layer in different:
        size = layer.variational_weights[0].size
        weight_cost += size * (_PER_NORMAL + num_rows * _PER_MULTIPLY_ADD)
        if layer is not first:
            local_cost += 2 * num_rows * size * _PER_MULTIPLY_ADD
    return "local" if local_cost <= weight_cost else "weight"
