"""TensorFlow's operations on NumPy arrays, in the words of its graphs.

`OPERATIONS` maps the name of an operation to a function that takes its attributes and
returns how it is computed: a function of arrays, which returns an array, or a tuple
where the operation has several outputs. The results are TensorFlow's but for rounding.
"""

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfbbb.export.numpy_engine import philox
from tfbbb.export.numpy_engine.products import einsum, row_product

Attributes = dict[str, Any]
Operation = Callable[..., Any]


@dataclass(frozen=True)
class Arranged:
    """An operation on an array, whose further arguments say how: axes, shapes, places.

    `arrange` takes these and returns the operation: once, if they are constants.
    """

    arrange: Callable[..., Operation]

    def __call__(self, x: np.ndarray, *arguments: np.ndarray) -> Any:
        return self.arrange(*arguments)(x)


def _arranged(arrange: Callable[..., Operation]) -> Callable[[Attributes], Operation]:
    """Returns an `Arranged` operation without attributes."""
    return _always(Arranged(arrange))


def _always(operation: Operation) -> Callable[[Attributes], Operation]:
    """Returns an operation without attributes."""
    return lambda attributes: operation


def _special(name: str) -> Callable[[Attributes], Operation]:
    """Returns a special function of SciPy, which is imported by its first call.

    Most predictions need none of them, and SciPy takes 10 MB.
    """

    def function(*arguments: np.ndarray) -> np.ndarray:
        from scipy import special

        found: np.ndarray = getattr(special, name)(*arguments)
        return found

    return _always(function)


def _reduction(
    ufunc: np.ufunc, is_mean: bool = False
) -> Callable[[Attributes], Operation]:
    """Returns a reduction over axes, which NumPy's functions take longer for."""

    def with_attributes(attributes: Attributes) -> Operation:
        keep = attributes.get("keep_dims", False)

        def along(axes: np.ndarray) -> Operation:
            over = tuple(axes.ravel().tolist())

            def reduced(x: np.ndarray) -> np.ndarray:
                found: np.ndarray = ufunc.reduce(x, over, x.dtype, keepdims=keep)
                if not is_mean:
                    return found
                number = math.prod([x.shape[axis] for axis in over])
                return found / x.dtype.type(number)

            return reduced

        return Arranged(along)

    return with_attributes


