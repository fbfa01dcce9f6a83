"""Arrays and tensors have functions of one name, with equal results."""

import numpy as np
import pytest
import tensorflow as tf

from tfbbb.base import array_ops as ops

X = np.array([[0.2, 0.7, 0.4], [0.9, 0.1, 0.3]])
MATRIX = np.array([[2.0, 0.0], [0.5, 1.5]])
CALLS = {
    "argmax": (X, -1),
    "betainc": (X, 2.0 * X, X),
    "betaincinv": (3.0 * X, 2.0 * X, X),
    "broadcast_to": (X[0], (2, 3)),
    "cholesky": (MATRIX @ MATRIX.T,),
    "concat": ([X, X], 1),
    "cumsum": (X, -1),
    "diag": (X,),
    "diag_part": (MATRIX,),
    "divide_no_nan": (X, np.where(X > 0.5, X, 0.0)),
    "erfc": (X,),
    "fill_triangular": (np.concatenate([X, 2.0 * X], axis=1),),
    "igamma": (X, 3.0 * X),
    "igammainv": (3.0 * X, X),
    "lbeta": (X, 2.0 * X),
    "lgamma": (X,),
    "log_gamma_correction": (8.0 + 100.0 * X,),
    "log_sigmoid": (50.0 * X - 25.0,),
    "log_softmax": (X,),
    "matrix_transpose": (X,),
    "matvec": (MATRIX, X[:, :2]),
    "moveaxis": (X, 0, 1),
    "ndtri": (X,),
    "pad": (X, [[1, 0], [0, 2]]),
    "reduce_logsumexp": (X, 1),
    "relu": (X - 0.5,),
    "set_diag": (MATRIX, X[0, :2]),
    "shape": (X,),
    "softplus": (50.0 * X - 25.0,),
    "stack": ([X, X], 1),
    "tile": (X[0], [2]),
    "triangular_solve": (MATRIX, X[:, :2]),
    "xlog1py": (X, X),
    "xlogy": (np.where(X > 0.5, X, 0.0), X),
}


def _as_tensors(value):
    if isinstance(value, list) and isinstance(value[0], np.ndarray):
        return [tf.constant(part) for part in value]
    return tf.constant(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("name", CALLS)
def test_arrays_and_tensors_have_one_result(name):
    function, arguments = getattr(ops, name), CALLS[name]
    of_arrays = function(*arguments)
    of_tensors = function(*map(_as_tensors, arguments))
    assert tf.is_tensor(of_tensors)
    assert not tf.is_tensor(of_arrays)
    np.testing.assert_allclose(of_arrays, of_tensors, rtol=1e-10, atol=1e-14)


def test_elements_are_taken_along_an_axis_as_by_tensorflow():
    indices = np.array([[2, 0], [1, 1]])
    for options in ({"axis": 1}, {"axis": 1, "batch_dims": 1}, {"batch_dims": 1}):
        given = indices if "batch_dims" in options else indices[0]
        found = ops.gather(X, given, **options)
        np.testing.assert_array_equal(found, tf.gather(X, given, **options))


def test_a_tensor_among_the_arguments_decides():
    assert tf.is_tensor(ops.where(tf.constant(X) > 0.5, X, 0.0))
    assert tf.is_tensor(ops.cast(X, tf.float32))
    assert tf.is_tensor(ops.range(3, dtype=tf.float64))
    assert not tf.is_tensor(ops.cast(X, "float32"))


def test_the_cholesky_factor_of_a_likelihood_is_that_of_arrays():
    from tfbbb.bayes.posteriors.full_covariance_normal import cholesky_factor

    log_scale, correlations = X, 2.0 * X
    found = cholesky_factor(log_scale, correlations)
    tensors = cholesky_factor(tf.constant(log_scale), tf.constant(correlations))
    np.testing.assert_allclose(found, tensors, rtol=1e-12)
