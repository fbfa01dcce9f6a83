"""Private names of libraries are used in two modules; here is what each means."""

import ast
import functools
import gc
import importlib
import inspect
import re
import weakref
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

import tfbbb
from tfbbb.base import private_apis

ROOT = Path(tfbbb.__file__).parent
ATTRIBUTE_FUNCTIONS = ("getattr", "hasattr", "setattr", "delattr")
PRIVATE_MODULES = ("keras.src", "tensorflow.python", "tensorflow_probability.python")


@functools.cache
def modules():
    paths = [path for path in ROOT.rglob("*.py") if path.name != "private_apis.py"]
    return {path: ast.parse(path.read_text()) for path in sorted(paths)}


def is_private(name):
    # The methods of named tuples are public.
    public = {"_", "_replace", "_asdict", "_fields"}
    return name.startswith("_") and not name.startswith("__") and name not in public


def private_names_used(tree):
    """The private attributes in a module: the object, the name and the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            yield node.value, node.attr, node.lineno
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ATTRIBUTE_FUNCTIONS
            and isinstance(node.args[1], ast.Constant)
            and is_private(str(node.args[1].value))
        ):
            yield node.args[0], node.args[1].value, node.lineno


def is_self(node):
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def private_names_defined(tree):
    """The private functions, and attributes of `self` and of classes, in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Assign):
            yield from (t.id for t in node.targets if isinstance(t, ast.Name))
        # `self.__dict__["_name"] = value`
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            yield str(node.slice.value)


def test_other_objects_are_used_by_public_names():
    """Outside of `self`, a private name is one that the same module defines."""
    found = []
    for path, tree in modules().items():
        own = set(private_names_defined(tree))
        for owner, name, line in private_names_used(tree):
            if not is_self(owner) and name not in own:
                found.append(f"{path.relative_to(ROOT)}:{line}: {name}")
    assert not found, f"move these to tfbbb/base/private_apis.py: {found}"


def test_private_names_of_self_are_defined_in_tfbbb():
    trees = modules()
    own = {name for tree in trees.values() for name in private_names_defined(tree)}
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path, tree in trees.items()
        for owner, name, line in private_names_used(tree)
        if is_self(owner) and name not in own
    ]
    assert not found, f"move these to tfbbb/base/private_apis.py: {found}"


def test_private_modules_of_libraries_are_not_imported():
    found = []
    for path, tree in modules().items():
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            found += [
                f"{path.relative_to(ROOT)}:{node.lineno}: {name}"
                for name in names
                if name.startswith(PRIVATE_MODULES)
            ]
    assert not found, f"move these to tfbbb/base/private_apis.py: {found}"


def is_of_a_library(cls):
    return cls.__module__.startswith(("keras", "tensorflow", "tensorflow_probability"))


@functools.cache
def private_names_of(cls):
    """The private names that a library's class defines, or uses on an object."""
    used = re.findall(r"\b\w+\.(_\w+)", inspect.getsource(cls))
    return {name for name in (*vars(cls), *used) if is_private(name)}


def shared_private_names():
    """Private names that subclasses in `tfbbb` share with classes of the libraries."""
    shared = {}
    for path, tree in modules().items():
        name = ".".join(("tfbbb", *path.relative_to(ROOT).with_suffix("").parts))
        if name.endswith("__main__"):
            continue
        module = importlib.import_module(name.removesuffix(".__init__"))
        for node in ast.walk(tree):
            cls = isinstance(node, ast.ClassDef) and getattr(module, node.name, None)
            if not inspect.isclass(cls):
                continue
            used = {n for owner, n, _ in private_names_used(node) if is_self(owner)}
            used |= {n for n in private_names_defined(node) if is_private(n)}
            theirs = {
                name
                for base in (*cls.__mro__, *type(cls).__mro__)
                if is_of_a_library(base)
                for name in private_names_of(base)
            }
            if used & theirs:
                shared[node.name] = used & theirs
    return shared


