"""The digest of the code that a task runs."""

import contextlib
import functools
import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def code_digest(function: Callable[..., Any]) -> str:
    """Returns a digest that changes with the code of a function.

    It covers the function with what it refers to in its own module, all Python files of
    the package that defines it, and those of `tfbbb`. Of other libraries it knows
    nothing. A comment counts as a change: better one run too many than an old result.

    Args:
        function: A function, method, `functools.partial` or other callable.

    Example:

    >>> code_digest(lambda x: x + 1) == code_digest(lambda x: x + 2)
    False
    """
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, MethodType):
        function = function.__func__
    if not isinstance(function, FunctionType | type) and not hasattr(
        function, "__qualname__"
    ):
        function = type(function)
    digest = hashlib.sha256(_package_digest("tfbbb").encode())
    name = _module_name(getattr(function, "__module__", None))
    digest.update(_package_digest(name.partition(".")[0]).encode())
    for part in _parts(function, set()):
        digest.update(repr(part).encode())
    return digest.hexdigest()


def _module_name(name: str | None) -> str:
    """Returns the name of a module, also of one that runs as a script."""
    spec = getattr(sys.modules.get(name or ""), "__spec__", None)
    return str(spec.name) if spec is not None else name or ""


def _package_digest(name: str) -> str:
    """Returns the digest of all Python files of a package or of a module."""
    module = sys.modules.get(name)
    if not isinstance(module, ModuleType):
        return ""
    places = getattr(module, "__path__", None) or [getattr(module, "__file__", None)]
    return _files_digest(*sorted({str(place) for place in places if place}))


@functools.cache
def _files_digest(*places: str) -> str:
    digest = hashlib.sha256()
    for place in map(Path, places):
        files = [place] if place.is_file() else sorted(place.rglob("*.py"))
        for file in files:
            digest.update(str(file.relative_to(place)).encode() + b"\0")
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _parts(function: Any, seen: set[int]) -> Iterator[Any]:
    """Yields the code of a function and what it refers to in its module."""
    if id(function) in seen:
        return
    seen.add(id(function))
    yield getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if isinstance(function, type):
        for value in vars(function).values():
            if isinstance(value, FunctionType):
                yield from _parts(value, seen)
    if not isinstance(function, FunctionType):
        return
    cells = []
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # It is empty.
            cells.append(cell.cell_contents)
    defaults = [
        *(function.__defaults__ or ()),
        *(function.__kwdefaults__ or {}).values(),
    ]
    names = []
    for code in _codes(function.__code__):
        yield code.co_code, code.co_names, code.co_varnames, _constants(code)
        names += [name for name in code.co_names if name in function.__globals__]
    for name in dict.fromkeys(names):
        cells.append(function.__globals__[name])
    for value in (*defaults, *cells):
        if isinstance(value, _PLAIN):
            yield value
        elif getattr(value, "__module__", None) == function.__module__:
            yield from _parts(value, seen)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yields a code object and those of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _constants(code: CodeType) -> list[str]:
    """Returns the constants of a code object as texts, alike in every process."""
    return [
        # The order of a set of texts differs from process to process.
        repr(sorted(map(repr, constant)))
        if isinstance(constant, frozenset)
        else repr(constant)
        for constant in code.co_consts
        if not isinstance(constant, CodeType)
    ]
