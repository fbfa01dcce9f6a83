"""Functions that are compiled once and called without Python's checks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tfbbb.base import array_ops as ops
from tfbbb.base.lazy import tf
from tfbbb.base.nested import leaves, map_leaves
from tfbbb.base.types import ArrayLike, Structure, Tensor

# Whose comparison with some thousand others takes some MB.
ROWS_AT_A_TIME = 1024
# A trace takes as long as so many small calls of a function op by op take longer than
# compiled ones, and so do the numbers of a large call.
_CALLS_OP_BY_OP, _NUMBERS_OF_CALL = 15, 2_000_000


def traced(
    function: Callable[..., Structure | None], *specs: Structure
) -> tf.types.experimental.ConcreteFunction:
    """Returns the concrete function of one structure of arguments."""
    wrapped = tf.function(function, input_signature=specs, autograph=False)
    return wrapped.get_concrete_function()


def fast_call(concrete: tf.types.experimental.ConcreteFunction) -> Callable[..., Any]:
    """Returns a function that runs a concrete function, without checks of arguments.

    Binding and checking the arguments costs a concrete function more than computing a
    small network does; the op beneath it takes tensors by position.
    """
    captured = list(concrete.captured_inputs)
    pack = _packing(concrete.structured_outputs)
    dtypes = [tensor.dtype for tensor in concrete.outputs]

    def call(*arguments: Structure) -> Structure:
        results = tf.raw_ops.StatefulPartitionedCall(
            args=tf.nest.flatten(arguments) + captured, Tout=dtypes, f=concrete
        )
        return pack(iter(results))

    return call


def compiled_if_repeated(
    function: Callable[..., Structure],
    trace: Callable[[], tf.types.experimental.ConcreteFunction],
    numbers: Callable[..., float] = lambda *arguments: 0.0,
) -> Callable[..., Any]:
    """Returns a function that runs op by op until a trace would have paid.

    Most are called a few times. `numbers` says how many numbers a call computes.
    """
    compiled = functools.cache(lambda: fast_call(trace()))
    work = 0.0

    def call(*arguments: Structure) -> Structure:
        nonlocal work
        if work <= _CALLS_OP_BY_OP:
            work += 1.0 + numbers(*arguments) / _NUMBERS_OF_CALL
        return (function if work <= _CALLS_OP_BY_OP else compiled())(*arguments)

    return call


def in_parts(
    function: Callable[[Structure], Structure],
    rows: Structure,
    most: int = ROWS_AT_A_TIME,
    each: Callable[..., Iterable[Structure]] = map,
) -> Structure:
    """Applies a compiled function to some rows at a time, in bounded memory."""
    num_rows = len(leaves(rows)[0])
    if num_rows <= most:
        return function(rows)

    def of_part(first: int) -> Structure:
        part = slice(first, first + most)
        return function(map_leaves(lambda x: x[part], rows))

    return joined(*each(of_part, range(0, num_rows, most)))


def joined(*parts: Structure) -> Structure:
    """Returns tensors of parts of the rows as those of all rows.

    Numbers without an axis of rows are the same for all rows.
    """

    def join(*values: Tensor) -> Tensor:
        if not len(values[0].shape):
            return values[0]
        return ops.concat(values, 0)

    return map_leaves(join, *parts)


def _packing(structure: Structure) -> Callable[[Iterator[tf.Tensor]], Structure]:
    """Returns a fast function that packs tensors, in order, into a structure."""
    if isinstance(structure, dict):
        parts = {name: _packing(structure[name]) for name in sorted(structure)}
        return lambda tensors: {name: pack(tensors) for name, pack in parts.items()}
    if isinstance(structure, list | tuple):
        packs = [_packing(part) for part in structure]
        return lambda tensors: [pack(tensors) for pack in packs]
    return next


def to_specs(values: ArrayLike) -> Structure:
    """Returns the `tf.TensorSpec`s of a structure of tensors or of their specs."""
    return tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), values)
