"""Private names of libraries have one home; here is what the subtle ones mean."""

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
    # The methods of named tuples are public, and so is `os._exit`.
    public = {"_", "_replace", "_asdict", "_fields", "_exit"}
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


def test_private_names_in_use_are_defined_in_tfbbb():
    """Those of `self` in any module, and those of other objects in the same module."""
    trees = modules()
    own = {path: set(private_names_defined(tree)) for path, tree in trees.items()}
    of_all = set().union(*own.values())
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path, tree in trees.items()
        for owner, name, line in private_names_used(tree)
        if name not in (of_all if is_self(owner) else own[path])
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


# What functions rely on, where no test of their users would say what has changed.


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


def test_custom_gradient():
    square = square_of_other_gradient(private_apis.custom_gradient)
    before = gradients_in_table()
    function = tf.function(lambda x: square(x) + in_loop(square)(x))
    traced = weakref.ref(function.get_concrete_function(tf.TensorSpec([])).graph)
    gc.collect()
    assert value_and_gradient(function, 2.0) == (12.0, 42.0)
    added = gradients_in_table() - before
    assert added
    del function
    gc.collect()
    assert traced() is None
    assert not added & gradients_in_table()


def step_graphs():
    gc.collect()
    graphs = (o for o in gc.get_objects() if isinstance(o, tf.Graph))
    return sum(getattr(graph, "name", "") == "one_step_on_data" for graph in graphs)


def test_fits_leave_no_graphs_of_steps():
    x = np.arange(8.0)[:, np.newaxis]
    before = step_graphs()
    inputs = keras.Input((1,))
    model = tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(inputs))
    model.compile("adam")
    model.fit(x, x, verbose=0)
    del inputs, model
    assert step_graphs() == before


def test_gradients_freed_with_graphs():
    before = gradients_in_table()
    function = tf.function(in_loop(square_of_other_gradient(tf.custom_gradient)))
    with private_apis.gradients_freed_with_graphs():
        function.get_concrete_function(tf.TensorSpec([]))
    assert value_and_gradient(function, 2.0) == (8.0, 28.0)
    added = gradients_in_table() - before
    assert added
    del function
    gc.collect()
    assert not added & gradients_in_table()
