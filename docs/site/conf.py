"""The configuration of Sphinx; `docs/site/build.py` writes the pages that it reads."""

import itertools
import re

from sphinx.util import inspect

import tfbbb

project = "tfbbb"
version = release = tfbbb.__version__
extensions = [
    "docs.site.mathml",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
source_suffix = {".md": "markdown"}
# The slugs of headings are those of GitHub, where the same pages are read.
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
# "$70" in a text is no equation.
myst_dmath_allow_digits = myst_dmath_allow_space = False
html_math_renderer = "mathml"
smartquotes = False
nitpicky = False

html_theme = "furo"
html_title = "tfbbb"
html_static_path = ["static"]
templates_path = ["templates"]
html_css_files = ["site.css"]
html_js_files = [("frames.js", {"defer": "defer"})]
html_copy_source = False
html_domain_indices = False
html_show_sphinx = False
html_show_copyright = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

autodoc_default_options = {"members": True, "member-order": "bysource"}
# Methods that override one of Keras without a docstring are documented by Keras.
autodoc_inherit_docstrings = False
autodoc_class_signature = "mixed"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_custom_sections = [
    ("Input shape", "returns_style"),
    ("Output shape", "returns_style"),
    ("Call arguments", "params_style"),
]
napoleon_use_ivar = True
python_use_unqualified_type_names = True
maximum_signature_line_length = 80
# Docstrings are written in Markdown: text between backticks is code.
default_role = "code"


def _mark_equations(lines: list[str]) -> None:
    """Makes the indented paragraphs of a docstring, its equations, literal blocks.

    The content of a section such as `Args:` follows its header without a blank line.
    """
    marked, above = [], ""
    for before, line in itertools.pairwise(["", *lines]):
        # The axes of a shape, `[..., *shape]`, are no emphasis.
        line = re.sub(r"(?<=[\[ ])\*(?=[\w ()]+[\],])", r"\\*", line)
        if not before and line.startswith("    ") and above and above[0] != " ":
            marked += ["::", ""]
        marked.append(line)
        above = line or above
    lines[:] = marked


def _is_foreign(thing: object) -> bool:
    """Whether a method or property is that of a library, which documents it."""
    function = getattr(thing, "fget", thing)
    return not (getattr(function, "__module__", None) or "tfbbb").startswith("tfbbb")


def _init_signature(cls: type) -> str:
    signature = inspect.signature(cls.__init__, bound_method=True)
    return inspect.stringify_signature(signature, unqualified_typehints=True)


def setup(app):
    """Registers the conversion of docstrings, and what the reference leaves out."""
    app.connect(
        "autodoc-process-docstring",
        lambda app, what, name, thing, options, lines: _mark_equations(lines),
        priority=400,
    )
    # Sphinx writes a bound method's signature into its function, once per mention.
    app.connect(
        "autodoc-before-process-signature",
        lambda app, thing, bound_method: getattr(
            getattr(thing, "__func__", None), "__dict__", {}
        ).pop("__signature__", None),
        priority=600,
    )
    app.connect(
        "autodoc-process-signature",
        # Keras' layers have a `__new__` with other arguments.
        lambda app, what, name, thing, options, signature, returns: (
            (_init_signature(thing), None)
            if what == "class" and inspect.isfunction(thing.__init__)
            else None
        ),
    )
    app.connect(
        "autodoc-skip-member",
        lambda app, what, name, thing, skip, options: _is_foreign(thing) or None,
    )
