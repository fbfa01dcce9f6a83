"""Matrix products of which no row depends on the others, to the last bit.

BLAS adds the terms of a row in an order that depends on the number of rows and on the
place of the row among them. Among 8 rows, the order is the same at each place, by the
kernels of OpenBLAS for SkylakeX, Haswell, Sandybridge and Prescott; among 12 it is not.
"""

import functools
import math
from collections.abc import Callable

import numpy as np

_ROWS = 8


def row_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns a @ b, [..., n, m], of a [..., n, k] and b [..., k, m].

    Example:
    >>> row_product(np.ones((1, 2)), np.array([[3.0], [4.0]]))
    array([[7.]])
    """
    num_rows, num_columns = a.shape[-2], b.shape[-1]
    if num_columns == 1:  # The product with a vector takes rows in other numbers.
        b = np.concatenate([b, b], axis=-1)
    if missing := -num_rows % _ROWS:
        zeros = np.zeros((*a.shape[:-2], missing, a.shape[-1]), a.dtype)
        a = np.concatenate([a, zeros], axis=-2)
    blocks = a.reshape(*a.shape[:-2], a.shape[-2] // _ROWS, _ROWS, a.shape[-1])
    found = np.matmul(blocks, b[..., np.newaxis, :, :])
    found = found.reshape(*found.shape[:-3], a.shape[-2], b.shape[-1])
    return found[..., :num_rows, :num_columns]


def einsum(equation: str) -> Callable[..., np.ndarray]:
    """Returns `np.einsum` with an equation; of two arrays, by their `row_product`.

    Example:
    >>> einsum("ab,bc->ca")(np.array([[1, 2]]), np.array([[3, 4], [5, 6]]))
    array([[13],
           [16]])
    """
    given, _, out = equation.partition("->")
    names = given.split(",")
    if len(names) != 2 or "." in equation or any(len(set(x)) < len(x) for x in names):
        return functools.partial(np.einsum, equation)
    first, second = names
    summed = [x for x in first if x in second and x not in out]
    shared = [x for x in out if x in first and x in second]
    rows = [x for x in out if x in first and x not in second]
    columns = [x for x in out if x in second and x not in first]
    if len(shared + rows + summed) < len(first) or len(columns + summed) + len(
        shared
    ) < len(second):  # A name of one array alone is summed over.
        return functools.partial(np.einsum, equation)
    order = shared + rows + columns

    def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        sizes = dict(zip(first, a.shape, strict=True)) | dict(
            zip(second, b.shape, strict=True)
        )

        def arranged(x: np.ndarray, axes: str, *groups: list[str]) -> np.ndarray:
            turned = x.transpose([axes.index(name) for name in sum(groups, shared)])
            shape = [math.prod(sizes[name] for name in group) for group in groups]
            return turned.reshape(*(sizes[name] for name in shared), *shape)

        found = row_product(
            arranged(a, first, rows, summed), arranged(b, second, summed, columns)
        )
        found = found.reshape([sizes[name] for name in order])
        return found.transpose([order.index(name) for name in out])

    return product
