"""Every operation gives what TensorFlow's gives."""

import numpy as np
import pytest
import tensorflow as tf

from tfbbb.export.numpy_engine.operations import FLOW, OPERATIONS

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(2, 3, 4)).astype(np.float32)
Y = GENERATOR.normal(size=(2, 3, 4)).astype(np.float32)
UNIT = GENERATOR.uniform(0.05, 0.95, (2, 3)).astype(np.float64)
POSITIVE = GENERATOR.gamma(2.0, size=(2, 3)).astype(np.float64)
WHOLE = np.array([[0, 3, -5], [7, 2, 1]], np.int32)
TRUTH = np.array([[True, False, True], [False, False, True]])
TEXTS = np.array([b"", b"a", "Straße".encode(), b"x" * 40, b"y" * 90], object)


def axes(*numbers):
    return np.array(numbers, np.int32)


def case(name, attributes=None, /, **inputs):
    """An operation, its inputs in their order, and its attributes."""
    return name, inputs, attributes or {}


def one(*names, x=X, key="x"):
    return [(name, {key: x}, {}) for name in names]


def two(*names, x=X, y=Y):
    return [(name, {"x": x, "y": y}, {}) for name in names]


# Many of them are equal.
DIGITS = np.random.default_rng(1).integers(0, 5, (6, 9)).astype(np.float32)
CASES = [
    *one("Abs", "Asinh", "Atan", "Ceil", "Cos", "Exp", "Expm1", "Floor"),
    *one("IsFinite", "IsInf", "IsNan", "Neg", "Round", "Sigmoid", "Sign", "Sin"),
    *one("Sinh", "Square", "Tan", "Tanh", "ZerosLike", "OnesLike"),
    *one("Log", "Log1p", "Rsqrt", "Sqrt", x=POSITIVE),
    *one("Reciprocal", x=POSITIVE),
    # Of a number, which no layer but a likelihood has.
    *one("Sigmoid", "Exp", "Tanh", x=np.array(0.3, np.float32)),
    *one("Erf", "Erfc", x=4.0 * UNIT - 2.0),
    *one("LogicalNot", x=TRUTH),
    *one("Elu", "LeakyRelu", "Relu", "Relu6", "Selu", "Softplus", key="features"),
    *one("LogSoftmax", "Softmax", key="logits"),
    *one("Rank", "Shape", "Size", key="input"),
    case("Shape", {"out_type": tf.int64}, input=X),
    case("Size", {"out_type": tf.int64}, input=X),
    case("LeakyRelu", {"alpha": 0.3}, features=X),
    *two("AddV2", "DivNoNan", "Greater", "GreaterEqual", "Less", "LessEqual"),
    *two("Maximum", "Minimum", "Mul", "NotEqual", "RealDiv", "SquaredDifference"),
    *two("Add", "Equal", "Sub", y=X),
    *two("DivNoNan", "Xlogy", x=np.float32([0, 0, 2]), y=np.float32([0, 3, 4])),
    *two("Equal", "NotEqual", x=TEXTS, y=np.array(b"a", object)),
    *two("FloorDiv", "FloorMod", x=WHOLE, y=np.array(3, np.int32)),
    *two("LogicalAnd", "LogicalOr", x=TRUTH, y=~TRUTH.T.reshape(2, 3)),
    *two("BitwiseAnd", "RightShift", x=WHOLE, y=np.array(1, np.int32)),
    *two("Pow", x=POSITIVE, y=UNIT),
    case("AddN", inputs=[X, Y, X]),
    *[case(name, input=TRUTH, axis=axes(1)) for name in ("All", "Any")],
    *[
        case(name, {"keep_dims": keep}, input=X, axis=axes(0, -1))
        for name in ("Max", "Mean", "Min", "Prod", "Sum")
        for keep in (False, True)
    ],
    case("ArgMax", input=X, dimension=np.array(1)),
    case("ArgMax", {"output_type": tf.int32}, input=X, dimension=np.array(-1)),
    case("BatchMatMulV2", {"adj_y": True}, x=X, y=Y),
    case("BatchMatMulV2", {"adj_x": True}, x=X, y=Y),
    case("MatMul", {"transpose_a": True}, a=X[0], b=Y[0]),
    case("MatMul", {"transpose_b": True}, a=X[0], b=Y[0]),
    case("BiasAdd", value=X, bias=Y[0, 0]),
    case("BroadcastArgs", s0=axes(2, 1, 4), s1=axes(3, 1)),
    case("BroadcastTo", input=X[:, :1], shape=axes(2, 3, 4)),
    case("Cast", {"DstT": tf.int32}, x=3.0 * X),
    case("Cast", {"DstT": tf.float64}, x=WHOLE),
    case("Cholesky", input=X[0] @ X[0].T + 3.0 * np.eye(3, dtype=np.float32)),
    case("ConcatV2", values=[X, Y], axis=np.array(1, np.int32)),
    *[
        case("Cumsum", attributes, x=X, axis=np.array(1, np.int32))
        for attributes in ({}, {"exclusive": True}, {"reverse": True})
    ],
    case("Einsum", {"equation": "abc,adc->abd"}, inputs=[X, Y]),
    case("ExpandDims", input=X, axis=np.array(-2, np.int32)),
    case("Fill", dims=axes(2, 3), value=np.float32(0.5)),
    case("GatherV2", params=X, indices=axes(1, 1, 0), axis=np.array(0)),
    *[
        case(
            "GatherV2",
            {"batch_dims": dims},
            params=X,
            indices=WHOLE % 3,
            axis=np.array(axis),
        )
        for axis, dims in ((1, 0), (1, 1), (2, 1), (2, 2))
    ],
    case("LowerBound", sorted_inputs=np.sort(X[0]), values=Y[0]),
    case("UpperBound", sorted_inputs=np.sort(X[0]), values=X[0]),
    case("LowerBound", sorted_inputs=np.sort(X[0]), values=X[0]),
    *[
        case(
            "OneHot",
            attributes,
            indices=WHOLE,
            depth=np.array(4, np.int32),
            on=np.float32(1),
            off=np.float32(0),
        )
        for attributes in ({}, {"axis": 0})
    ],
    case("Pack", {"axis": 2}, values=[X, Y]),
    case("Pad", input=X, paddings=np.array([[0, 1], [2, 0], [1, 1]])),
    case(
        "PadV2",
        input=X,
        paddings=np.array([[0, 1], [2, 0], [1, 1]]),
        constant_values=np.float32(7.0),
    ),
    case("Range", start=np.int32(7), limit=np.int32(-2), delta=np.int32(-3)),
    case("Range", start=np.float32(0.5), limit=np.float32(3), delta=np.float32(0.5)),
    *[
        case("Range", start=np.float32(0), limit=np.float32(end), delta=np.float32(0.1))
        for end in (0.0, 0.3, 0.7, 1.0, 6.1)
    ],
    case("Reshape", tensor=X, shape=axes(4, -1)),
    case("Select", condition=np.array([True, False]), x=X, y=Y),
    case("Select", condition=TRUTH, x=WHOLE, y=2 * WHOLE),
    case("Select", condition=np.array(False), x=X, y=Y),
    case("SelectV2", condition=TRUTH, t=WHOLE, e=np.array(9, np.int32)),
    case("Slice", input=X, begin=axes(0, 1, 2), size=axes(1, -1, 2)),
    case("Split", {"num_split": 3}, axis=np.array(1, np.int32), value=X),
    case(
        "SplitV",
        {"num_split": 2},
        value=X,
        size_splits=axes(1, -1),
        axis=np.array(2, np.int32),
    ),
    case("Squeeze", input=X[:1, :1]),
    case("Squeeze", {"axis": [1]}, input=X[:1, :1]),
    case("StatelessRandomGetKeyCounter", seed=axes(3, -4)),
    case("StringToHashBucketFast", {"num_buckets": 97}, input=TEXTS),
    case("Tile", input=X, multiples=axes(1, 2, 3)),
    case("TopKV2", input=np.float32([[1, 3, 3, 2]]), k=np.array(3, np.int32)),
    case("TopKV2", input=DIGITS, k=np.array(4, np.int32)),
    case("TopKV2", input=DIGITS, k=np.array(9, np.int32)),
    case("Transpose", x=X, perm=axes(2, 0, 1)),
    case("Unpack", {"num": 3, "axis": 1}, value=X),
    *[
        case(
            "StridedSlice",
            attributes,
            input=X,
            begin=axes(*b),
            end=axes(*e),
            strides=axes(*s),
        )
        for b, e, s, attributes in [
            ((0, 1), (2, 3), (1, 2), {}),
            ((1,), (2,), (1,), {"shrink_axis_mask": 1}),
            (
                (0, 0),
                (0, 0),
                (1, 1),
                {"begin_mask": 1, "end_mask": 1, "new_axis_mask": 2},
            ),
            ((0, -1), (0, 0), (1, -1), {"ellipsis_mask": 1, "end_mask": 2}),
        ]
    ],
    *[
        case("MatrixBandPart", input=X, num_lower=axes(a)[0], num_upper=axes(b)[0])
        for a, b in ((-1, 0), (0, -1), (1, 1))
    ],
    case(
        "MatrixDiagV3",
        diagonal=X[0],
        k=axes(0)[0],
        num_rows=axes(-1)[0],
        num_cols=axes(-1)[0],
        padding_value=np.float32(0),
    ),
    case("MatrixSetDiagV3", input=X, diagonal=Y[:, :, 0], k=axes(0)[0]),
    *[
        case("BroadcastGradientArgs", s0=axes(*one_), s1=axes(*other))
        for one_, other in (((2, 1, 4), (3, 1)), ((1,), (2, 1)), ((2, 3), (2, 3)))
    ],
    case("DynamicStitch", indices=[axes(0, 3, 1), axes(2, 1)], data=[X[0], Y[0, :2]]),
    *[case(name, gradients=X, features=Y) for name in ("ReluGrad", "SoftplusGrad")],
    *[case(name, y=X, dy=Y) for name in ("SigmoidGrad", "TanhGrad")],
    case("ReverseV2", tensor=X, axis=axes(0, -1)),
]
RANDOM = "StatelessRandomUniformFullIntV2"
LISTS = [name for name in OPERATIONS if name.startswith("TensorList")]


