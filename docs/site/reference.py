"""The pages of the API reference, which Sphinx fills from the docstrings."""

from pathlib import Path
from types import ModuleType

import tfbbb

# Their classes are documented with the methods of their bases.
_WITH_INHERITED = ("tfbbb", "tfbbb.sklearn")


def modules() -> dict[str, ModuleType]:
    """Returns the public modules of the package by the names that programs use."""
    found = {
        **{f"tfbbb.{name}": getattr(tfbbb, name) for name in dir(tfbbb)},
        **{f"tfbbb.lab.{name}": getattr(tfbbb.lab, name) for name in dir(tfbbb.lab)},
    }
    packages = {k: v for k, v in found.items() if isinstance(v, ModuleType)}
    return {"tfbbb": tfbbb} | packages


def reference(name: str, module: ModuleType) -> str:
    """Returns the reference page of a module; names of `tfbbb` have theirs there."""
    lines = [f".. automodule:: {module.__name__}"]
    if name in _WITH_INHERITED:
        lines.append("   :inherited-members:")
    elsewhere = sorted({*getattr(module, "__all__", ())} & {*tfbbb.__all__})
    note = ""
    if module is not tfbbb and elsewhere:
        lines.append(f"   :exclude-members: {', '.join(elsewhere)}")
        names = ", ".join(f"`{each}`" for each in elsewhere)
        note = f"{names}: see [`tfbbb`](tfbbb.md).\n\n"
    directive = "\n".join(lines)
    return f"# {name}\n\n{note}```{{eval-rst}}\n{directive}\n```\n"


def write_reference(folder: Path) -> None:
    """Writes a page for every public module, and their list."""
    folder.mkdir()
    found = modules()
    for name, module in found.items():
        (folder / f"{name}.md").write_text(reference(name, module))
    lines = "\n".join(found)
    (folder / "index.md").write_text(
        "# API reference\n\nThe public modules of the package, from their docstrings. "
        "A name that this reference lacks may change without notice."
        f"\n\n```{{toctree}}\n:maxdepth: 1\n\n{lines}\n```\n"
    )
