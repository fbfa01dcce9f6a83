"""The private names of Keras, TensorFlow and TFP that `tfbbb` depends on.

No other module of `tfbbb` uses a private name of these libraries. Each function here
has a contract test in `tests/base/test_private_apis.py`, which fails where an upgrade
of a library changes what the function relies on.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tfbbb.base.lazy import keras, np, tf
from tfbbb.base.types import Distribution, Options, Shape, Structure, Tensor

# Private methods of a library that a subclass in `tfbbb` overrides, or calls on itself:
# no function can take their place. `DistributionTensor._value` is another such name, by
# which TensorFlow Probability asks an object for its tensor.
OVERRIDDEN = {
    # Keras creates the resource of a variable here; an adopted variable has one.
    "AdoptedVariable": {"_initialize_with_initializer"},
    # Keras runs the graph of a model on new inputs here to clone the model.
    "PredictiveModel": {"_run_through_graph"},
}


# Graphs of layers.


def graph_of(model: keras.Layer) -> keras.Model | None:
    """Returns the functional graph behind a model, or None for a subclassed one."""
    if isinstance(model, keras.Sequential):
        # A Sequential model keeps its functional twin.
        return getattr(model, "_functional", None)
    return model if hasattr(model, "_nodes_by_depth") else None


def sublayers(layer: keras.Layer) -> list[keras.Layer]:
    """Returns `layer` and every layer in it, in a fixed order, each once."""
    return list(layer._flatten_layers())


def layers_within(layer: keras.Layer) -> list[keras.Layer]:
    """Returns the layers that are attributes of a layer, without those in them."""
    return list(layer._flatten_layers(recursive=False, include_self=False))


def nodes_by_depth(graph: keras.Model) -> list[list[Any]]:
    """Returns the calls in a graph, from its inputs to its outputs.

    The calls of one list do not depend on each other. Each has an `operation`,
    `input_tensors` and `outputs`.
    """
    nodes = graph._nodes_by_depth
    return [nodes[depth] for depth in sorted(nodes, reverse=True)]


def producer(tensor: keras.KerasTensor) -> keras.Operation:
    """Returns the operation, a layer as a rule, whose output a symbolic tensor is."""
    return tensor._keras_history.operation


def sources(tensor: keras.KerasTensor) -> list[keras.KerasTensor]:
    """Returns the symbolic tensors that the producer of a symbolic tensor takes."""
    operation, node_index, _ = tensor._keras_history
    return list(operation._inbound_nodes[node_index].input_tensors)


def index_of_output(tensor: keras.KerasTensor) -> int:
    """Returns which of the outputs of its producer a symbolic tensor is."""
    return tensor._keras_history.tensor_index


def input_structure(model: keras.Model) -> Any:
    """Returns the symbolic inputs of a functional model in their nested structure."""
    return model._inputs_struct


def output_structure(graph: keras.Model) -> Structure:
    """Returns the symbolic outputs of a functional model in their nested structure."""
    return graph._outputs_struct


def standardize_inputs(graph: keras.Model, inputs: Structure) -> list[Tensor]:
    """Returns inputs as a flat list of tensors in the ranks and dtypes of the graph."""
    return graph._standardize_inputs(inputs)


def run_through_graph(
    graph: keras.Model,
    inputs: Sequence[Any],
    operation: Callable[[Any], Callable[..., Any]],
    **call_arguments: Any,
) -> Any:
    """Runs a graph with other operations in place of its own."""
    from keras.src.ops.function import Function

    def with_arguments(op: Any) -> Callable[..., Any]:
        call = operation(op)
        taken = getattr(op, "_call_context_args", ())
        passed = {
            name: value
            for name, value in call_arguments.items()
            if name in taken and value is not None
        }
        return lambda *args, **kwargs: call(*args, **{**kwargs, **passed})

    return Function._run_through_graph(graph, inputs, operation_fn=with_arguments)


def call_arguments(
    model: keras.Model, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Structure, Options]:
    """Returns the inputs and the other arguments of a call of a functional model.

    A mask that the call passes is set on its inputs, as Keras does.
    """
    given = dict(inspect.signature(model.call).bind(*args, **kwargs).arguments)
    inputs = given.pop(next(iter(given)))
    given |= given.pop("kwargs", {})
    mask = given.pop("mask", None)
    if mask is not None:
        flat = keras.tree.flatten(inputs)
        for tensor, its_mask in zip(flat, keras.tree.flatten(mask), strict=False):
            if its_mask is not None:
                set_mask(tensor, its_mask)
    return inputs, given


def arguments_of_node(node: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Returns the arguments of a call in a graph, by position and by name."""
    return node.arguments.args, node.arguments.kwargs


