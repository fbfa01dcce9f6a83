"""Functions of arrays: TensorFlow's for tensors, NumPy's and SciPy's for the others.

What a likelihood says of its targets is written once with these functions. In a step of
training, in a graph and in a SavedModel they compute tensors; for outputs that are
drawn they compute arrays, also in programs without TensorFlow. Names and arguments are
those of TensorFlow.
"""

import functools
import importlib
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from tfbbb.base.lazy import np
from tfbbb.base.types import ArrayLike

newaxis = None


def is_tensor(value: object) -> bool:
    """Returns whether TensorFlow computes with a value, alone or in a list."""
    tensorflow = sys.modules.get("tensorflow")
    # TensorFlow's own check takes longer than many a function of small arrays.
    if tensorflow is None or isinstance(value, np.ndarray | float | int | str):
        return False
    if isinstance(value, list | tuple):
        return any(map(is_tensor, value))
    # Arrays and numbers, of which TensorFlow would make sure slowly.
    if type(value).__module__ in ("numpy", "builtins"):
        return False
    return (
        tensorflow.is_tensor(value)
        or isinstance(value, tensorflow.DType)
        # A variable of Keras.
        or hasattr(value, "__tf_tensor__")
    )


class _Function:
    """A function with an implementation in TensorFlow and one for arrays."""

    def __init__(self, of_tensors: str, of_arrays: str | Callable[..., Any]):
        self._of_tensors, self._of_arrays = of_tensors, of_arrays

    def __call__(self, *args: Any, **options: Any) -> Any:
        if any(map(is_tensor, (*args, *options.values()))):
            return _imported(self._of_tensors)(*args, **options)
        if isinstance(self._of_arrays, str):
            return _imported(self._of_arrays)(*args, **options)
        return self._of_arrays(*args, **options)


@functools.cache
def _imported(path: str) -> Callable[..., Any]:
    """Returns the function of a path: a package, and names within it."""
    package, *names = path.split(".")
    found: Any = importlib.import_module(package)
    for name in names:
        found = getattr(found, name)
    function: Callable[..., Any] = found
    return function


def _reduction(name: str) -> Callable[..., Any]:
    def reduce(
        values: ArrayLike,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
    ) -> Any:
        axes = tuple(axis) if isinstance(axis, list) else axis
        return getattr(np, name)(values, axis=axes, keepdims=keepdims)

    return reduce


def _cast(values: ArrayLike, dtype: Any) -> Any:
    return np.asarray(values, dtype)


def _split(values: ArrayLike, sizes: int | Sequence[int], axis: int = 0) -> Any:
    places = sizes if isinstance(sizes, int) else np.cumsum(sizes)[:-1]
    return np.split(values, places, axis=axis)


def _gather(
    values: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    batch_dims: int = 0,
) -> Any:
    values, indices = np.asarray(values), np.asarray(indices)
    axis = batch_dims if axis is None else axis
    if batch_dims == 0:
        return np.take(values, indices, axis=axis)
    wanted = indices.reshape(*indices.shape, *[1] * (values.ndim - indices.ndim))
    return np.take_along_axis(values, wanted, axis=axis)


def _divide_no_nan(numerator: ArrayLike, denominator: ArrayLike) -> Any:
    zero = np.equal(denominator, 0.0)
    quotient = np.asarray(numerator) / np.where(zero, 1.0, denominator)
    return np.where(zero, np.zeros_like(quotient), quotient)


def _concat(values: Sequence[ArrayLike], axis: int = 0) -> Any:
    # A shape is a tuple, and that of a number has no element to tell its type.
    shapes = [np.array(x, int) if isinstance(x, tuple) else x for x in values]
    return np.concatenate(shapes, axis=axis)


def _diag(values: ArrayLike) -> Any:
    return np.asarray(values)[..., np.newaxis] * np.eye(values.shape[-1])


def _diag_part(values: ArrayLike) -> Any:
    return np.diagonal(values, axis1=-2, axis2=-1)


def _ensure_shape(values: ArrayLike, shape: Sequence[int | None]) -> Any:
    return values