def _cast(attributes: Attributes) -> Operation:
    dtype = np.dtype(attributes["DstT"])
    return lambda x: np.asarray(x).astype(dtype, copy=False)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    # An exponential that overflows gives 0.
    power = np.exp(-x)
    power += 1
    return np.reciprocal(power)


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _elu(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def _selu(x: np.ndarray) -> np.ndarray:
    scale, alpha = x.dtype.type(1.0507009873554805), x.dtype.type(1.6732632423543772)
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _log_softmax(x: np.ndarray) -> np.ndarray:
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def _softmax(x: np.ndarray) -> np.ndarray:
    power = x - x.max(axis=-1, keepdims=True)
    np.exp(power, out=power)
    power /= power.sum(axis=-1, keepdims=True)
    return power


def _divide_no_nan(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(y == 0, np.zeros_like(y), np.divide(x, np.where(y == 0, 1, y)))


def _xlogy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(x == 0, np.zeros_like(x), x * np.log(np.where(x == 0, 1, y)))


def _matmul(first: str, second: str) -> Callable[[Attributes], Operation]:
    def with_attributes(attributes: Attributes) -> Operation:
        turned = attributes.get(first, False), attributes.get(second, False)

        def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            a = np.swapaxes(a, -1, -2) if turned[0] else a
            b = np.swapaxes(b, -1, -2) if turned[1] else b
            return row_product(a, b)

        return product

    return with_attributes


def _gather(attributes: Attributes) -> Operation:
    batch = attributes.get("batch_dims", 0)

    def gathered(x: np.ndarray, indices: np.ndarray, axis: Any = 0) -> np.ndarray:
        place = int(axis)
        if not batch:
            # NumPy would count negative ones from the end.
            if indices.size and indices.min() < 0:
                raise IndexError(f"index {indices.min()} is out of bounds")
            return np.take(x, indices, axis=place)
        moved = np.moveaxis(x, place, batch)
        flat = moved.reshape(-1, *moved.shape[batch:])
        rows = np.arange(len(flat))[:, np.newaxis]
        found = flat[rows, indices.reshape(len(flat), -1)]
        found = found.reshape(*indices.shape, *flat.shape[2:])
        # The axes of x between batch and axis come before those of the indices.
        chosen = range(batch, indices.ndim)
        return np.moveaxis(found, chosen, [n + place - batch for n in chosen])

    return gathered


def _strided_slice(attributes: Attributes) -> Operation:
    def bits(name: str) -> int:
        return int(attributes.get(name, 0))

    begins, ends = bits("begin_mask"), bits("end_mask")
    ellipses, news, shrinks = map(
        bits, ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    )

    def places(begin: np.ndarray, end: np.ndarray, strides: np.ndarray) -> Operation:
        index: list[Any] = []
        entries = zip(begin.tolist(), end.tolist(), strides.tolist(), strict=True)
        for place, (first, last, step) in enumerate(entries):
            bit = 1 << place
            if ellipses & bit:
                index.append(Ellipsis)
            elif news & bit:
                index.append(np.newaxis)
            elif shrinks & bit:
                index.append(first)
            else:
                start = None if begins & bit else first
                index.append(slice(start, None if ends & bit else last, step))
        return operator.itemgetter(tuple(index))

    return Arranged(places)


def _pack(attributes: Attributes) -> Operation:
    axis = attributes.get("axis", 0)

    def packed(*parts: np.ndarray) -> np.ndarray:
        # The sizes of an array, say, for which a list is faster.
        if np.ndim(parts[0]) == 0:
            return np.array(parts, parts[0].dtype)
        return np.stack(parts, axis=axis)

    return packed


def _unpack(attributes: Attributes) -> Operation:
    axis = attributes.get("axis", 0)
    return lambda x: tuple(np.moveaxis(x, axis, 0) if axis else x)


def _split(sizes: np.ndarray, axis: np.ndarray) -> Operation:
    place, lengths = int(axis), sizes.tolist()

    def split(x: np.ndarray) -> tuple[np.ndarray, ...]:
        known = lengths
        if -1 in known:
            rest = x.shape[place] - sum(known) - 1
            known = [rest if length == -1 else length for length in known]
        before = (slice(None),) * (place % x.ndim)
        ends = itertools.accumulate(known)
        return tuple(
            [
                x[(*before, slice(end - length, end))]
                for end, length in zip(ends, known, strict=True)
            ]
        )

    return split


def _split_equally(attributes: Attributes) -> Operation:
    number = attributes["num_split"]
    return lambda axis, x: tuple(np.split(x, number, axis=int(axis)))


def _squeeze(attributes: Attributes) -> Operation:
    axes = tuple(attributes.get("squeeze_dims", ())) or None
    return lambda x: np.squeeze(x, axis=axes)


def _of_shape(measure: Callable[..., Any]) -> Callable[[Attributes], Operation]:
    def with_attributes(attributes: Attributes) -> Operation:
        dtype = np.dtype(attributes.get("out_type", "int32"))
        return lambda x: np.array(measure(x), dtype)

    return with_attributes


def _arg_max(attributes: Attributes) -> Operation:
    dtype = np.dtype(attributes.get("output_type", "int64"))
    return lambda x, axis: np.asarray(np.argmax(x, axis=int(axis))).astype(dtype)


def _one_hot(attributes: Attributes) -> Operation:
    axis = attributes.get("axis", -1)

    def encoded(
        indices: np.ndarray, depth: np.ndarray, on: np.ndarray, off: np.ndarray
    ) -> np.ndarray:
        place = axis if axis >= 0 else indices.ndim
        is_there = np.expand_dims(indices, place) == np.arange(int(depth)).reshape(
            [-1, *[1] * (indices.ndim - place)]
        )
        return np.where(is_there, on, off)

    return encoded


def _cumsum(attributes: Attributes) -> Operation:
    exclusive = attributes.get("exclusive", False)
    reverse = attributes.get("reverse", False)

    def summed(x: np.ndarray, axis: np.ndarray) -> np.ndarray:
        place = int(axis)
        turned = np.flip(x, place) if reverse else x
        found = np.cumsum(turned, axis=place, dtype=x.dtype)
        if exclusive:
            found = np.roll(found, 1, axis=place)
            first = [slice(None)] * found.ndim
            first[place] = slice(0, 1)
            found[tuple(first)] = 0
        return np.flip(found, place) if reverse else found

    return summed


def _top_k(x: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    number, size = int(k), x.shape[-1]
    rows = x.reshape(-1, size)
    if 0 < number < size:
        order = _least(-rows, number)
    else:
        order = _sorted_places(-rows)[:, :number]
    order = order.reshape(*x.shape[:-1], number)
    return np.take_along_axis(x, order, axis=-1), order.astype(np.int32)


def _least(rows: np.ndarray, number: int) -> np.ndarray:
    """Returns the places of the least numbers of each row, [rows, number], sorted.

    A partition takes a tenth of the time of a sort.
    """
    last = np.partition(rows, number - 1, axis=-1)[:, number - 1, np.newaxis]
    chosen = rows <= last
    # More of them equal the last one, or some are not numbers.
    unclear = np.count_nonzero(chosen, axis=-1) != number
    chosen[unclear] = np.arange(rows.shape[1]) < number
    places = np.nonzero(chosen)[1].reshape(-1, number)
    found = np.take_along_axis(rows, places, axis=-1)
    order = np.take_along_axis(places, _sorted_places(found), axis=-1)
    order[unclear] = _sorted_places(rows[unclear])[:, :number]
    return order


def _sorted_places(rows: np.ndarray) -> np.ndarray:
    # Of equal numbers the first one comes first.
    return np.argsort(rows, axis=-1, kind="stable")


def _bound(side: Any) -> Callable[[Attributes], Operation]:
    def with_attributes(attributes: Attributes) -> Operation:
        dtype = np.dtype(attributes.get("out_type", "int32"))

        def found(sorted_: np.ndarray, values: np.ndarray) -> np.ndarray:
            pairs = zip(sorted_, values, strict=True)
            return np.array(
                [np.searchsorted(one, value, side) for one, value in pairs], dtype
            ).reshape(values.shape)

        return found

    return with_attributes


def _pad(x: np.ndarray, paddings: np.ndarray, value: Any = 0) -> np.ndarray:
    return np.pad(x, paddings, constant_values=value)


def _random_words(attributes: Attributes) -> Operation:
    dtype = np.dtype(attributes["dtype"])

    def drawn(
        shape: np.ndarray, key: np.ndarray, counter: np.ndarray, algorithm: Any
    ) -> np.ndarray:
        return philox.words(tuple(shape.tolist()), key, counter, dtype)

    return drawn


def _hash_bucket(attributes: Attributes) -> Operation:
    from farmhash import fingerprint64

    buckets = attributes["num_buckets"]

    def buckets_of(texts: np.ndarray) -> np.ndarray:
        flat = [fingerprint64(text) % buckets for text in np.ravel(texts).tolist()]
        return np.array(flat, np.int64).reshape(np.shape(texts))

    return buckets_of


def _list_set(items: list[Any], index: np.ndarray, item: Any) -> list[Any]:
    # The list may be a constant, which every call begins with.
    written = items.copy()
    written[int(index)] = item
    return written


def _range(first: Any, end: Any, step: Any) -> np.ndarray:
    if first.dtype.kind != "f":
        return np.arange(first, end, step, dtype=first.dtype)
    # In their own precision, step by step, NumPy's would have other ends.
    number = math.ceil((end - first) / step)
    steps = np.concatenate([first.reshape(1), np.full(number, step)])[:number]
    return np.add.accumulate(steps, dtype=first.dtype)


def _select(chosen: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    # A vector chooses among rows.
    ones = [1] * (x.ndim - np.ndim(chosen))
    return np.where(np.reshape(chosen, [*np.shape(chosen), *ones]), x, y)


def _reshape(shape: np.ndarray) -> Operation:
    # Of numbers too, which are no arrays.
    sizes = tuple(shape.tolist())
    return lambda x: np.asarray(x).reshape(sizes)


def _broadcast(shape: np.ndarray) -> Operation:
    sizes = tuple(shape.tolist())
    return lambda x: x if x.shape == sizes else np.broadcast_to(x, sizes)


def _broadcast_shapes(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    shape = np.broadcast_shapes(tuple(one.tolist()), tuple(other.tolist()))
    return np.array(shape, one.dtype)


def _transpose(axes: np.ndarray) -> Operation:
    order = axes.tolist()
    return lambda x: x.transpose(order)


def _expand(axis: np.ndarray) -> Operation:
    place = int(axis)
    return lambda x: np.expand_dims(x, place)


def _leaky_relu(attributes: Attributes) -> Operation:
    slope = attributes.get("alpha", 0.2)
    return lambda x: np.where(x > 0, x, x.dtype.type(slope) * x)


def _slice(x: np.ndarray, begin: np.ndarray, size: np.ndarray) -> np.ndarray:
    pairs = zip(begin.tolist(), size.tolist(), strict=True)
    return x[tuple(slice(b, None if n < 0 else b + n) for b, n in pairs)]


def _diagonal(x: np.ndarray, k: np.ndarray, *_: Any) -> np.ndarray:
    _check_main(k)
    return x[..., np.newaxis] * np.eye(x.shape[-1], dtype=x.dtype)


def _check_main(k: np.ndarray) -> None:
    """Raises ValueError unless the diagonals k are the main one."""
    if np.any(k):
        raise ValueError(f"only the main diagonal is known, not {k}")


def _with_diagonal(x: np.ndarray, diagonal: np.ndarray, k: np.ndarray) -> np.ndarray:
    _check_main(k)
    is_main = np.eye(*x.shape[-2:]) == 1.0
    return np.where(is_main, diagonal[..., np.newaxis], x)


def _band_part(x: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    rows, columns = np.indices(x.shape[-2:])
    inside = (lower < 0) | (rows - columns <= lower)
    inside &= (upper < 0) | (columns - rows <= upper)
    return np.where(inside, x, x.dtype.type(0))


def _broadcast_axes(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, ...]:
    """Returns the axes along which each of two shapes is broadcast."""
    rank = max(len(one), len(other))
    wide = [[1] * (rank - len(shape)) + shape.tolist() for shape in (one, other)]
    axes = ([n for n in range(rank) if sizes[n] == 1] for sizes in wide)
    return tuple(np.array(found, one.dtype) for found in axes)


def _stitched(*parts: np.ndarray) -> np.ndarray:
    """Returns data put together by their indices, of which the last ones count."""
    indices, data = parts[: len(parts) // 2], parts[len(parts) // 2 :]
    size = 1 + max(int(index.max()) for index in indices if index.size)
    beyond = data[0].shape[np.ndim(indices[0]) :]
    found = np.zeros((size, *beyond), data[0].dtype)
    for index, values in zip(indices, data, strict=True):
        found[index] = values
    return found


_UFUNCS: dict[str, Operation] = {
    "Abs": np.abs,
    "AddV2": np.add,
    "Add": np.add,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "BitwiseAnd": np.bitwise_and,
    "Ceil": np.ceil,
    "Cos": np.cos,
    "DivNoNan": _divide_no_nan,
    "Exp": np.exp,
    "Expm1": np.expm1,
    "Floor": np.floor,
    "FloorDiv": np.floor_divide,
    "FloorMod": np.mod,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "IsFinite": np.isfinite,
    "IsInf": np.isinf,
    "IsNan": np.isnan,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Log": np.log,
    "Log1p": np.log1p,
    "LogicalAnd": np.logical_and,
    "LogicalNot": np.logical_not,
    "LogicalOr": np.logical_or,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Pow": np.power,
    "RealDiv": np.divide,
    "Reciprocal": np.reciprocal,
    "RightShift": np.right_shift,
    "Round": np.round,
    "Rsqrt": lambda x: 1 / np.sqrt(x),
    "Sign": np.sign,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Sqrt": np.sqrt,
    "Square": np.square,
    "SquaredDifference": lambda x, y: np.square(x - y),
    "Sub": np.subtract,
    "Tan": np.tan,
    "Tanh": np.tanh,
    "Xlogy": _xlogy,
}

# Operations that call functions: loops and branches.
FLOW = ("While", "StatelessWhile", "If", "StatelessIf")
# Operations whose results follow from the shape of what they take.
OF_SHAPES = ("Rank", "Shape", "Size")
# Operations that take integers which are no sizes.
_TAKE_INDICES = ("Cast", "GatherV2")
# Operations that return a tuple of any number of outputs.
OF_ANY_NUMBER = (*FLOW, "Split", "SplitV", "Unpack")
OPERATIONS: dict[str, Callable[[Attributes], Operation]] = {
    **{name: _always(ufunc) for name, ufunc in _UFUNCS.items()},
    "AddN": _always(lambda *x: functools.reduce(np.add, x)),
    "All": _reduction(np.logical_and),
    "Any": _reduction(np.logical_or),
    "ArgMax": _arg_max,
    "BatchMatMulV2": _matmul("adj_x", "adj_y"),
    "BiasAdd": _always(np.add),
    "BroadcastArgs": _always(_broadcast_shapes),
    "BroadcastTo": _arranged(_broadcast),
    "Cast": _cast,
    "Cholesky": _always(np.linalg.cholesky),
    "ConcatV2": _always(lambda *x: np.concatenate(x[:-1], axis=int(x[-1]))),
    "Cumsum": _cumsum,
    "BroadcastGradientArgs": _always(_broadcast_axes),
    "DynamicStitch": _always(_stitched),
    "Einsum": lambda attributes: einsum(attributes["equation"]),
    "Elu": _always(_elu),
    "Equal": _always(np.equal),
    "Erf": _special("erf"),
    "Erfc": _special("erfc"),
    "ExpandDims": _arranged(_expand),
    "Fill": _always(lambda shape, value: np.full(shape.tolist(), value)),
    "GatherV2": _gather,
    "LeakyRelu": _leaky_relu,
    "LogSoftmax": _always(_log_softmax),
    "LowerBound": _bound("left"),
    "MatMul": _matmul("transpose_a", "transpose_b"),
    "MatrixBandPart": _always(_band_part),
    "MatrixDiagV3": _always(_diagonal),
    "MatrixSetDiagV3": _always(_with_diagonal),
    "Max": _reduction(np.maximum),
    "Mean": _reduction(np.add, is_mean=True),
    "Min": _reduction(np.minimum),
    "NotEqual": _always(np.not_equal),
    "OneHot": _one_hot,
    "OnesLike": _always(np.ones_like),
    "Pack": _pack,
    "Pad": _always(_pad),
    "PadV2": _always(_pad),
    "Prod": _reduction(np.multiply),
    "Range": _always(_range),
    "Rank": _of_shape(np.ndim),
    "Relu": _always(lambda x: np.maximum(x, 0)),
    "Relu6": _always(lambda x: np.clip(x, 0, 6)),
    "Reshape": _arranged(_reshape),
    "ReverseV2": _always(lambda x, axes: np.flip(x, tuple(axes.tolist()))),
    "Select": _always(_select),
    "SelectV2": _always(np.where),
    "Selu": _always(_selu),
    "Shape": _of_shape(np.shape),
    "ReluGrad": _always(lambda slope, x: np.where(x > 0, slope, x.dtype.type(0))),
    "SigmoidGrad": _always(lambda y, slope: slope * y * (1 - y)),
    "SoftplusGrad": _always(lambda slope, x: slope * _sigmoid(x)),
    "TanhGrad": _always(lambda y, slope: slope * (1 - y * y)),
    "Sigmoid": _always(_sigmoid),
    "Size": _of_shape(np.size),
    "Slice": _always(_slice),
    "Softmax": _always(_softmax),
    "Softplus": _always(_softplus),
    "Split": _split_equally,
    "SplitV": _arranged(_split),
    "Squeeze": _squeeze,
    "StatelessRandomGetKeyCounter": _always(philox.key_and_counter),
    "StatelessRandomUniformFullIntV2": _random_words,
    "StridedSlice": _strided_slice,
    "StringToHashBucketFast": _hash_bucket,
    "Sum": _reduction(np.add),
    "TensorListFromTensor": _always(lambda x, shape: list(x)),
    "TensorListGetItem": _always(lambda items, index, shape: items[int(index)]),
    "TensorListReserve": _always(lambda shape, size: [None] * int(size)),
    "TensorListSetItem": _always(_list_set),
    "TensorListStack": _always(lambda items, shape: np.stack(items)),
    "Tile": _always(lambda x, times: np.tile(x, times.tolist())),
    "TopKV2": _always(_top_k),
    "Transpose": _arranged(_transpose),
    "Unpack": _unpack,
    "UpperBound": _bound("right"),
    "ZerosLike": _always(np.zeros_like),
}


def keeps_shape(name: str, values: Sequence[Any]) -> bool:
    """Whether the shapes of some values decide the shape of an operation's result."""
    if name in FLOW or name == "Range":
        return False
    kinds = [value.dtype.kind if hasattr(value, "dtype") else "i" for value in values]
    # Other operations may take integers as sizes.
    return name in _UFUNCS or name in _TAKE_INDICES or not {"i", "u"} & {*kinds}