def is_recorded(tensor: keras.KerasTensor) -> bool:
    """Whether a symbolic tensor is an input, or a layer's output in a graph.

    Keras also computes shapes with symbolic tensors, and records no call.
    """
    return hasattr(tensor, "_keras_history")


def has_constructor_of_functional(cls: type[keras.Model]) -> bool:
    """Whether Keras makes clones of functional models of a class with the class.

    Keras gives the clones of other classes the class `Functional`.
    """
    from keras.src.models.functional import functional_like_constructor

    return bool(functional_like_constructor(cls))


def is_h5_of_whole_models() -> bool:
    """Whether Keras reads or writes a config for the legacy format `.h5`."""
    from keras.src.backend.common import global_state

    return bool(global_state.get_global_attribute("use_legacy_config"))


def in_safe_mode() -> bool:
    """Whether Keras loads a model and refuses Python code in its configuration."""
    from keras.src.saving import serialization_lib

    return bool(serialization_lib.in_safe_mode())


def is_rematerialized(layer: keras.Layer, call: Any, given: Any) -> bool:
    """Whether Keras computes the calls of a layer again for their gradients."""
    return given != call and layer._remat_mode.mode != "activations"


def mask_of(tensor: Tensor) -> Tensor | None:
    """Returns the mask that Keras keeps with a tensor, or None."""
    return getattr(tensor, "_keras_mask", None)


def set_mask(tensor: Tensor, mask: Tensor) -> None:
    """Gives a tensor the mask that Keras passes to the next layer."""
    tensor._keras_mask = mask


def has_activation_logits(tensor: Tensor) -> bool:
    """Whether a tensor is the result of Keras' softmax or sigmoid, by a mark of it."""
    return hasattr(tensor, "_keras_logits")


# State of layers and calls.


def outermost_call(layer: keras.Layer) -> Any:
    """Returns Keras' object for the outermost call that runs, a new one for each.

    A layer whose `call` is called as a function has none, and gets a new object. It
    must not enter a call, as Keras' own look-up does: nothing would leave it.
    """
    from keras.src.backend.common import global_state
    from keras.src.layers.layer import CallContext

    found = global_state.get_global_attribute("current_call_ctx")
    return CallContext(entry_layer=layer) if found is None else found


def outermost_layer(layer: keras.Layer) -> keras.Layer:
    """Returns the layer or model whose call is the outermost that runs."""
    return outermost_call(layer).entry_layer


def exports_call() -> bool:
    """Whether Keras traces the call of a model to export it.

    `keras.Model.export` traces `model.__call__`, and `tf.saved_model.save` a function
    that Keras calls `serving_default`.
    """
    if tf.executing_eagerly():
        return False
    name = tf.compat.v1.get_default_graph().name
    return name in ("__call__", "serving_default")


@contextlib.contextmanager
def outside_calls() -> Iterator[None]:
    """Separates the calls of layers within a `with` block from those around it.

    Keras passes on `training` from the outermost call to the calls within it. An
    outermost call removes the losses of former calls: the calls here are not outermost.
    """
    from keras.src.backend.common import global_state
    from keras.src.layers.layer import CallContext

    name = "current_call_ctx"
    outer = global_state.get_global_attribute(name)
    global_state.set_global_attribute(name, CallContext(entry_layer=None))
    try:
        yield
    finally:
        global_state.set_global_attribute(name, outer)


