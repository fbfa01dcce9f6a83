"""Copies of networks: layers with counterparts in their place, and their weights."""

import inspect
from collections.abc import Callable, Sequence

import keras
import numpy as np

from tfbbb.base.layer_state import copy_state
from tfbbb.base.private_apis import graph_of, sublayers
from tfbbb.base.types import ArrayLike, Initializer, Options, Shape, Tensor
from tfbbb.bayes.posteriors import Posterior
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.layers import VariationalLayer
from tfbbb.model.adapted import Adapted
from tfbbb.model.converted_layers import shared_arguments, wrapped
from tfbbb.model.layer_posterior import variational_weights

# A prior replaces regularizers; the other options need kernels that are numbers.
_LEFT_ASIDE = ("_regularizer", "lora_rank", "lora_alpha", "quantization_config")


def check_model(model: keras.Model) -> None:
    """Checks that a model has a graph of layers, which can be copied."""
    if not isinstance(model, keras.Model) or graph_of(model) is None:
        raise ValueError(
            "Only functional and sequential models that are built can be converted: "
            "the layers of others are called from code. Make a subclassed model "
            "functional, `keras.Model(inputs, model.call(inputs))` with `inputs = "
            "keras.Input(...)`, and begin a sequential one with `keras.Input`. "
            f"Received: model of type {type(model).__name__}"
        )


def cloned(
    model: keras.Model, counterpart: Callable[[keras.Layer], keras.Layer | None]
) -> keras.Model:
    """Returns a copy of the model with counterparts in place of its layers.

    It is not compiled: Keras would read losses from their configs, which functions of
    the user do not have.
    """
    compiled = [x for x in sublayers(model) if getattr(x, "compiled", False)]
    for each in compiled:
        each.compiled = False
    try:
        return keras.models.clone_model(
            model,
            clone_function=lambda layer: copy_of_layer(layer, counterpart),
            recursive=True,
        )
    finally:
        for each in compiled:
            each.compiled = True


def copy_of_layer(
    layer: keras.Layer, counterpart: Callable[[keras.Layer], keras.Layer | None]
) -> keras.Layer:
    """Returns the counterpart of a layer, or a copy with counterparts in it."""
    found = counterpart(layer)
    if found is not None:
        return found
    if isinstance(layer, keras.layers.Lambda):
        return _copy_of_lambda(layer)
    try:
        config = layer.get_config()
        for attribute, key in wrapped(layer).items():
            if key in config:
                inner = copy_of_layer(getattr(layer, attribute), counterpart)
                config[key] = keras.saving.serialize_keras_object(inner)
        return type(layer).from_config(config)
    except (NotImplementedError, TypeError) as error:
        raise ValueError(
            f"The layer '{layer.name}' cannot be copied from its config. Give its "
            "class a `get_config` that returns all arguments of the constructor, or "
            "build the network from layers of Keras. "
            f"Received: a layer of type {type(layer).__name__}, whose copy failed: "
            f"{error}"
        ) from error


def _copy_of_lambda(layer: keras.layers.Lambda) -> keras.Layer:
    """Returns a `Lambda` of the same function, whose code Keras would not read."""
    known = inspect.getclosurevars(layer.function)
    for name, value in {**known.globals, **known.nonlocals}.items():
        if isinstance(value, keras.Layer | keras.Variable):
            raise ValueError(
                f"The function of the Lambda '{layer.name}' uses weights, which the "
                "twin would share with the network. Write a layer that holds them. "
                f"Received: a function that uses {name}={value!r}"
            )
    config = keras.Layer.get_config(layer)
    return keras.layers.Lambda(
        layer.function,
        mask=layer.mask,
        arguments=layer.arguments,
        **{key: config[key] for key in ("name", "trainable", "dtype")},
    )


def plain_config(layer: keras.Layer) -> Options:
    """Returns what a layer's config has in common with its counterpart's."""
    shared = shared_arguments(layer)
    return {
        key: value
        for key, value in layer.get_config().items()
        if key in shared and not key.endswith(_LEFT_ASIDE)
    }


def copy_weights(model: keras.Layer, twin: keras.Layer) -> None:
    """Copies weights or means from a model to its twin, layer by layer."""
    for layer, new in zip(model.layers, twin.layers, strict=True):
        copy_weights_of_layer(layer, new)


