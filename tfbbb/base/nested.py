"""Nested structures of arrays, as TensorFlow flattens them, without TensorFlow."""

from collections.abc import Callable
from typing import Any

from tfbbb.base.types import Structure


def leaves(structure: Structure) -> list[Any]:
    """Returns the leaves of dictionaries, in the order of their keys, and of lists."""
    if isinstance(structure, dict):
        return [leaf for name in sorted(structure) for leaf in leaves(structure[name])]
    if isinstance(structure, list | tuple):
        return [leaf for part in structure for leaf in leaves(part)]
    return [structure]


def map_leaves(function: Callable[..., Any], *structures: Structure) -> Any:
    """Returns a structure of the results for the leaves of equal structures."""
    first = structures[0]
    if isinstance(first, dict):
        if any(not isinstance(x, dict) or x.keys() != first.keys() for x in structures):
            raise _differ(structures)
        return {
            name: map_leaves(function, *(x[name] for x in structures)) for name in first
        }
    if isinstance(first, list | tuple):
        if any(
            not isinstance(x, list | tuple) or len(x) != len(first) for x in structures
        ):
            raise _differ(structures)
        parts = [map_leaves(function, *x) for x in zip(*structures, strict=True)]
        if hasattr(first, "_fields"):
            return type(first)(*parts)
        return type(first)(parts)
    return function(*structures)


def _differ(structures: tuple[Structure, ...]) -> ValueError:
    kinds = [
        f"keys {sorted(x)}"
        if isinstance(x, dict)
        else f"{type(x).__name__} of {len(x)}"
        if isinstance(x, list | tuple)
        else type(x).__name__
        for x in structures
    ]
    return ValueError(f"The structures differ. Received: {', '.join(kinds)}")
