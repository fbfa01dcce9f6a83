"""The functions of a SavedModel, without graphs of Python objects.

`tf.saved_model.load` makes a Python object of every operation. Calls by `fast_call`
need none: TensorFlow's runtime has the functions by name.
"""

import itertools
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDef
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.core.framework.op_def_pb2 import OpDef
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
from tensorflow.core.protobuf.saved_object_graph_pb2 import (
    SavedConcreteFunction,
)
from tensorflow.core.protobuf.saved_object_graph_pb2 import (
    SavedObject as SavedNode,
)
from tensorflow.core.protobuf.struct_pb2 import StructuredValue
from tensorflow.core.protobuf.trackable_object_graph_pb2 import TrackableObjectGraph

from tfbbb.base.private_tensorflow import add_function, remove_function
from tfbbb.base.types import Structure
from tfbbb.prediction.compiled import fast_call

# Functions of two SavedModels may have the same name.
_loads = itertools.count()


class SavedObject:
    """An object of a SavedModel, whose children are attributes and items."""

    def __getitem__(self, name: str) -> Any:
        return vars(self)[name]


class SavedFunction:
    """A function of a SavedModel: what callers read of TensorFlow's concrete functions.

    Args:
        signature: Its `OpDef`.
        saved: Its `SavedConcreteFunction`.
        captured_inputs: The tensors that follow its arguments.
        library: What holds it, and the functions that it calls, in the runtime.
    """

    def __init__(
        self,
        signature: OpDef,
        saved: SavedConcreteFunction,
        captured_inputs: list[tf.Tensor],
        library: object,
    ) -> None:
        self.name = signature.name
        self.captured_inputs = captured_inputs
        num_arguments = len(signature.input_arg) - len(captured_inputs)
        self.inputs = [_spec(given) for given in signature.input_arg[:num_arguments]]
        self.outputs = [_spec(result) for result in signature.output_arg]
        arguments = saved.canonicalized_input_signature
        self.structured_input_signature = _structure(arguments)
        self.structured_outputs = _structure(saved.output_signature)
        self._library = library

    def __call__(self, *arguments: Structure) -> Structure:
        return fast_call(self)(*arguments)


def load_functions(directory: Path) -> Any:
    """Loads the functions of a SavedModel and the variables that they read.

    Args:
        directory: Directory of the SavedModel.

    Returns:
        Its root, whose objects and functions are attributes and whose `signatures` are
        a mapping. It is that of `tf.saved_model.load` if functions read other objects
        than variables and constants, such as lookup tables, or are not of one type of
        arguments each.
    """
    file = directory / "saved_model.pb"
    (graph,) = SavedModel.FromString(file.read_bytes()).meta_graphs
    nodes = graph.object_graph_def.nodes
    saved = graph.object_graph_def.concrete_functions
    read = {place for function in saved.values() for place in function.bound_inputs}
    kinds = {nodes[place].WhichOneof("kind") for place in read}
    is_polymorphic = any(node.WhichOneof("kind") == "function" for node in nodes)
    if is_polymorphic or not kinds <= {"variable", "constant"}:
        return tf.saved_model.load(str(directory))
    variables = _variables(directory, nodes, read)
    tensors = _constants(graph, read) | {
        place: variable.handle for place, variable in variables.items()
    }
    definitions = graph.graph_def.library.function
    signatures = {found.signature.name: found.signature for found in definitions}
    library = _Library(definitions, list(variables.values()))
    objects: dict[int, Any] = {}
    for place, node in enumerate(nodes):
        kind = node.WhichOneof("kind")
        if kind == "bare_concrete_function":
            name = node.bare_concrete_function.concrete_function_name
            captured = [tensors[bound] for bound in saved[name].bound_inputs]
            objects[place] = SavedFunction(
                signatures[name], saved[name], captured, library
            )
        elif kind == "user_object":
            is_mapping = node.user_object.identifier == "signature_map"
            objects[place] = {} if is_mapping else SavedObject()
    for place, found in objects.items():
        if not isinstance(found, SavedFunction):
            children = found if isinstance(found, dict) else vars(found)
            for child in nodes[place].children:
                if child.node_id in objects:
                    children[child.local_name] = objects[child.node_id]
    return objects[0]