def remove_loss(layer: keras.Layer, loss: Tensor) -> None:
    """Removes a tensor from the losses that `layer.add_loss` collected in this call."""
    layer._losses[:] = [other for other in layer._losses if other is not loss]


def own_trainable_variables(layer: keras.Layer) -> list[keras.Variable]:
    """Returns a layer's trainable variables, without those of layers in it.

    They include the variables of a layer that is frozen.
    """
    return list(layer._trainable_variables)


def own_variables(layer: keras.Layer) -> list[keras.Variable]:
    """Returns a layer's variables in the order in which Keras saves them."""
    return [*layer._trainable_variables, *layer._non_trainable_variables]


def untrack_variables(layer: keras.Layer, variables: Iterable[keras.Variable]) -> None:
    """Removes variables from a layer, built or not."""
    for variable in variables:
        layer._untrack_variable(variable)


def replace_cell(layer: keras.layers.RNN, cell: object) -> None:
    """Gives a recurrent layer a cell without weights in place of that of Keras."""
    layer._tracker.untrack(layer.cell)
    del layer.cell
    layer.cell = cell


def build_weights(
    layer: keras.Layer, input_shape: Shape, add_weight: Callable[..., Any]
) -> None:
    """Builds a layer with weights that another layer adds."""
    layer.add_weight = add_weight
    # Without the scope of the layer's name, which Keras enters around `layer.build`.
    type(layer).build(layer, input_shape)
    del layer.add_weight


@contextlib.contextmanager
def unlocked(layer: keras.Layer) -> Iterator[None]:
    """Allows a layer that is built to get variables within a `with` block."""
    tracker = layer._tracker
    was_locked = tracker.locked
    tracker.unlock()
    try:
        yield
    finally:
        if was_locked:
            tracker.lock()


def track_variable(layer: keras.Layer, variable: keras.Variable) -> bool:
    """Makes a variable one of a layer's own, which Keras trains and saves."""
    tracker = layer._tracker
    stores = "trainable_variables", "non_trainable_variables"
    if any(tracker.is_in_store(store, variable) for store in stores):
        return False
    with unlocked(layer):
        # Keras unfreezes a layer's trainable variables only.
        tracker.add_to_store(stores[0 if variable.trainable else 1], variable)
    return True


# Datasets.


def dataset_operation(dataset: tf.data.Dataset) -> tuple[str, list[tf.data.Dataset]]:
    """Returns the operation that makes a dataset, e.g. "Batch", and its inputs."""
    name = type(dataset).__name__.removeprefix("_").removesuffix("Dataset")
    return name, list(dataset._inputs())


def drops_incomplete_batches(batches: tf.data.Dataset) -> bool:
    """Returns `drop_remainder` of the operation that makes batches."""
    return bool(tf.get_static_value(batches._drop_remainder))


# Training.


def is_validation_of_fit(arguments: Mapping[str, Any]) -> bool:
    """Whether bound arguments of `keras.Model.evaluate` are those that `fit` passes."""
    return bool(arguments.get("kwargs", {}).get("_use_cached_eval_dataset"))


def average_loss_in(model: keras.Model, dtype: str) -> None:
    """Makes a compiled model average the losses that it reports in a dtype."""
    # Keras does not track this metric either.
    vars(model)["_loss_tracker"] = keras.metrics.Mean(name="loss", dtype=dtype)


def in_stateless_scope() -> bool:
    """Whether a `keras.StatelessScope` is active, in which no variable has a value."""
    from keras.src.backend import in_stateless_scope

    return in_stateless_scope()


