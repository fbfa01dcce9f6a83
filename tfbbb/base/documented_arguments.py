"""The arguments of classes and functions in their docstrings."""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

# The sections that may follow the arguments.
_AFTER_ARGUMENTS = (
    r"\n(?=(?:Call arguments|Input shape|Output shape|Returns|Raises):\n)"
)
Described = TypeVar("Described", bound=Callable[..., Any])


def documented_arguments(docstring: str | None) -> dict[str, str]:
    """Returns the entries of the section `Args`, by the names of the arguments."""
    _, _, section = inspect.cleandoc(docstring or "").partition("\nArgs:\n")
    section = re.split(r"\n(?=\S)", section)[0].rstrip()
    entries = re.split(r"\n+(?=    \S)", f"\n{section}")[1:]
    return {entry.strip().partition(":")[0].lstrip("*"): entry for entry in entries}


def document_inherited_arguments(cls: Any) -> None:
    """Adds to a class's docstring the arguments that only its base classes describe.

    `help` then lists every argument of the constructor, in its order. An argument that
    the docstring describes itself keeps that description.
    """
    if cls.__dict__.get("__doc__"):
        bases = reversed(cls.__mro__[1:])
        entries = (documented_arguments(base.__doc__) for base in bases)
        document_arguments(cls, {name: e[name] for e in entries for name in e})


def document_arguments(described: Any, known: Mapping[str, str]) -> None:
    """Adds to the docstring of a class or function the known entries that it lacks."""
    docstring = inspect.cleandoc(described.__doc__)
    own = documented_arguments(docstring)
    names = list(inspect.signature(described).parameters)
    added = {name: known[name] for name in names if name in known}
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
        before, *after = re.split(_AFTER_ARGUMENTS, docstring, maxsplit=1)
    described.__doc__ = "\n\n".join([before.rstrip() + "\n" + section, *after])


def shared_arguments(docstring: str | None) -> Callable[[Described], Described]:
    """Returns a decorator that completes docstrings by one that several share.

    It adds the arguments that `docstring` describes, and the sections that follow them
    there.
    """
    known = documented_arguments(docstring)
    _, _, sections = inspect.cleandoc(docstring or "").partition("\nArgs:\n")
    _, *after = re.split(r"\n(?=\S)", sections, maxsplit=1)

    def complete(described: Described) -> Described:
        if described.__doc__:
            own = inspect.cleandoc(described.__doc__)
            described.__doc__ = "\n\n".join([own, *after])
            document_arguments(described, known)
        return described

    return complete
