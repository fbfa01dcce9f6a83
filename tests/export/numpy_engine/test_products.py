"""No bit of a row's answer depends on the rows beside it."""

import keras
import numpy as np
import pytest

import tfbbb
from tfbbb.base.threads import one_blas_thread
from tfbbb.export.numpy_engine.products import einsum, row_product

layers = tfbbb.layers
GENERATOR = np.random.default_rng(0)


def normal(*shape):
    return GENERATOR.normal(size=shape).astype("float32")


@pytest.mark.parametrize("columns", [1, 3, 17, 130])
@pytest.mark.parametrize("terms", [1, 13, 129, 800])
def test_product_of_a_row_is_the_same_in_any_company(terms, columns):
    a, b = normal(300, terms), normal(columns, terms).T
    with one_blas_thread():
        every = row_product(a, b)
        for first, count in ((0, 1), (7, 1), (5, 2), (3, 3), (11, 17), (44, 256)):
            part = slice(first, first + count)
            np.testing.assert_array_equal(row_product(a[part], b), every[part])
            # Also where each of several products has weights of its own.
            both = row_product(np.stack([a[part]] * 2), np.stack([b, 2 * b]))
            np.testing.assert_array_equal(
                both, np.stack([every[part], 2 * every[part]])
            )
    np.testing.assert_allclose(every, a.astype(float) @ b, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    "equation",
    [
        *("ab,bc->ac", "abc,cd->abd", "abcd,adef->abcef", "abcde,adef->abcf"),
        *("abcd,aecd->acbe", "acbe,aecd->abcd", "ab,cb->ca", "ab,ab->a", "a,b->ab"),
        *("abc,c->ab", "ab,bc->a", "aab,bc->ac", "ab->ba"),
    ],
)
def test_einsum_is_that_of_numpy(equation):
    sizes = dict(zip("abcdef", (3, 4, 5, 2, 6, 7), strict=True))
    given = [
        normal(*(sizes[name] for name in names))
        for names in equation.partition("->")[0].split(",")
    ]
    expected = np.einsum(equation, *(x.astype(float) for x in given))
    np.testing.assert_allclose(einsum(equation)(*given), expected, atol=1e-5)


def dense():
    inputs = keras.Input((13,))
    hidden = keras.layers.Dense(40, activation="gelu")(inputs)
    return inputs, layers.DenseVariational(50, activation="tanh")(hidden)


def steps():
    inputs = keras.Input((6, 2))
    hidden = layers.DenseVariational(40)(inputs)
    hidden = layers.MultiHeadAttentionVariational(2, 20)(hidden, hidden)
    return inputs, keras.layers.GlobalAveragePooling1D()(hidden)


# Its operations are those above.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "method"),
    [(steps, "local"), *((dense, way) for way in ("weight", "local", "linearised"))],
)
def test_row_has_the_same_answer_alone_and_among_others(network, method, tmp_path):
    inputs, hidden = network()
    outputs = layers.DenseVariational(3)(hidden)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    model.export_predictive(tmp_path / "1", num_samples=20, method=method)
    loaded = tfbbb.load(tmp_path / "1", engine="numpy")
    x = normal(515, *inputs.shape[1:])

    def answers(rows):
        targets = np.zeros(len(rows), "int64")
        log_prob = loaded.ask("log_prob", rows, targets=targets)
        return loaded.predict(rows) | {"log_prob": log_prob}

    every = answers(x)
    # Threads compute 256 rows each, and three are left.
    for first, count in ((0, 1), (514, 1), (300, 1), (7, 2), (250, 17), (2, 257)):
        for name, values in answers(x[first : first + count]).items():
            np.testing.assert_array_equal(values, every[name][first : first + count])
