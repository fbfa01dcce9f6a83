"""Operations of TensorFlow that its converter to ONNX converts not at all, or wrong."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tfbbb.base.extras import import_extra

if TYPE_CHECKING:
    import onnx
    from tf2onnx.graph import Graph, Node  # type: ignore[import-untyped]

# The first version of ONNX whose `Equal` takes texts, and its file format.
_OPSET_OF_TEXTS, _FORMAT_OF_TEXTS = 19, 9


def convert_xlogy(graph: "Graph", node: "Node", name: str, arguments: object) -> None:
    """Converts `x log(y)`, which is 0 where x and y are 0."""
    x, y = node.input
    # The least normal number of single precision.
    least = _constant(graph, float(np.finfo(np.float32).tiny), like=y)
    positive = graph.make_node("Max", [y, least])
    logarithm = graph.make_node("Log", positive.output)
    node.type = "Mul"
    graph.replace_inputs(node, [x, logarithm.output[0]])


def convert_equal(graph: "Graph", node: "Node", name: str, arguments: object) -> None:
    """Converts `x = y` and `x != y`, also of texts."""
    onnx, logical = import_extra("onnx", "onnx", "tf2onnx.onnx_opset.logical")
    if graph.get_dtype(node.input[0]) != onnx.TensorProto.STRING:
        logical.Equal.version_11(graph, node)
    elif node.type == "NotEqual":
        node.type = "Equal"
        output = node.output[0]
        negated = graph.insert_new_node_on_output("Not", output, name=f"{name}_not")
        graph.copy_shape(output, negated.output[0])
        graph.copy_dtype(output, negated.output[0])


def convert_softplus(
    graph: "Graph", node: "Node", name: str, arguments: object
) -> None:
    """Converts `log(1 + e^x) = max(x, 0) + log(1 + e^-|x|)`.

    ONNX Runtime has its own Softplus in single precision alone.
    """
    (x,) = node.input
    zero, one = (_constant(graph, value, like=x) for value in (0.0, 1.0))
    magnitude = graph.make_node("Abs", [x])
    power = graph.make_node("Exp", graph.make_node("Neg", magnitude.output).output)
    sum_ = graph.make_node("Add", [one, power.output[0]])
    logarithm = graph.make_node("Log", sum_.output)
    positive = graph.make_node("Max", [x, zero])
    node.type = "Add"
    graph.replace_inputs(node, [positive.output[0], logarithm.output[0]])


def convert_expm1(graph: "Graph", node: "Node", name: str, arguments: object) -> None:
    """Converts `e^x - 1 = tanh(x / 2) (e^x + 1)`, without cancellation."""
    (x,) = node.input
    half = graph.make_node("Mul", [x, _constant(graph, 0.5, like=x)])
    tangent = graph.make_node("Tanh", half.output)
    power = graph.make_node("Exp", [x])
    sum_ = graph.make_node("Add", [power.output[0], _constant(graph, 1.0, like=x)])
    node.type = "Mul"
    graph.replace_inputs(node, [tangent.output[0], sum_.output[0]])


def convert_log1p(graph: "Graph", node: "Node", name: str, arguments: object) -> None:
    """Converts `log(1 + x) = log(u) x / (u - 1)` for the rounded u = 1 + x.

    Where u is 1 it is x. The rounding errors of u cancel (Goldberg 1991, theorem 4).
    """
    (x,) = node.input
    one = _constant(graph, 1.0, like=x)
    sum_ = graph.make_node("Add", [x, one]).output[0]
    logarithm = graph.make_node("Log", [sum_]).output[0]
    rounded = graph.make_node("Sub", [sum_, one]).output[0]
    correction = graph.make_node("Div", [x, rounded]).output[0]
    product = graph.make_node("Mul", [logarithm, correction]).output[0]
    is_one = graph.make_node("Equal", [sum_, one]).output[0]
    node.type = "Where"
    graph.replace_inputs(node, [is_one, x, product])


def _constant(graph: "Graph", value: float, like: str) -> str:
    """Returns the name of a scalar of the type of another tensor."""
    helper, utils = import_extra("onnx", "onnx.helper", "tf2onnx.utils")
    dtype = helper.tensor_dtype_to_np_dtype(graph.get_dtype(like))
    constant = graph.make_const(utils.make_name("constant"), np.array(value, dtype))
    name: str = constant.output[0]
    return name


# As `tf2onnx.convert.from_function` takes them.
HANDLERS: dict[str, tuple[Callable[..., None], list[object]]] = {
    "Xlogy": (convert_xlogy, []),
    "Softplus": (convert_softplus, []),
    "Expm1": (convert_expm1, []),
    "Log1p": (convert_log1p, []),
    "Equal": (convert_equal, []),
    "NotEqual": (convert_equal, []),
}


def allow_texts(proto: "onnx.ModelProto") -> None:
    """Declares the version of ONNX whose `Equal` takes texts."""
    for opset in proto.opset_import:
        if opset.domain in ("", "ai.onnx"):
            opset.version = _OPSET_OF_TEXTS
    proto.ir_version = max(proto.ir_version, _FORMAT_OF_TEXTS)
