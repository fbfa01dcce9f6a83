"""Imports of libraries that only some functions need."""

from importlib import import_module
from types import ModuleType


def import_extra(extra: str, *names: str) -> list[ModuleType]:
    """Imports modules that an extra of the package brings."""
    try:
        return [import_module(name) for name in names]
    except ModuleNotFoundError as error:
        library = (error.name or names[0]).partition(".")[0]
        raise ImportError(
            f"This needs {library}: `pip install 'tfbbb[{extra}]'`.", name=library
        ) from error
