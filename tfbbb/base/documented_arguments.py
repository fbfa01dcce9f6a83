"""The arguments of a constructor in the docstring of its class."""

import inspect
import re
from typing import Any


def documented_arguments(docstring: str | None) -> dict[str, str]:
    """Returns the entries of the section `Args`, by the names of the arguments.

    Example:

    >>> documented_arguments(documented_arguments.__doc__)
    {'docstring': '    docstring: The docstring of a class or a function.'}

    Args:
        docstring: The docstring of a class or a function.
    """
    _, _, section = inspect.cleandoc(docstring or "").partition("\nArgs:\n")
    section = re.split(r"\n(?=\S)", section)[0].rstrip()
    entries = re.split(r"\n+(?=    \S)", f"\n{section}")[1:]
    return {entry.strip().partition(":")[0].lstrip("*"): entry for entry in entries}


def document_inherited_arguments(cls: Any) -> None:
    """Adds to a class's docstring the arguments that only its base classes describe.

    `help` then lists every argument of the constructor. An argument that the docstring
    describes itself keeps that description.
    """
    if not cls.__dict__.get("__doc__"):
        return
    docstring = inspect.cleandoc(cls.__doc__)
    own = documented_arguments(docstring)
    inherited = {
        name: entry
        for base in reversed(cls.__mro__[1:])
        for name, entry in documented_arguments(base.__doc__).items()
    }
    added = [
        inherited[name]
        for name in inspect.signature(cls).parameters
        if name in inherited and name not in own
    ]
    if not added:
        return
    options = [entry for entry in own.values() if entry.startswith("    **")]
    described = [entry for entry in own.values() if entry not in options]
    section = "\nArgs:\n" + "\n".join([*described, *added, *options])
    if own:
        before, _, rest = docstring.partition("\nArgs:\n")
        _, *after = re.split(r"\n+(?=\S)", rest, maxsplit=1)
    else:
        before, *after = re.split(r"\n(?=Raises:\n)", docstring, maxsplit=1)
    cls.__doc__ = "\n\n".join([before.rstrip() + "\n" + section, *after])