def adam_moments(
    optimizer: keras.optimizers.Adam, variable: keras.Variable
) -> tuple[keras.Variable, keras.Variable]:
    """Returns the variables of the first and second moment of a variable's gradient."""
    index = optimizer._get_variable_index(variable)
    return optimizer._momentums[index], optimizer._velocities[index]


def index_in_optimizer(
    optimizer: keras.optimizers.Optimizer, variable: keras.Variable
) -> int:
    """Returns the place of a variable among those that an optimizer was built for."""
    return int(optimizer._get_variable_index(variable))


def compiled_metrics(
    model: keras.Model, first: Callable[[], tuple[Tensor, Tensor]]
) -> tuple[list[keras.metrics.Metric], list[keras.metrics.Metric]]:
    """Returns the `metrics` and the `weighted_metrics` of a model with one output.

    Keras finds the metric of the name "accuracy" by the shapes of the first targets and
    predictions, which `first` returns.
    """
    compiled = model._compile_metrics
    if compiled is None:
        return [], []
    if not compiled.built:
        compiled.build(*first())
    plain, weighted = (
        [metric for metrics in lists if metrics for metric in metrics.metrics]
        for lists in (compiled._flat_metrics, compiled._flat_weighted_metrics)
    )
    return plain, weighted


def update_compiled_metrics_by(model: keras.Model, update: Callable[..., None]) -> None:
    """Makes a function of `(y, y_pred, sample_weight)` update all metrics of `compile`.

    A `train_step` of a user finds them as one of `model.metrics`.
    """
    if model._compile_metrics is not None:
        model._compile_metrics.update_state = update


def wrapped_function(metric: keras.metrics.Metric) -> Any:
    """Returns the function or loss whose mean a metric is, or None."""
    return getattr(metric, "_fn", None)


# `keras.layers.MultiHeadAttention`.


def flash_attention(layer: keras.layers.MultiHeadAttention) -> bool | None:
    """Returns whether an attention layer uses flash attention; None where it can."""
    return layer._flash_attention


def options_of_projections(layer: keras.layers.MultiHeadAttention) -> Options:
    """Returns what the projections have in common: initializers, penalties, dtype."""
    return layer._get_common_kwargs_for_sublayer()


# TensorFlow and TensorFlow Probability.


def initialize_variable(variable: keras.Variable, value: tf.Variable) -> None:
    """Makes the value of a Keras variable that of a variable of TensorFlow."""
    variable._initialize(value)


def version_read(value: tf.Tensor) -> object:
    """Returns the version of a variable from a value that was read eagerly.

    If two values that are both still referenced have one version, the variable has not
    changed between the readings. The opposite is not certain: after an assignment to a
    slice of the variable, TensorFlow copies at each reading, and each has a version.

    TensorFlow does not count the assignments of a variable, and most of them run inside
    compiled steps, past every hook of Python. But no assignment writes into a buffer
    that another tensor references (`PrepareToUpdateVariable` in the kernels): it gives
    the variable another buffer. So a buffer that is kept is a version.

    TensorFlow gives a scalar as a NumPy scalar, a copy. The version of a scalar is its
    value.
    """
    array = value._numpy_internal()
    if not isinstance(array, np.ndarray):
        return array
    return array.__array_interface__["data"][0]


def custom_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """`tf.custom_gradient` whose gradient is freed with the graph that it is in.

    TensorFlow keeps the gradient of each call in a graph in a table of the process. The
    gradient references the graph, so neither would ever be freed, and a process that
    trains models would grow by tens of megabytes with each. Here the graph keeps the
    gradient, and the table a weak reference.
    """
    decorated = tf.custom_gradient(function)

    @tf.autograph.experimental.do_not_convert
    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        results = decorated(*arguments)
        if not tf.executing_eagerly():
            _keep_gradient_in_graph(tf.nest.flatten(results)[0])
        return results

    return call