def test_subclasses_share_no_private_names_with_their_bases():
    # Keras gives a class of models the functional base when it makes the first of them.
    inputs = keras.Input((2,))
    tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(inputs))
    assert shared_private_names() == private_apis.OVERRIDDEN


# What each function relies on.


@pytest.fixture(scope="module")
def functional():
    a, b = keras.Input((2,), name="a"), keras.Input((2,), name="b")
    hidden = keras.layers.Dense(3, name="hidden")(a + b)
    return keras.Model({"a": a, "b": b}, [keras.layers.Dense(1, name="last")(hidden)])


@pytest.fixture(scope="module")
def sequential():
    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])


def test_graph_of(functional, sequential):
    class Subclassed(keras.Model):
        pass

    assert private_apis.graph_of(functional) is functional
    graph = private_apis.graph_of(sequential)
    assert isinstance(graph, keras.Model)
    assert graph.outputs
    assert private_apis.graph_of(Subclassed()) is None
    assert private_apis.graph_of(keras.layers.Dense(1)) is None


def test_sublayers(sequential):
    outer = keras.Sequential([keras.Input((2,)), sequential, sequential])
    found = private_apis.sublayers(outer)
    assert found[0] is outer
    assert [layer for layer in found if layer is sequential] == [sequential]
    assert sequential.layers[0] in found


def test_nodes_by_depth(functional):
    levels = private_apis.nodes_by_depth(functional)
    operations = [[node.operation for node in level] for level in levels]
    assert len(operations[0]) == 2
    assert [o.name for o in operations[-1]] == ["last"]
    assert [tensor.shape for tensor in levels[-1][0].outputs] == [(None, 1)]


def test_producer(functional):
    assert private_apis.producer(functional.outputs[0]).name == "last"


def test_input_structure(functional):
    structure = private_apis.input_structure(functional)
    assert {name: tensor.name for name, tensor in structure.items()} == {
        "a": "a",
        "b": "b",
    }


def test_output_structure(functional):
    structure = private_apis.output_structure(functional)
    assert [tensor.shape for tensor in structure] == [(None, 1)]


def test_standardize_inputs(functional):
    found = private_apis.standardize_inputs(
        functional, {"b": np.ones((3, 2)), "a": np.zeros((3, 2))}
    )
    assert [tensor.dtype for tensor in found] == [tf.float32, tf.float32]
    assert [float(tensor[0, 0]) for tensor in found] == [0.0, 1.0]


def test_run_through_graph(functional):
    called = []

    def operation(op):
        return lambda *args, **kwargs: called.append(op.name) or "output"

    found = private_apis.run_through_graph(functional, ["a", "b"], operation)
    assert found == ["output"]
    assert called[1:] == ["hidden", "last"]


def test_arguments_of_the_call_of_a_graph_reach_its_operations():
    inputs = keras.Input((3,))
    hidden = keras.layers.Dropout(0.5)(keras.layers.Dense(2)(inputs))
    model = keras.Model(inputs, hidden)
    given = {}

    def operation(op):
        return lambda *args, **kwargs: given.update({op: kwargs}) or "output"

    tensor, mask = tf.zeros([1, 3]), tf.constant([[True, False, True]])
    arguments = private_apis.call_arguments(model, (tensor, True), {"mask": mask})
    assert arguments[0] is tensor
    assert arguments[1] == {"training": True}
    assert private_apis.mask_of(tensor) is mask
    private_apis.run_through_graph(model, [tensor], operation, **arguments[1])
    assert list(given.values()) == [{"training": True}] * 2


def test_arguments_of_node(functional):
    node = private_apis.nodes_by_depth(functional)[-1][0]
    args, kwargs = private_apis.arguments_of_node(node)
    assert [x.shape for x in args] == [x.shape for x in node.input_tensors]
    assert not kwargs


