"""What a SavedModel holds: the definitions of its functions, and what they read."""

from collections.abc import Callable, Container, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf import json_format  # type: ignore[import-untyped]
from tensorflow.core.framework.op_def_pb2 import OpDef
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
from tensorflow.core.protobuf.saved_object_graph_pb2 import (
    SavedConcreteFunction,
)
from tensorflow.core.protobuf.saved_object_graph_pb2 import (
    SavedObject as SavedNode,
)
from tensorflow.core.protobuf.trackable_object_graph_pb2 import TrackableObjectGraph


class SavedFile:
    """What a SavedModel holds.

    `is_simple` says whether functions read `variables` and `constants` alone, which are
    known by their places, and are of one type of arguments each.
    """

    def __init__(self, directory: Path | str):
        with tf.io.gfile.GFile(f"{directory}/saved_model.pb", "rb") as file:
            (graph,) = SavedModel.FromString(file.read()).meta_graphs
        self._graph = graph
        self._nodes = graph.object_graph_def.nodes
        self._saved = graph.object_graph_def.concrete_functions
        self.definitions = graph.graph_def.library.function
        self._signatures = {x.signature.name: x.signature for x in self.definitions}
        # Others are called by these, which hand them what they capture.
        named = [
            node.bare_concrete_function.concrete_function_name
            for node in self._nodes
            if node.WhichOneof("kind") == "bare_concrete_function"
        ]
        read = {place for name in named for place in self._saved[name].bound_inputs}
        kinds = {self._nodes[place].WhichOneof("kind") for place in read}
        is_polymorphic = any(x.WhichOneof("kind") == "function" for x in self._nodes)
        self.is_simple = not is_polymorphic and kinds <= {"variable", "constant"}
        if self.is_simple:
            self.variables = _variables(directory, self._nodes, read)
            self.constants = _constants(graph, read)

    def signature_definitions(self) -> dict[str, Any]:
        """Returns the `SignatureDef` of each signature, as JSON values."""
        return {
            name: json_format.MessageToDict(
                signature,
                preserving_proto_field_name=True,
                always_print_fields_with_no_presence=True,
            )
            for name, signature in self._graph.signature_def.items()
            if not name.startswith("__")
        }

    def read(self, place: int) -> np.ndarray:
        """Returns the value of a variable or constant by its place."""
        values = self.variables if place in self.variables else self.constants
        return values[place]

    def tree(
        self,
        function: Callable[[OpDef, SavedConcreteFunction], Any],
        leave_out: Container[str] = (),
    ) -> dict[str, Any]:
        """Returns the objects and functions of the root by name, nested."""
        found: dict[str, Any] = self._described(0, function, leave_out, {})
        return found

    def _described(
        self,
        place: int,
        function: Callable[[OpDef, SavedConcreteFunction], Any],
        leave_out: Container[str],
        made: dict[int, Any],
    ) -> Any:
        """Returns an object or function; None for a variable or constant."""
        node = self._nodes[place]
        kind = node.WhichOneof("kind")
        if kind == "bare_concrete_function":
            name = node.bare_concrete_function.concrete_function_name
            return function(self._signatures[name], self._saved[name])
        if kind != "user_object":
            return None
        found = made[place] = dict[str, Any]()
        for child in node.children:
            if child.local_name in leave_out:
                continue
            if child.node_id not in made:
                # Attributes of other objects have other names.
                given = child.node_id, function, (), made
                made[child.node_id] = self._described(*given)
            if made[child.node_id] is not None:
                found[child.local_name] = made[child.node_id]
        return found


def _constants(graph: MetaGraphDef, read: Iterable[int]) -> dict[int, np.ndarray]:
    """Returns the constants among the nodes that are read, by their places."""
    nodes = graph.object_graph_def.nodes
    operations = {node.name: node for node in graph.graph_def.node}
    return {
        place: tf.make_ndarray(
            operations[nodes[place].constant.operation].attr["value"].tensor
        )
        for place in read
        if nodes[place].WhichOneof("kind") == "constant"
    }


def _variables(
    directory: Path | str, nodes: Sequence[SavedNode], read: Iterable[int]
) -> dict[int, np.ndarray]:
    """Returns the values of the variables that are read, by their places."""
    places = [place for place in read if nodes[place].WhichOneof("kind") == "variable"]
    if not places:
        return {}
    reader = tf.compat.v1.train.NewCheckpointReader(f"{directory}/variables/variables")
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
    values = {}
    for place in places:
        (attribute,) = objects[same[place]].attributes
        values[place] = reader.get_tensor(attribute.checkpoint_key)
    return values