def _fill_triangular(values: ArrayLike) -> Any:
    """Returns lower triangular matrices, in the order of TensorFlow Probability."""
    number = values.shape[-1]
    size = int(math.sqrt(2 * number + 0.25))
    # Its rows wind from the last one to the first one and back.
    wound = np.concatenate([values[..., size:], values[..., ::-1]], axis=-1)
    return np.tril(wound.reshape(*values.shape[:-1], size, size))


def _matmul(first: ArrayLike, second: ArrayLike, transpose_b: bool = False) -> Any:
    return np.matmul(first, np.swapaxes(second, -1, -2) if transpose_b else second)


def _matrix_transpose(values: ArrayLike) -> Any:
    return np.swapaxes(values, -1, -2)


def _matvec(matrix: ArrayLike, vector: ArrayLike) -> Any:
    return np.matmul(matrix, np.asarray(vector)[..., np.newaxis])[..., 0]


def _pad(values: ArrayLike, paddings: Sequence[Sequence[int]]) -> Any:
    return np.pad(values, paddings)


def _relu(values: ArrayLike) -> Any:
    return np.maximum(values, 0.0)


def _set_diag(matrix: ArrayLike, diagonal: ArrayLike) -> Any:
    found = np.array(matrix)
    places = np.arange(found.shape[-1])
    found[..., places, places] = diagonal
    return found


def _shape(values: ArrayLike, dtype: Any = None) -> Any:
    return np.shape(values)


def _triangular_solve(matrix: ArrayLike, right: ArrayLike) -> Any:
    return np.linalg.solve(matrix, right)


def _softplus(values: ArrayLike) -> Any:
    values = np.asarray(values)
    return np.maximum(values, 0.0) + np.log1p(np.exp(-np.abs(values)))


def _log_softmax(values: ArrayLike, axis: int = -1) -> Any:
    # Of SciPy the default is the sum over all axes.
    return importlib.import_module("scipy.special").log_softmax(values, axis=axis)


def _logerfc(values: ArrayLike) -> Any:
    special = importlib.import_module("scipy.special")
    return special.log_ndtr(-math.sqrt(2.0) * np.asarray(values)) + math.log(2.0)


def _log_gamma_correction(x: ArrayLike) -> Any:
    """Returns the rest of Stirling's formula for log Gamma(x), for x of at least 8.

    Its series in 1/x (Abramowitz and Stegun 1964, 6.1.41) is exact in double precision.
    """
    inverse = 1.0 / np.asarray(x)
    square = np.square(inverse)
    coefficients = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
    series = np.zeros_like(square)
    for coefficient in reversed((*coefficients, 1 / 156)):
        series = series * square + coefficient
    return inverse * series


def _while_loop(
    condition: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Sequence[Any],
    **options: Any,
) -> Any:
    found = tuple(loop_vars)
    while condition(*found):
        found = tuple(body(*found))
    return found


def _broadcast_dynamic_shape(first: ArrayLike, second: ArrayLike) -> Any:
    return np.broadcast_shapes(tuple(first), tuple(second))