def json_of(attributes):
    """The attributes as a file has them, where those that are the default lack."""
    renamed = {"axis": "squeeze_dims"} if "axis" in attributes else {}
    found = {}
    for name, value in attributes.items():
        if isinstance(value, tf.DType):
            value = np.dtype(value.as_numpy_dtype).str
        found[name] = value
        if isinstance(value, list) and name in renamed:
            found[renamed[name]] = value
    return found


@pytest.mark.parametrize(
    ("name", "inputs", "attributes"),
    CASES,
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_operations_give_what_tensorflow_gives(name, inputs, attributes):
    wanted = getattr(tf.raw_ops, name)(**given(name, inputs), **attributes)
    flat = [
        np.asarray(part)
        for value in inputs.values()
        for part in (value if isinstance(value, list) else [value])
    ]
    with np.errstate(all="ignore"):
        found = OPERATIONS[name](json_of(attributes))(*flat)
    if not isinstance(wanted, list | tuple):
        wanted, found = [wanted], [found]
    for result, value in zip(found, wanted, strict=True):
        result = np.asarray(result)
        assert result.dtype == value.dtype.as_numpy_dtype
        assert result.shape == value.shape
        np.testing.assert_allclose(result, value.numpy(), 3e-6, 3e-6)


def given(name, inputs):
    names = {"OneHot": {"on": "on_value", "off": "off_value"}}.get(name, {})
    return {names.get(key, key): value for key, value in inputs.items()}


def test_every_operation_has_a_case():
    tested = {name for name, *_ in CASES} | {RANDOM, *LISTS}
    assert tested == set(OPERATIONS)
    assert not set(FLOW) & set(OPERATIONS)


@pytest.mark.parametrize(
    ("seed", "skipped"), [((1, -5), 7), ((2**31 - 1, -(2**31)), 2**64 - 3)]
)
def test_random_bits_are_those_of_tensorflow(seed, skipped):
    key, counter = OPERATIONS["StatelessRandomGetKeyCounter"]({})(axes(*seed))
    counter[0] += np.uint64(skipped)
    shape = axes(3, 37)
    for dtype in ("int32", "uint32", "int64", "uint64"):
        wanted = getattr(tf.raw_ops, RANDOM)(
            shape=shape, key=key, counter=counter, alg=1, dtype=dtype
        )
        random = OPERATIONS[RANDOM]({"dtype": dtype})
        found = random(shape, key, counter, np.array(1))
        np.testing.assert_array_equal(found, wanted.numpy())


def test_lists_of_a_loop_hold_what_was_written():
    reserved = OPERATIONS["TensorListReserve"]({})(axes(-1), np.array(2))
    for index in (0, 1):
        reserved = OPERATIONS["TensorListSetItem"]({})(
            reserved, np.array(index), X[index]
        )
    # A list that is a constant stays as it was.
    assert OPERATIONS["TensorListSetItem"]({})(reserved, np.array(0), 7)[0] == 7
    item = OPERATIONS["TensorListGetItem"]({})(reserved, np.array(1), axes(-1))
    np.testing.assert_array_equal(item, X[1])
    np.testing.assert_array_equal(OPERATIONS["TensorListStack"]({})(reserved, 0), X)
    again = OPERATIONS["TensorListFromTensor"]({})(X, axes(-1))
    np.testing.assert_array_equal(again[0], X[0])


@pytest.mark.parametrize("index", [-1, 2])
def test_indices_beyond_an_array_are_refused(index):
    with pytest.raises(IndexError, match="out of bounds"):
        OPERATIONS["GatherV2"]({})(X, axes(0, index), np.array(0))
