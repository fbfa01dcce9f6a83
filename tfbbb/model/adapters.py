"""Low-rank adapters of a frozen network, whose factors may have a posterior."""

import keras

from tfbbb.base.numbers import positive_integer
from tfbbb.base.private_apis import sublayers
from tfbbb.layers import VariationalLayer
from tfbbb.model.adapted import Adapted, adapted, reason_without_adapter
from tfbbb.model.conversion import to_deterministic
from tfbbb.model.converted_layers import Where, chosen_layers, last_layers, parts
from tfbbb.model.network_copy import check_model, cloned, copy_weights, plain_config

__all__ = ["Adapted", "add", "merge"]


def add(model: keras.Model, rank: int = 4, where: Where = "all") -> keras.Model:
    """Returns a copy of a network with low-rank adapters (LoRA, Hu et al. 2022).

        h = activation(W * x + b + up(down * x)),   down [..., r], up [r, outputs]

    Every layer is frozen but the last ones before the outputs, which are trained whole;
    `Dense`, `Conv1D` to `Conv3D` and `Embedding` get an adapter. `up` starts at 0, so
    the outputs of the network do not change.

    `tfbbb.convert(..., where="adapters")` gives `down` and the last layers a posterior.
    `up` stays a point: a posterior of `down` gives one of the product (Wang et al.
    2024).

    Example:

    >>> import keras, tfbbb
    >>> network = keras.Sequential([
    ...     keras.Input((64,)),
    ...     keras.layers.Dense(500, "relu", name="hidden"),
    ...     keras.layers.Dense(3, name="last"),
    ... ])
    >>> adapted = tfbbb.adapters.add(network, rank=4)
    >>> twin = tfbbb.convert(adapted, where="adapters", likelihood="categorical")
    >>> [layer.name for layer in twin.conversion.layers if layer.posterior]
    ['hidden_down', 'last']

    Args:
        model: A functional or sequential model with weights, trained or with a new
            last layer; nested ones and the layers of wrappers are adapted too. LoRA
            weights of Keras are merged.
        rank: Rank r of the adapters.
        where: The layers to adapt: `"all"`, a list of names, or a function of a layer
            that returns whether to adapt it.

    Returns:
        A new model, which is not compiled and shares nothing with the old one.

    Raises:
        ValueError: The model is subclassed or not built, has adapters or posteriors
            already, no layer can be adapted, or a layer that `where` names cannot.
    """
    check_model(model)
    positive_integer("rank", rank)
    for layer in sublayers(model):
        if isinstance(layer, Adapted | VariationalLayer):
            raise ValueError(
                "Adapters are added to a network without adapters and posteriors. Take "
                "`tfbbb.adapters.merge(model)` or `tfbbb.to_deterministic(model)`. "
                f"Received: '{layer.name}' of type {type(layer).__name__}"
            )
    last = last_layers(model)

    def reason(layer: keras.Layer) -> str:
        return "trained whole" if id(layer) in last else reason_without_adapter(layer)

    reasons = chosen_layers(model, where, reason, "adapter")
    if all(reasons.values()):
        kept = {layer.name: reasons.get(id(layer), "") for layer in model.layers}
        raise ValueError(
            "The model has no layer that gets an adapter. "
            f"Received: model={model.name!r} with layers {kept}"
        )

    def counterpart(layer: keras.Layer) -> keras.Layer | None:
        if reasons.get(id(layer), "inside a layer"):
            return None
        return adapted(layer, plain_config(layer), rank)

    twin = cloned(model, counterpart)
    copy_weights(model, twin)
    trained = last_layers(twin)
    for layer in sublayers(twin):
        if isinstance(layer, Adapted):
            trained |= {id(layer.down), id(layer.up)}
    for layer in parts(twin):
        layer.trainable = id(layer) in trained
    return twin


def merge(model: keras.Model) -> keras.Model:
    """Returns the network with `W + down up` as kernels, and nothing frozen.

    Example:

    >>> import keras, tfbbb
    >>> network = keras.Sequential([
    ...     keras.Input((9,)), keras.layers.Dense(20), keras.layers.Dense(3)
    ... ])
    >>> merged = tfbbb.adapters.merge(tfbbb.adapters.add(network))
    >>> [type(layer).__name__ for layer in merged.layers]
    ['Dense', 'Dense']

    Args:
        model: A network from `tfbbb.adapters.add`, or a twin of one: its posteriors
            become their means.

    Raises:
        ValueError: The model has no adapters.
    """
    check_model(model)
    layers = sublayers(model)
    if not any(isinstance(layer, Adapted) for layer in layers):
        raise ValueError(
            "The model has no adapters; `tfbbb.adapters.add` adds them. "
            f"Received: model={model.name!r}"
        )
    if any(isinstance(layer, VariationalLayer) for layer in layers):
        model = to_deterministic(model)

    def counterpart(layer: keras.Layer) -> keras.Layer | None:
        return layer.plain() if isinstance(layer, Adapted) else None

    twin = cloned(model, counterpart)
    copy_weights(model, twin)
    for layer in parts(twin):
        layer.trainable = True
    return twin
