"""The functions of an export as JSON, from which NumPy computes."""

import base64
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.core.framework.function_pb2 import FunctionDef
from tensorflow.core.framework.node_def_pb2 import NodeDef

from tfbbb.base.private_apis import operation_definition
from tfbbb.base.types import Json, Structure
from tfbbb.export.engine import NUMPY, tensorflow_engine
from tfbbb.export.exported_model import ExportedModel
from tfbbb.export.manifest import NUMPY_PATH, Manifest, NumpyInfo
from tfbbb.export.numpy_engine.functions import read_functions
from tfbbb.export.numpy_engine.operations import FLOW, OPERATIONS
from tfbbb.export.reader import signature_definitions

# Operations that call a function, whose operations stand in their place.
_CALLING = ("PartitionedCall", "StatefulPartitionedCall")
# Operations that return their inputs. A variable stands for its value.
_PASSING_ON = {
    *("EnsureShape", "Identity", "IdentityN", "PlaceholderWithDefault"),
    *("PreventGradient", "ReadVariableOp", "Snapshot", "StopGradient"),
}
_GATHER_OF_VARIABLE = "ResourceGather"
# Single precision, whose sums are taken in another order, has six digits.
_LARGEST_DIFFERENCE = 1e-4
# JSON is read at once, so larger weights are left to TensorFlow.
_MOST_BYTES = 1 << 26


class NeedsTensorFlowError(Exception):
    """NumPy cannot compute a function; the message says why, in a sentence."""


def write_numpy_functions(
    directory: Path, manifest: Manifest, root: tf.Module
) -> NumpyInfo:
    """Writes functions of a SavedModel for NumPy, if it computes the same answers."""
    wanted = ExportedModel(root, manifest, tensorflow_engine())
    wanted.predict(_some_rows(manifest))
    try:
        content = numpy_functions(root, signature_definitions(directory))
        given = ExportedModel(read_functions(content), manifest, NUMPY)
        # A GPU may multiply with ten bits of precision (TF32).
        with tf.device("CPU"):
            difference = max(_differences(given, wanted))
    except NeedsTensorFlowError as error:
        return NumpyInfo(missing=str(error))
    except Exception as error:
        # An operation with arguments that no layer gives it.
        reason = f"{type(error).__name__}: {error!s:.200}"
        return NumpyInfo(missing=f"NumPy fails to compute an answer: {reason}.")
    if not difference <= _LARGEST_DIFFERENCE:
        return NumpyInfo(
            missing="The answers of NumPy differ from those of TensorFlow by "
            f"{difference:.1g}."
        )
    (directory / NUMPY_PATH).write_bytes(content)
    return NumpyInfo(difference)


def numpy_functions(root: tf.Module, signatures: Mapping[str, Any]) -> bytes:
    """Returns the functions of an export as JSON: see `read_functions`."""
    variables = {id(variable.handle): variable for variable in root.read}
    sizes = (x.shape.num_elements() * x.dtype.size for x in variables.values())
    num_bytes = sum(sizes)
    if num_bytes > _MOST_BYTES:
        raise NeedsTensorFlowError(f"The weights have {num_bytes >> 20} MB.")
    writer = _Writer(variables)
    described: dict[str, Json] = {
        "methods": {name: writer.module(x) for name, x in root.methods.items()}
    }
    if hasattr(root, "familiarity"):
        described["familiarity"] = writer.module(root.familiarity)
    if writer.missing:
        names = ", ".join(sorted(writer.missing))
        raise NeedsTensorFlowError(f"NumPy lacks operations of the model: {names}.")
    return orjson.dumps(
        {
            "root": described,
            "graphs": writer.graphs,
            "arrays": writer.arrays,
            "signatures": signatures,
        }
    )


