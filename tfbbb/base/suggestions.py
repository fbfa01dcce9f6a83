"""Suggestions of the name that somebody meant."""

import difflib
import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, get_args

if TYPE_CHECKING:
    from pydantic import BaseModel

# Names that differ in a letter or two; others would mislead.
_CUTOFF = 0.75
# The most names that are compared, at 10 us each.
_MOST_COMPARED = 1000


def near_name(
    name: object, known: Iterable[object], cutoff: float = _CUTOFF
) -> str | None:
    """Returns the known name that is most like a name, or None.

    Of paths, such as `training.epochs`, the last parts are compared. If several have
    the same last part, the path with the fewest parts is returned.
    """
    by_last: dict[str, str] = {}
    some = itertools.islice((str(path) for path in known), _MOST_COMPARED)
    for path in sorted(some, key=lambda path: path.count(".")):
        # Names of columns may have dots, and spaces.
        for part in {path, path.rpartition(".")[2]}:
            by_last.setdefault(part.strip().lower(), path)
    plain = str(name)[:100].strip().lower()
    for asked in (plain, plain.rpartition(".")[2]):
        # A field's own parent is no other spelling of it.
        others = [x for x in by_last if not asked.startswith(f"{x}.")]
        if near := difflib.get_close_matches(asked, others, n=1, cutoff=cutoff):
            return by_last[near[0]]
    return None


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Returns a question to follow a sentence, or nothing."""
    near = near_name(name, known)
    return "" if near is None else f" Did you mean `{near}`?"


def field_paths(model: "type[BaseModel]") -> Iterator[str]:
    """Yields the paths of the fields of a model, and of the models in its fields."""
    for name, field in model.model_fields.items():
        yield name
        inner = dict.fromkeys(_models(field.annotation))
        # Of a field that names a family, the options of each family.
        for mark in field.metadata:
            inner |= dict.fromkeys(getattr(mark, "parts", {}).values())
        for path in dict.fromkeys(path for part in inner for path in field_paths(part)):
            yield f"{name}.{path}"


def _models(annotation: Any) -> "Iterator[type[BaseModel]]":
    # Without an import of pydantic, which most errors do not need.
    if hasattr(annotation, "model_fields"):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)
    for mark in getattr(annotation, "__metadata__", ()):
        yield from getattr(mark, "parts", {}).values()