def test_calls_outside_keep_the_losses_of_those_around_them():
    layer = keras.layers.ActivityRegularization(l2=1.0)
    seen = []

    class Outer(keras.layers.Layer):
        def call(self, inputs, training=None):
            layer(inputs)
            with private_apis.outside_calls(), keras.StatelessScope():
                layer(inputs)
                seen.append(private_apis.outermost_layer(self))
            seen.append(private_apis.outermost_layer(self))
            return inputs

    outer = Outer()
    outer(tf.ones([2, 1]), training=True)
    assert seen == [None, outer]
    assert len(layer.losses) == 1


def test_sources_and_index_of_outputs():
    inputs = keras.Input((4,))
    first, second = keras.ops.split(inputs, 2, axis=1)
    total = first + second
    assert all(
        one is other
        for one, other in zip(private_apis.sources(total), (first, second), strict=True)
    )
    assert private_apis.sources(inputs) == []
    assert private_apis.index_of_output(second) == 1


def test_activations_mark_their_results():
    logits = tf.ones((2, 3))
    for activation in (keras.activations.softmax, keras.ops.sigmoid):
        assert private_apis.has_activation_logits(activation(logits))
    assert not private_apis.has_activation_logits(logits)


def test_calls_in_a_graph_are_recorded_and_shapes_are_not(functional):
    layer, inputs = keras.layers.Dense(1), keras.Input((2,))
    assert private_apis.is_recorded(inputs)
    assert private_apis.is_recorded(layer(inputs))
    assert not private_apis.is_recorded(layer.compute_output_spec(inputs))


def test_keras_clones_a_model_by_a_run_through_its_graph(functional):
    run = []

    class Watched(keras.Model):
        def _run_through_graph(self, inputs, *args, **kwargs):
            outputs = super()._run_through_graph(inputs, *args, **kwargs)
            run.append((inputs, outputs))
            return outputs

    model = Watched(functional.inputs, functional.outputs)
    run.clear()
    clone = keras.models.clone_model(model)
    # Its constructor checks the graph afterwards.
    assert [x is y for x, y in zip(run[0][0], clone.inputs, strict=True)] == [True] * 2
    assert run[0][1][0] is clone.outputs[0]


def test_has_constructor_of_functional():
    class Same(keras.Model):
        def __init__(self, inputs, outputs, name=None, *, other=1):
            pass

    class Other(keras.Model):
        def __init__(self, units, **kwargs):
            pass

    assert private_apis.has_constructor_of_functional(Same)
    assert not private_apis.has_constructor_of_functional(Other)


def test_is_h5_of_whole_models(tmp_path):
    seen = []

    @keras.saving.register_keras_serializable(package="test_private_apis")
    class Watching(keras.layers.Layer):
        def get_config(self):
            seen.append(private_apis.is_h5_of_whole_models())
            return super().get_config()

    model = keras.Sequential([keras.Input((2,)), Watching()])
    model.save(tmp_path / "model.keras")
    assert not any(seen)
    seen.clear()
    model.save(tmp_path / "model.h5")
    assert all(seen)
    assert not private_apis.is_h5_of_whole_models()


def test_exports_call(tmp_path):
    seen = []

    class Watching(keras.layers.Layer):
        def call(self, inputs):
            seen.append(private_apis.exports_call())
            return inputs + 1.0

    model = keras.Sequential([keras.Input((2,)), Watching()])
    model.predict(np.ones((1, 2)), verbose=0)
    tf.function(model)(tf.ones((1, 2)))
    tf.function(lambda x: model(x))(tf.ones((1, 2)))
    model(tf.ones((1, 2)))
    assert not any(seen)
    for export in (
        lambda path: model.export(path, verbose=False),
        functools.partial(tf.saved_model.save, model),
    ):
        seen.clear()
        export(str(tmp_path))
        assert all(seen)
        assert seen


def test_average_loss_in():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    private_apis.average_loss_in(model, "float64")
    loss = model.evaluate(np.ones((2, 1)), np.ones((2, 1)), verbose=0)
    assert np.isfinite(loss)
    assert [x.dtype for x in model.metrics if x.name == "loss"] == ["float64"]


