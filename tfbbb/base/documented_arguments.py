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

    `help` then lists every argument of the constructor, in its order. An argument that
    the docstring describes itself keeps that description.
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
    names = list(inspect.signature(cls).parameters)
    added = {name: inherited[name] for name in names if name in inherited}
    if added.keys() <= own.keys():
        return
    entries = added | own

    def place(name: str) -> int:
        if entries[name].startswith("    **"):
            return len(names) + 1
        return names.index(name) if name in names else len(names)

    section = "\nArgs:\n" + "\n".join(entries[n] for n in sorted(entries, key=place))
    if own:
        before, _, rest = docstring.partition("\nArgs:\n")
        _, *after = re.split(r"\n+(?=\S)", rest, maxsplit=1)
    else:
        before, *after = re.split(r"\n(?=Raises:\n)", docstring, maxsplit=1)
    cls.__doc__ = "\n\n".join([before.rstrip() + "\n" + section, *after])