@contextlib.contextmanager
def without_symbolic_build(model: keras.Model) -> Iterator[None]:
    """Trains and evaluates a model that is built on batches of any size.

    On several devices, Keras takes the mean of the parts of the first batch to build
    the model, which fails if the parts differ in their number of rows.
    """
    model._maybe_symbolic_build = lambda **_: None
    try:
        yield
    finally:
        del model._maybe_symbolic_build


def current_graph() -> tf.Graph | None:
    """Returns the graph that is built, or None where code is eager."""
    return None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()


def around_control_flow(
    graph: tf.Graph | None, within: tf.Graph | None = None
) -> tf.Graph | None:
    """Returns the graph around the loops and conditions in which a graph is.

    Each body of a loop and each branch of a condition is a graph of its own.
    """
    from tensorflow.python.ops.control_flow_v2_func_graphs import ControlFlowFuncGraph

    while graph is not within and isinstance(graph, ControlFlowFuncGraph):
        graph = graph.outer_graph
    return graph


def _keep_gradient_in_graph(result: tf.Tensor) -> None:
    # The body of a loop may be freed before its gradient is asked for.
    graph = around_control_flow(result.graph)
    _keep_gradient(result.op.get_attr("_gradient_op_type").decode(), graph)


@contextlib.contextmanager
def gradients_freed_with_graphs() -> Iterator[None]:
    """Frees the gradients of all calls within the block with the graphs of the calls.

    They include those of TensorFlow and Keras, which `custom_gradient` does not see.
    """
    from tensorflow.python.framework import ops

    table = ops.gradient_registry._registry
    before = set(table)
    try:
        yield
    finally:
        for name in set(table) - before:
            # A graph that is freed meanwhile takes its gradients from the table.
            graph = _graph_of_gradient(table.get(name, {}).get("type"))
            if graph is not None:
                _keep_gradient(name, around_control_flow(graph))


def _graph_of_gradient(gradient: object) -> tf.Graph | None:
    """Returns the graph of the call whose gradient `tf.custom_gradient` made."""
    if not inspect.isfunction(gradient):
        return None
    of_call = inspect.getclosurevars(gradient).nonlocals.get("tape_grad_fn")
    if of_call is None:
        return None
    result = inspect.getclosurevars(of_call).nonlocals["result"]
    return tf.nest.flatten(result)[0].graph


def _keep_gradient(name: str, graph: tf.Graph) -> None:
    """Makes the graph keep a gradient, of which the table keeps a weak reference."""
    from tensorflow.python.framework import ops

    table = ops.gradient_registry._registry
    entry = table.get(name)
    if entry is None or isinstance(entry["type"], _WeakGradient):
        return
    gradient = entry["type"]
    graph.gradients_of_calls = [*getattr(graph, "gradients_of_calls", ()), gradient]
    entry["type"] = _WeakGradient(gradient)
    weakref.finalize(graph, table.pop, name, None).atexit = False


class _WeakGradient:
    def __init__(self, gradient: Callable[..., Any]):
        self._gradient: Callable[[], Any] = weakref.ref(gradient)

    def __call__(self, *arguments: Any) -> Any:
        return self._gradient()(*arguments)


def dispatch_by_type(cls: type) -> type:
    """Makes a class known to `tf.experimental.dispatch_for_api`, as a decorator.

    Type-based dispatch is public for extension types only, and those are taken apart
    where they leave a `tf.function`.
    """
    from tensorflow.python.util.dispatch import register_dispatchable_type

    return register_dispatchable_type(cls)


def operation_definition(name: str) -> Any:
    """Returns the `OpDef` of an operation: its inputs, outputs and attributes."""
    from tensorflow.python.framework import op_def_registry

    return op_def_registry.get(name)


def give_bernoulli_parameters(
    distribution: Distribution, bernoulli: Distribution
) -> None:
    """Makes `tfd.Bernoulli.logits(distribution)` that of a Bernoulli distribution."""
    distribution._logits, distribution._probs = bernoulli.logits, None
    distribution.logits = bernoulli.logits
    distribution.probs = bernoulli.probs_parameter()