def test_masks():
    embedding = keras.layers.Embedding(3, 2, mask_zero=True)
    outputs = embedding(np.array([[1, 0]]))
    assert private_apis.mask_of(outputs).numpy().tolist() == [[True, False]]
    assert private_apis.mask_of(tf.ones(2)) is None
    inputs = tf.ones((1, 2, 3))
    private_apis.set_mask(inputs, tf.constant([[True, False]]))
    outputs = keras.layers.Activation("relu")(inputs)
    assert private_apis.mask_of(outputs).numpy().tolist() == [[True, False]]


def test_outermost_call_and_layer():
    calls, entries = [], []

    class Recording(keras.layers.Layer):
        def call(self, inputs):
            calls.append(private_apis.outermost_call(self))
            entries.append(private_apis.outermost_layer(self))
            return inputs

    layer = Recording()
    inputs = keras.Input((2,))
    model = keras.Model(inputs, layer(layer(inputs)))
    calls.clear()
    entries.clear()
    model(np.ones((1, 2)))
    model(np.ones((1, 2)))
    first, again, second, _ = calls
    assert first is again
    assert first is not second
    assert all(entry is model for entry in entries)


def test_remove_loss():
    class Penalized(keras.layers.Layer):
        def call(self, inputs):
            first, second = tf.constant(1.0), tf.constant(2.0)
            self.add_loss(first)
            self.add_loss(second)
            private_apis.remove_loss(self, first)
            return inputs

    layer = Penalized()
    layer(np.ones((1, 2)))
    assert [float(loss) for loss in layer.losses] == [2.0]


def test_own_variables(sequential):
    layer = keras.layers.BatchNormalization()
    layer.build((None, 2))
    own = private_apis.own_variables(layer)
    assert [v.name for v in own] == ["gamma", "beta", "moving_mean", "moving_variance"]
    assert private_apis.own_variables(sequential) == []
    layer.trainable = False
    trainable = private_apis.own_trainable_variables(layer)
    assert [v.name for v in trainable] == ["gamma", "beta"]


def test_tracked_variables():
    layer = keras.layers.Dense(1)
    layer.build((None, 2))
    with pytest.raises(ValueError, match="cannot add new elements of state"):
        layer.add_weight(shape=())
    with private_apis.unlocked(layer):
        added = layer.add_weight(shape=())
    private_apis.untrack_variables(layer, [added])
    assert layer.variables == [layer.kernel, layer.bias]
    other = keras.Variable(1.0)
    assert private_apis.track_variable(layer, other)
    assert not private_apis.track_variable(layer, other)
    assert layer.trainable_variables[-1] is other
    with pytest.raises(ValueError, match="cannot add new elements of state"):
        layer.add_weight(shape=())


def test_is_validation_of_fit():
    class Model(keras.Model):
        def evaluate(self, *args, **kwargs):
            bound = inspect.signature(super().evaluate).bind(*args, **kwargs)
            found.append(private_apis.is_validation_of_fit(bound.arguments))
            return super().evaluate(*args, **kwargs)

    found = []
    inputs = keras.Input((1,))
    model = Model(inputs, keras.layers.Dense(1)(inputs))
    model.compile(loss="mse")
    x = np.ones((2, 1))
    model.fit(x, x, validation_data=(x, x), verbose=0)
    model.evaluate(x, x, verbose=0)
    assert found == [True, False]


def test_in_stateless_scope():
    assert not private_apis.in_stateless_scope()
    with keras.StatelessScope():
        assert private_apis.in_stateless_scope()


def test_adam_moments():
    optimizer = keras.optimizers.Adam(beta_1=0.5, beta_2=0.75)
    others, variable = keras.Variable(1.0), keras.Variable(1.0)
    optimizer.build([others, variable])
    optimizer.apply([tf.constant(0.0), tf.constant(2.0)])
    first, second = private_apis.adam_moments(optimizer, variable)
    assert float(first.numpy()) == pytest.approx(1.0)
    assert float(second.numpy()) == pytest.approx(1.0)