abs = _Function("tensorflow.abs", "numpy.abs")
argmax = _Function("tensorflow.argmax", "numpy.argmax")
betainc = _Function("tensorflow.math.betainc", "scipy.special.betainc")
betaincinv = _Function(
    "tensorflow_probability.math.betaincinv", "scipy.special.betaincinv"
)
broadcast_dynamic_shape = _Function(
    "tensorflow.broadcast_dynamic_shape", _broadcast_dynamic_shape
)
broadcast_to = _Function("tensorflow.broadcast_to", "numpy.broadcast_to")
cast = _Function("tensorflow.cast", _cast)
ceil = _Function("tensorflow.math.ceil", "numpy.ceil")
cholesky = _Function("tensorflow.linalg.cholesky", "numpy.linalg.cholesky")
clip_by_value = _Function("tensorflow.clip_by_value", "numpy.clip")
concat = _Function("tensorflow.concat", _concat)
constant = _Function("tensorflow.constant", _cast)
cumsum = _Function("tensorflow.cumsum", "numpy.cumsum")
diag = _Function("tensorflow.linalg.diag", _diag)
diag_part = _Function("tensorflow.linalg.diag_part", _diag_part)
divide_no_nan = _Function("tensorflow.math.divide_no_nan", _divide_no_nan)
ensure_shape = _Function("tensorflow.ensure_shape", _ensure_shape)
erfc = _Function("tensorflow.math.erfc", "scipy.special.erfc")
exp = _Function("tensorflow.exp", "numpy.exp")
expand_dims = _Function("tensorflow.expand_dims", "numpy.expand_dims")
expm1 = _Function("tensorflow.math.expm1", "numpy.expm1")
floor = _Function("tensorflow.floor", "numpy.floor")
fill_triangular = _Function(
    "tensorflow_probability.math.fill_triangular", _fill_triangular
)
gather = _Function("tensorflow.gather", _gather)
igamma = _Function("tensorflow.math.igamma", "scipy.special.gammainc")
igammainv = _Function(
    "tensorflow_probability.math.igammainv", "scipy.special.gammaincinv"
)
lbeta = _Function("tensorflow_probability.math.lbeta", "scipy.special.betaln")
lgamma = _Function("tensorflow.math.lgamma", "scipy.special.gammaln")
log = _Function("tensorflow.math.log", "numpy.log")
logerfc = _Function("tensorflow_probability.math.logerfc", _logerfc)
log1p = _Function("tensorflow.math.log1p", "numpy.log1p")
log_gamma_correction = _Function(
    "tensorflow_probability.math.log_gamma_correction", _log_gamma_correction
)
log_sigmoid = _Function("tensorflow.math.log_sigmoid", "scipy.special.log_expit")
log_softmax = _Function("tensorflow.nn.log_softmax", _log_softmax)
matmul = _Function("tensorflow.linalg.matmul", _matmul)
matrix_transpose = _Function("tensorflow.linalg.matrix_transpose", _matrix_transpose)
matvec = _Function("tensorflow.linalg.matvec", _matvec)
maximum = _Function("tensorflow.maximum", "numpy.maximum")
minimum = _Function("tensorflow.minimum", "numpy.minimum")
moveaxis = _Function("tensorflow.experimental.numpy.moveaxis", "numpy.moveaxis")
ndtri = _Function("tensorflow.math.ndtri", "scipy.special.ndtri")
ones_like = _Function("tensorflow.ones_like", "numpy.ones_like")
pad = _Function("tensorflow.pad", _pad)
range = _Function("tensorflow.range", "numpy.arange")
reduce_any = _Function("tensorflow.reduce_any", _reduction("any"))
reduce_logsumexp = _Function("tensorflow.reduce_logsumexp", "scipy.special.logsumexp")
reduce_max = _Function("tensorflow.reduce_max", _reduction("max"))
reduce_mean = _Function("tensorflow.reduce_mean", _reduction("mean"))
reduce_min = _Function("tensorflow.reduce_min", _reduction("min"))
reduce_sum = _Function("tensorflow.reduce_sum", _reduction("sum"))
relu = _Function("tensorflow.nn.relu", _relu)
reshape = _Function("tensorflow.reshape", "numpy.reshape")
set_diag = _Function("tensorflow.linalg.set_diag", _set_diag)
shape = _Function("tensorflow.shape", _shape)
sigmoid = _Function("tensorflow.sigmoid", "scipy.special.expit")
sign = _Function("tensorflow.sign", "numpy.sign")
softplus = _Function("tensorflow.nn.softplus", _softplus)
split = _Function("tensorflow.split", _split)
sqrt = _Function("tensorflow.sqrt", "numpy.sqrt")
square = _Function("tensorflow.square", "numpy.square")
stack = _Function("tensorflow.stack", "numpy.stack")
tile = _Function("tensorflow.tile", "numpy.tile")
triangular_solve = _Function("tensorflow.linalg.triangular_solve", _triangular_solve)
where = _Function("tensorflow.where", "numpy.where")
while_loop = _Function("tensorflow.while_loop", _while_loop)
xlog1py = _Function("tensorflow.math.xlog1py", "scipy.special.xlog1py")
xlogy = _Function("tensorflow.math.xlogy", "scipy.special.xlogy")
zeros_like = _Function("tensorflow.zeros_like", "numpy.zeros_like")