class _Writer:
    """Describes functions, what they call, and each array that they read, once.

    `missing` has the operations that NumPy has no counterpart of.
    """

    def __init__(self, variables: Mapping[int, tf.Variable]):
        # By the identity of their handles, which functions capture.
        self._variables = variables
        self._definitions: dict[str, FunctionDef] = {}
        self._numbers: dict[bytes, int] = {}
        self.graphs: dict[str, Json] = {}
        self.arrays: list[Json] = []
        self.missing: set[str] = set()

    def module(self, module: tf.Module) -> dict[str, Json]:
        """Returns the descriptions of the functions that are attributes."""
        concrete = tf.types.experimental.ConcreteFunction
        return {
            name: self.function(function)
            for name, function in sorted(vars(module).items())
            if isinstance(function, concrete)
        }

    def function(
        self, function: tf.types.experimental.ConcreteFunction
    ) -> dict[str, Json]:
        """Returns the description of a function that callers have by name."""
        signature = function.function_def.signature
        called = function.graph.as_graph_def().library.function
        for definition in (*called, function.function_def):
            self._definitions[definition.signature.name] = definition
        captured = [self._array(self._read(x)) for x in function.captured_inputs]
        self._write(signature.name)
        return {
            "graph": signature.name,
            "captured": captured,
            "structure": _structure(function.structured_outputs),
        }

    def _read(self, captured: tf.Tensor) -> np.ndarray:
        """Returns the value of a variable or constant that a function reads."""
        if captured.dtype != tf.resource:
            return captured.numpy()
        if id(captured) not in self._variables:
            raise NeedsTensorFlowError("The model reads objects such as lookup tables.")
        return self._variables[id(captured)].numpy()

    def _write(self, name: str) -> None:
        if name in self.graphs:
            return
        num_inputs = len(self._definitions[name].signature.input_arg)
        nodes: list[Json] = []
        outputs = self._append(name, list(range(num_inputs)), nodes, [num_inputs])
        self.graphs[name] = {"inputs": num_inputs, "nodes": nodes, "outputs": outputs}

    def _append(
        self, name: str, inputs: Sequence[int], nodes: list[Json], size: list[int]
    ) -> list[int]:
        """Appends the operations of a function; returns the places of its results."""
        definition = self._definitions[name]
        arguments = definition.signature.input_arg
        places = {x.name: n for x, n in zip(arguments, inputs, strict=True)}
        for node in _in_order(definition):
            sources = [places[read] for read in _reads(node)]
            names = list(_outputs(node))
            if node.op in _CALLING:
                found = self._append(node.attr["f"].func.name, sources, nodes, size)
            elif node.op in _PASSING_ON:
                found = sources
            else:
                found = list(range(size[0], size[0] + len(names)))
                size[0] += len(names)
                nodes.append(self._node(node, sources, len(names)))
            places |= zip(names, found, strict=True)
        results = definition.signature.output_arg
        return [places[definition.ret[x.name]] for x in results]

    def _node(self, node: NodeDef, sources: list[int], num_outputs: int) -> Json:
        if node.op == "Const":
            value = tf.make_ndarray(node.attr["value"].tensor)
            return ["Const", [], 1, {"array": self._array(value)}]
        operation = "GatherV2" if node.op == _GATHER_OF_VARIABLE else node.op
        attributes: dict[str, Json] = {}
        for name, value in node.attr.items():
            found = _attribute(value)
            if found is not None and not name.startswith("_"):
                attributes[name] = found
            if value.HasField("func"):
                self._write(value.func.name)
        if operation not in FLOW:
            try:
                OPERATIONS[operation](attributes)
            except (KeyError, ValueError):
                self.missing.add(operation)
        return [operation, sources, num_outputs, attributes]

    def _array(self, value: np.ndarray) -> int:
        """Returns the number of an array; equal ones have one."""
        value = np.asarray(value)
        content: Json
        if value.dtype == object:
            dtype = "object"
            content = [x.decode("utf-8", "surrogateescape") for x in value.ravel()]
        else:
            dtype = value.dtype.str
            content = base64.b64encode(value.tobytes()).decode()
        described: Json = [dtype, list(value.shape), content]
        digest = hashlib.sha256(orjson.dumps(described)).digest()
        if digest not in self._numbers:
            self._numbers[digest] = len(self.arrays)
            self.arrays.append(described)
        return self._numbers[digest]