class _Library:
    """The functions of one SavedModel, in TensorFlow's runtime as long as this lives.

    They get names that are unique in the runtime.
    """

    def __init__(
        self, definitions: Sequence[FunctionDef], variables: list[tf.Variable]
    ) -> None:
        self._variables = variables
        suffix = f"_{next(_loads)}"
        names = {
            definition.signature.name: definition.signature.name + suffix
            for definition in definitions
        }
        added: list[str] = []
        weakref.finalize(self, _remove, added).atexit = False
        for definition in definitions:
            definition.signature.name += suffix
            for node in definition.node_def:
                _rename_called(node, names)
            add_function(definition)
            added.append(definition.signature.name)


def _remove(names: list[str]) -> None:
    for name in names:
        remove_function(name)


def _rename_called(node: NodeDef, names: Mapping[str, str]) -> None:
    """Renames the functions that a node calls."""
    node.op = names.get(node.op, node.op)
    for value in node.attr.values():
        if value.HasField("func"):
            value.func.name = names.get(value.func.name, value.func.name)
        for function in value.list.func:
            function.name = names.get(function.name, function.name)


def _constants(graph: MetaGraphDef, read: Iterable[int]) -> dict[int, tf.Tensor]:
    """Returns the constants among the nodes that are read, by their places."""
    nodes = graph.object_graph_def.nodes
    operations = {node.name: node for node in graph.graph_def.node}
    return {
        place: tf.constant(
            tf.make_ndarray(
                operations[nodes[place].constant.operation].attr["value"].tensor
            )
        )
        for place in read
        if nodes[place].WhichOneof("kind") == "constant"
    }


def _variables(
    directory: Path, nodes: Sequence[SavedNode], read: Iterable[int]
) -> dict[int, tf.Variable]:
    """Returns the variables that are read, by their places."""
    places = [place for place in read if nodes[place].WhichOneof("kind") == "variable"]
    if not places:
        return {}
    reader = tf.train.load_checkpoint(str(directory / "variables" / "variables"))
    objects = TrackableObjectGraph.FromString(
        reader.get_tensor("_CHECKPOINTABLE_OBJECT_GRAPH")
    ).nodes
    # The checkpoint numbers the same objects in its own way.
    same, found = {0: 0}, [0]
    for place in found:
        children = {
            child.local_name: child.node_id for child in objects[same[place]].children
        }
        for child in nodes[place].children:
            if child.node_id not in same and child.local_name in children:
                same[child.node_id] = children[child.local_name]
                found.append(child.node_id)
    variables = {}
    for place in places:
        (attribute,) = objects[same[place]].attributes
        value = reader.get_tensor(attribute.checkpoint_key)
        dtype = nodes[place].variable.dtype
        variables[place] = tf.Variable(value, trainable=False, dtype=dtype)
    return variables


def _spec(argument: OpDef.ArgDef) -> tf.TensorSpec:
    """Returns the type of an argument or a result of a function."""
    return tf.TensorSpec(None, argument.type)


def _structure(value: StructuredValue) -> Structure | None:
    """Returns the structure that a `StructuredValue` of arguments or results has."""
    kind = value.WhichOneof("kind")
    if kind == "dict_value":
        fields = value.dict_value.fields
        return {name: _structure(field) for name, field in fields.items()}
    if kind in ("list_value", "tuple_value"):
        return [_structure(part) for part in getattr(value, kind).values]
    if kind == "none_value":
        return None
    if kind != "tensor_spec_value":
        raise ValueError(f"A function of the file takes or returns a {kind}.")
    spec = value.tensor_spec_value
    return tf.TensorSpec(tf.TensorShape(spec.shape), spec.dtype)