def copy_weights_of_layer(layer: keras.Layer, new: keras.Layer) -> None:
    """Copies weights or means from a layer to its copy or counterpart."""
    if isinstance(layer, Adapted) and not isinstance(new, Adapted):
        _assign(new, layer.merged_weights())
    elif isinstance(new, Adapted) and not isinstance(layer, Adapted):
        _assign(new.layer, _merged(layer))
    elif type(layer) is not type(new) or _posteriors(layer) != _posteriors(new):
        _copy_means(layer, new)
    elif isinstance(layer, VariationalLayer) and any(
        has_new_prior(target, weight)
        for weight, target in zip(
            layer.variational_weights, new.variational_weights, strict=True
        )
    ):
        for weight, target in zip(
            layer.variational_weights, new.variational_weights, strict=True
        ):
            for name, variable in target.variables.items():
                variable.assign(weight.variables[name])
    elif isinstance(layer, keras.Model):
        copy_weights(layer, new)
    elif within := wrapped(layer):
        for key in within:
            copy_weights_of_layer(getattr(layer, key), getattr(new, key))
    else:
        copy_state(layer, new)


def _assign(layer: keras.Layer, values: Sequence[ArrayLike]) -> None:
    for variable, value in zip(layer.weights, values, strict=True):
        variable.assign(value)


def _copy_means(layer: keras.Layer, new: keras.Layer) -> None:
    """Starts posteriors at the weights of a layer, or sets weights to their means."""
    sources, targets = (variational_weights(x) or _merged(x) for x in (layer, new))
    shapes = [[tuple(w.shape) for w in weights] for weights in (sources, targets)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"The weights of '{layer.name}' do not fit its counterpart. Merge the LoRA "
            "weights of the layers within it into their kernels first. "
            f"Received: shapes {shapes[0]} and {shapes[1]}"
        )
    for source, target in zip(sources, targets, strict=True):
        if isinstance(target, VariationalWeight):
            trained = isinstance(source, VariationalWeight)
            _start_at(target, np.asarray(source.mean if trained else source))
        else:
            target.assign(source.mean)


def _merged(layer: keras.Layer) -> list[Tensor]:
    """Returns the weights of a layer, with LoRA weights merged into the first."""
    weights = layer.weights
    if not getattr(layer, "lora_enabled", False):
        return weights
    first = layer.embeddings if hasattr(layer, "embeddings") else layer.kernel
    return [first, *(w for w in weights[1:] if not w.name.startswith("lora_"))]


def _start_at(weight: VariationalWeight, mean: np.ndarray) -> None:
    """Gives q the variables that it has when its mean is initialised so.

    Not every family has the mean for a variable.
    """
    own = weight.variables.get("mean")
    if own is not None and tuple(own.shape) == np.shape(mean):
        # Without a second set of variables, which takes as long as the first.
        own.assign(mean)
        if np.allclose(weight.mean, mean, rtol=1e-4, atol=1e-6):
            return

    def add_variable(
        name: str, shape: Shape, initializer: Initializer, trainable: bool = True
    ) -> keras.Variable:
        initializer = keras.initializers.get(initializer)
        return keras.Variable(initializer, shape=shape, dtype="float32")

    started = weight.posterior.add_variables(
        add_variable, weight.shape, weight.fan_in, keras.initializers.Constant(mean)
    )
    for name, variable in weight.variables.items():
        variable.assign(started[name])
    if not np.allclose(weight.mean, mean, rtol=1e-4, atol=1e-6):
        raise ValueError(
            "A posterior that does not start at the mean which the layer gives it "
            f"cannot start at weights. Received: posterior={weight.posterior!r}"
        )


def _posteriors(layer: keras.Layer) -> tuple[Posterior, Posterior] | None:
    if isinstance(layer, VariationalLayer):
        return layer.posterior, layer.bias_posterior
    return None


def has_new_prior(weight: VariationalWeight, old: VariationalWeight) -> bool:
    """Whether the prior of a weight is another than that of `old`, with own values."""
    if weight.prior_variables.keys() != old.prior_variables.keys():
        return True
    # A prior from a config may have no values yet, only NaN.
    values = [variable.numpy() for variable in weight.prior_variables.values()]
    has_values = bool(values) and not any(np.isnan(value).any() for value in values)
    return has_values and weight.prior != old.prior