def test_wrap_until_built():
    def counted(method):
        def call(x, y, y_pred, **kwargs):
            calls.append(method.__name__)
            return method(x, y, y_pred, **kwargs)

        return call

    class Wrapping(keras.layers.Dense):
        def call(self, x):
            if private_apis.in_stateless_scope():
                model = private_apis.outermost_layer(self)
                if isinstance(model, keras.Model):
                    private_apis.wrap_until_built(model, counted)
            return super().call(x)

    calls = []
    inputs = keras.Input((1,))
    model = keras.Model(inputs, Wrapping(1)(inputs))
    model.compile(loss="mse", metrics=["mae"])
    x = np.ones((2, 1), "float32")
    before = set(vars(model))
    model._symbolic_build(data_batch=(x, x, None))
    assert sorted(calls) == ["_compute_loss", "compute_metrics"]
    assert set(vars(model)) == before
    model.evaluate(x, x, verbose=0)
    assert len(calls) == 2


def test_compiled_metrics_and_their_functions():
    own = keras.metrics.MeanSquaredError()
    inputs = keras.Input((1,))
    model = keras.Model(inputs, inputs)
    assert private_apis.compiled_metrics(model, pytest.fail) == ([], [])
    model.compile(metrics=["accuracy", own], weighted_metrics=["acc"])
    for _ in range(2):
        x = tf.ones((2, 1))
        plain, weighted = private_apis.compiled_metrics(model, lambda x=x: (x, x))
        assert [metric.name for metric in plain] == ["accuracy", own.name]
        assert plain[1] is own
        assert [type(metric) for metric in weighted] == [keras.metrics.BinaryAccuracy]
    function = private_apis.wrapped_function(weighted[0])
    assert function is keras.metrics.binary_accuracy
    assert private_apis.wrapped_function(keras.metrics.AUC()) is None


@pytest.mark.parametrize(
    ("mode", "is_again"), [("full", True), ("activations", False), (None, False)]
)
def test_is_rematerialized(mode, is_again):
    with keras.RematScope(mode):
        layer = keras.layers.Dense(1, "relu")
    given = layer.rematerialized_call(layer.call)
    assert private_apis.is_rematerialized(layer, layer.call, given) == is_again


def test_around_control_flow():
    assert private_apis.current_graph() is None
    assert private_apis.around_control_flow(None) is None
    graphs, bodies = [], []

    def look(*given):
        bodies.append(private_apis.current_graph())
        return given

    @tf.function
    def function(x):
        graphs.append(private_apis.current_graph())
        tf.while_loop(lambda x: x < 3, lambda x: [look(x)[0] + 1], [x])
        return tf.cond(
            x > 0, lambda: tf.switch_case(x, [lambda: look(x)]), lambda: look(x)
        )

    function.get_concrete_function(tf.TensorSpec([], tf.int32))
    assert len(bodies) == 3
    for body in bodies:
        assert body is not graphs[0]
        assert private_apis.around_control_flow(body) is graphs[0]
        assert private_apis.around_control_flow(body, within=body) is body


def test_compiled_metrics_are_updated_by_a_function():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    private_apis.update_compiled_metrics_by(model, pytest.fail)
    model.compile(metrics=["mae"], run_eagerly=True)
    updates = []
    private_apis.update_compiled_metrics_by(model, lambda *given: updates.append(given))
    (compiled,) = (m for m in model.metrics if m.name == "compile_metrics")
    compiled.update_state(1.0, 2.0)
    assert updates == [(1.0, 2.0)]


@pytest.fixture
def attention():
    return keras.layers.MultiHeadAttention(
        2, 3, output_shape=5, flash_attention=True, use_gate=True
    )


def test_attention_options(attention):
    assert private_apis.attention_options(attention) == {
        "use_gate": True,
        "output_shape": (5,),
        "flash_attention": True,
    }


def test_options_of_projections(attention):
    options = private_apis.options_of_projections(attention)
    projection = keras.layers.EinsumDense("ab,bc->ac", 4, **options)
    assert projection(np.ones((1, 2))).shape == (1, 4)
    assert {"kernel_initializer", "bias_constraint", "dtype"} <= set(options)