def _in_order(definition: FunctionDef) -> list[NodeDef]:
    """Returns the operations behind the results, each after those that it reads."""
    left = {node.name: node for node in definition.node_def}
    ordered: list[NodeDef] = []
    waiting = [left[x] for ret in definition.ret.values() if (x := _owner(ret)) in left]
    while waiting:
        node = waiting[-1]
        before = [left[x] for read in _reads(node) if (x := _owner(read)) in left]
        if before:
            waiting += before
        elif left.pop(waiting.pop().name, None) is not None:
            ordered.append(node)
    return ordered


def _reads(node: NodeDef) -> list[str]:
    # Those with a caret only have to run before, such as checks.
    return [name for name in node.input if not name.startswith("^")]


def _owner(tensor: str) -> str:
    return tensor.partition(":")[0]


def _outputs(node: NodeDef) -> Iterator[str]:
    """Yields the names of an operation's outputs in its function."""
    for argument in operation_definition(node.op).output_arg:
        count = 1
        if argument.number_attr:
            count = node.attr[argument.number_attr].i
        elif argument.type_list_attr:
            count = len(node.attr[argument.type_list_attr].list.type)
        for index in range(count):
            yield f"{node.name}:{argument.name}:{index}"


def _attribute(value: AttrValue) -> Json:
    """Returns an attribute as JSON; None for one that no operation needs."""
    match value.WhichOneof("value"):
        case "b" | "i" | "f" as kind:
            number: Json = getattr(value, kind)
            return number
        case "s":
            return value.s.decode("latin-1")
        case "type":
            return _dtype(value.type)
        case "func":
            return value.func.name
        case "list" if value.list.i:
            return list(value.list.i)
    return None


def _dtype(number: int) -> str | None:
    """Returns NumPy's name of a data type; None for one that is no array."""
    dtype = tf.as_dtype(number)
    if dtype in (tf.resource, tf.variant):
        return None
    return "object" if dtype == tf.string else np.dtype(dtype.as_numpy_dtype).str


def _structure(value: Structure) -> Json:
    """Returns the structure of results, with `null` for each tensor."""
    if isinstance(value, Mapping):
        return {name: _structure(value[name]) for name in sorted(value)}
    if isinstance(value, list | tuple):
        return [_structure(part) for part in value]
    return None


def _differences(given: ExportedModel, wanted: ExportedModel) -> Iterator[float]:
    """Yields the largest differences of answers about some rows: see `NumpyInfo`."""
    manifest, rows = wanted.manifest, _some_rows(wanted.manifest)
    found, expected = given.predict(rows), wanted.predict(rows)
    of_classes = manifest.task == "classification"
    unit = 1.0 if of_classes else np.sqrt(expected["variance"])
    units = {"mean": unit, "mean_standard_error": unit, "familiarity": 1.0}
    for name, values in expected.items():
        yield _difference(found[name], values, units.get(name, unit**2))
    for method in manifest.passes:
        one, other = (x.predictive(rows, method=method) for x in (given, wanted))
        yield _difference(one.mean, other.mean, unit)
        yield _difference(one.variance, other.variance, unit**2)


def _some_rows(manifest: Manifest) -> dict[str, list[Any]]:
    """Returns three rows: of least, of greatest and of missing values."""
    rows: dict[str, list[Any]] = {}
    for feature in manifest.features:
        least = 0.0 if feature.role is None else 1.0
        values: list[Any] = [feature.low or least, feature.high or 1.0]
        nothing: Any = math.nan
        if feature.kind == "categorical":
            values, nothing = [(feature.categories or ("a",))[0], "?"], ""
        rows[feature.name] = [*values, nothing if feature.may_miss else values[0]]
    return rows


def _difference(found: np.ndarray, expected: np.ndarray, unit: Any) -> float:
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    with np.errstate(invalid="ignore"):
        return float(np.max(np.where(same, 0.0, np.abs(found - expected) / unit)))
