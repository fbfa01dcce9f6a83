"""Equations of the pages as MathML, which browsers draw without a script or a style."""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def setup(app: Any) -> dict[str, bool]:
    """Registers the renderer of equations."""
    app.add_html_math_renderer("mathml", (_write, None), (_write, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _write(translator: Any, node: nodes.Element) -> None:
    block = isinstance(node, nodes.math_block)
    equation = convert(node.astext(), display="block" if block else "inline")
    translator.body.append(equation)
    raise nodes.SkipNode