def test_set_projection_and_build_attention(attention):
    class Parts(keras.layers.MultiHeadAttention):
        def build(self, query_shape, value_shape, key_shape=None):
            for name in ("query", "key", "value"):
                part = keras.layers.EinsumDense("abx,xyz->abyz", (None, 2, 3))
                private_apis.set_projection(self, name, part)
            private_apis.build_attention(self, 4)
            part = keras.layers.EinsumDense("abyz,yzA->abA", (None, 4))
            private_apis.set_projection(self, "output", part)

    layer = Parts(2, 3)
    x = np.ones((1, 5, 4), "float32")
    assert layer(x, x).shape == (1, 5, 4)
    assert layer.query_dense.built
    assert layer.output_dense.built
    assert private_apis.gate_projection(layer) is None


def test_gate_projection(attention):
    attention.build((None, 5, 4), (None, 5, 4))
    assert private_apis.gate_projection(attention) in attention._flatten_layers()


def test_variable_identity():
    one, other = tf.Variable(1.0, name="a"), tf.Variable(1.0, name="a")
    found = private_apis.variable_identity(one)
    assert found == private_apis.variable_identity(one)
    assert found != private_apis.variable_identity(other)


def apply_adam(variable):
    optimizer = keras.optimizers.Adam()
    optimizer.build([variable])
    optimizer.apply([tf.ones(3)])


def apply_fused_adam(variable):
    optimizer = tfbbb.optimizers.Adam()
    optimizer.build([variable])
    optimizer.apply([tf.ones(3)])


def compiled(assign):
    """Returns an assignment that runs in a graph, past Python."""

    def run(variable):
        tf.function(lambda: assign(variable), autograph=False)()

    return run


ASSIGNMENTS = {
    "keras": lambda v: v.assign([1.0, 2.0, 3.0]),
    "tensorflow": lambda v: v.value.assign([1.0, 2.0, 3.0]),
    "addition": lambda v: v.value.assign_add([1.0, 2.0, 3.0]),
    "slice": lambda v: v.value[1].assign(7.0),
    "scatter": lambda v: v.value.scatter_update(tf.IndexedSlices([7.0], [1])),
    "Adam": apply_adam,
    "fused Adam": apply_fused_adam,
}
ASSIGNMENTS |= {
    f"compiled {name}": compiled(ASSIGNMENTS[name])
    for name in ("keras", "addition", "slice", "scatter")
}


def read(variable):
    resource = variable.value
    return tf.raw_ops.ReadVariableOp(resource=resource.handle, dtype=resource.dtype)


@pytest.mark.parametrize("how", ASSIGNMENTS)
def test_version_changes_with_each_assignment(how):
    variable = keras.Variable(np.zeros(3, "float32"))
    kept = [read(variable)]
    values = [kept[0].numpy().copy()]
    for _ in range(3):
        ASSIGNMENTS[how](variable)
        kept.append(read(variable))
        values.append(kept[-1].numpy().copy())
    assert len({private_apis.version_read(value) for value in kept}) == 4
    np.testing.assert_array_equal(kept, values)


@pytest.mark.parametrize("dtype", ["bool", "float32", "int64"])
def test_version_of_a_scalar_is_its_value(dtype):
    variable = keras.Variable(0, dtype=dtype)
    kept = [read(variable) for _ in range(50)]
    assert {private_apis.version_read(value) for value in kept} == {0}
    variable.assign(1)
    assert private_apis.version_read(read(variable)) == 1


def test_version_stays_while_others_read():
    variable = keras.Variable(np.zeros(3, "float32"))
    kept = read(variable)
    tf.function(lambda: variable.value * 2.0)()
    variable.numpy()
    assert private_apis.version_read(read(variable)) == private_apis.version_read(kept)


def gradients_in_table():
    from tensorflow.python.framework import ops

    return {name for name in ops.gradient_registry.list() if "CustomGradient" in name}


