"""Equations of the pages as MathML, which browsers draw without a script or a style."""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

_LOGGER = logging.getLogger(__name__)
_NAME = r"<mi>[A-Za-z]{2,}</mi>"
_SPACE = '<mspace width="0.167em" />'
# What browsers draw otherwise than LaTeX: names such as log stand apart from letters,
# and bars do not stretch.
_REPLACEMENTS = {
    r"<mo>(&#x0(?:2016|007C);)</mo>": r'<mo stretchy="false">\1</mo>',
    r"<mo(?: movablelimits=\"true\")?>([A-Za-z]+)</mo>": r"<mi>\1</mi>",
    rf"({_NAME})(?!</|<mo)": rf"\1{_SPACE}",
    rf"(</m(?:i|n|frac|sub|sup|sqrt)>|29;</mo>)({_NAME})": rf"\1{_SPACE}\2",
}


def setup(app: Any) -> dict[str, bool]:
    """Registers the renderer of equations."""
    app.add_html_math_renderer("mathml", (_write, None), (_write, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def equation(latex: str, *, block: bool = False) -> str:
    """Returns an equation as MathML; a block scrolls in a box of its own."""
    latex = latex.strip().removeprefix("`").removesuffix("`")
    written = convert(latex, display="block" if block else "inline")
    # Unknown commands, and columns of unknown environments, stay as they are.
    if "\\" in written or "<mi>&</mi>" in written:
        raise ValueError(
            "latex2mathml does not know a command of this equation. Use `split` for "
            f"several lines and `\\operatorname` for names. Received: {latex}"
        )
    for pattern, replacement in _REPLACEMENTS.items():
        written = re.sub(pattern, replacement, written)
    return f'<div class="equation">{written}</div>' if block else written


def _write(translator: Any, node: nodes.Element) -> None:
    try:
        written = equation(node.astext(), block=isinstance(node, nodes.math_block))
        translator.body.append(written)
    except Exception as error:
        _LOGGER.warning("%s: %s", error, node.astext(), location=node)
    raise nodes.SkipNode
