"""Imports of libraries that only some functions need."""

from importlib import import_module
from types import ModuleType


def import_extra(extra: str, *names: str) -> list[ModuleType]:
    """Imports modules that an extra of the package brings.

    Args:
        extra: The extra, as in `pip install 'tfbbb[extra]'`.
        *names: Names of modules.

    Raises:
        ImportError: A module is not installed; the message says how to get it.
    """
    found = []
    for name in names:
        try:
            found.append(import_module(name))
        except ModuleNotFoundError as error:
            library = name.partition(".")[0]
            if (error.name or "").partition(".")[0] != library:
                raise
            raise ImportError(
                f"This needs {library}: `pip install 'tfbbb[{extra}]'`.", name=library
            ) from None
    return found