def square_of_other_gradient(decorator):
    @decorator
    def square(x):
        return x**2, lambda upstream: upstream * 7.0 * x

    return square


def value_and_gradient(function, x):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return y.numpy(), tape.gradient(y, x).numpy()


def in_loop(function):
    return lambda x: tf.reduce_sum(tf.map_fn(function, tf.stack([x, x])))


@pytest.mark.parametrize("loop", [False, True])
def test_custom_gradient(loop):
    square = square_of_other_gradient(private_apis.custom_gradient)
    call = in_loop(square) if loop else lambda x: square(x) + square(x)
    gc.collect()
    before = gradients_in_table()
    function = tf.function(call)
    traced = weakref.ref(function.get_concrete_function(tf.TensorSpec([])).graph)
    gc.collect()
    assert value_and_gradient(function, 2.0) == (8.0, 28.0)
    added = gradients_in_table() - before
    assert added
    del function
    gc.collect()
    assert traced() is None
    assert not added & gradients_in_table()


def test_free_gradients_with():
    before = gradients_in_table()
    function = tf.function(in_loop(square_of_other_gradient(tf.custom_gradient)))
    graph = function.get_concrete_function(tf.TensorSpec([])).graph
    private_apis.free_gradients_with(graph)
    assert value_and_gradient(function, 2.0) == (8.0, 28.0)
    added = gradients_in_table() - before
    assert added
    del function, graph
    gc.collect()
    assert not added & gradients_in_table()


def test_a_custom_gradient_is_eager_too():
    square = square_of_other_gradient(private_apis.custom_gradient)
    assert value_and_gradient(square, 2.0) == (4.0, 14.0)


def test_dispatch_by_type():
    @private_apis.dispatch_by_type
    class Number:
        pass

    @tf.experimental.dispatch_for_api(tf.cast, {"x": Number})
    def cast(x, dtype, name=None):
        return "cast"

    assert tf.cast(Number(), tf.float32) == "cast"


def test_operation_definition():
    found = private_apis.operation_definition("Split")
    (result,) = found.output_arg
    assert (result.number_attr, result.type_attr) == ("num_split", "T")


def test_searched_attributes():
    normal = tfp.distributions.Normal(tf.Variable(1.0), 1.0)
    found = private_apis.searched_attributes(normal)
    assert normal.loc in [v for v in found.values() if isinstance(v, tf.Variable)]
    assert not set(found) & normal._TF_MODULE_IGNORED_PROPERTIES


def test_give_bernoulli_parameters():
    bernoulli = tfp.distributions.Bernoulli(logits=[0.0, 1.0])
    independent = tfp.distributions.Independent(bernoulli, 1)
    private_apis.give_bernoulli_parameters(independent, bernoulli)
    logits = tfp.distributions.Bernoulli.logits
    found = logits.fget(independent) if isinstance(logits, property) else independent
    assert getattr(found, "logits", found).numpy().tolist() == [0.0, 1.0]


def test_set_mean():
    normal = tfp.distributions.Normal(1.0, 1.0)
    private_apis.set_mean(normal, lambda: tf.constant(7.0))
    assert float(normal.mean()) == 7.0


def test_a_tensor_coercible_has_its_tensor_in_value():
    from tfbbb.lab.compat.tfp_layers.distribution_tensor import DistributionTensor

    normal = tfp.distributions.Normal(1.0, 1.0)
    tensor = DistributionTensor(normal, tf.constant(3.0))
    assert float(tf.convert_to_tensor(tensor)) == 3.0
    assert float(tfp.distributions.Normal(tensor, 1.0).mean()) == 3.0


def test_an_adopted_variable_is_the_variable():
    from tfbbb.lab.compat.tfp_layers.adopted_variable import AdoptedVariable

    variable = tf.Variable(2.0)
    adopted = AdoptedVariable(variable)
    adopted.assign(3.0)
    assert adopted.value is variable
    assert float(variable.numpy()) == 3.0
