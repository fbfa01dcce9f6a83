import numpy as np
import pytest
import tensorflow as tf

from tfbbb import likelihoods
from tfbbb.bayes.target_shape import target_width


@pytest.mark.parametrize(
    ("shape", "places", "widths", "width"),
    [
        ((9,), (), (1,), None),
        ((9, 1), (), (1,), 1),
        ((9, 2), (), (2,), 2),
        ((9,), (), (1, 4), None),
        ((9, 4), (), (1, 4), 4),
        ((9, 5), (5,), (1,), None),
        ((9, 5, 1), (None,), (1,), 1),
        ((9, 1), (1,), (1,), None),
        ((9, 3, 5), (3, 5), (1, 4), None),
        ((9, 3, 5, 4), (3, None), (1, 4), 4),
        ((None, None, 4), (5,), (1, 4), 4),
    ],
)
def test_the_number_of_axes_decides(shape, places, widths, width):
    assert target_width(shape, places, widths) == width


@pytest.mark.parametrize(
    ("shape", "places", "widths", "wanted"),
    [
        ((), (), (1,), r"\[rows\] or \[rows, 1\], as .*\[rows, P\]"),
        ((9,), (), (2,), r"\[rows, 2\], as"),
        ((9, 2), (), (1,), r"\[rows\] or \[rows, 1\], as"),
        ((9,), (5,), (1,), r"\[rows, 5\] or \[rows, 5, 1\], as"),
        (
            (9, 1),
            (5,),
            (1, 4),
            r"\[rows, 5\] or \[rows, 5, 1\] or \[rows, 5, 4\] \(one-hot\)",
        ),
        ((9, 6), (5,), (1,), r"\[rows, 5, P\]"),
        ((9, 5, 3), (3, 5), (1,), r"\[rows, 3, 5, P\]"),
        ((9, 1, 1), (), (1,), r"\[rows, P\]"),
    ],
)
def test_other_shapes_are_refused_by_name(shape, places, widths, wanted):
    with pytest.raises(ValueError, match=f"{wanted}.*Received: shape="):
        target_width(shape, places, widths)


@pytest.mark.parametrize(
    ("kind", "units", "targets"),
    [
        (likelihoods.Normal, 1, np.arange(6.0).reshape(2, 3)),
        (likelihoods.Poisson, 1, np.arange(6).reshape(2, 3)),
        (likelihoods.Bernoulli, 1, np.arange(6).reshape(2, 3) % 2),
        (likelihoods.Categorical, 4, np.arange(6).reshape(2, 3) % 4),
    ],
)
def test_all_likelihoods_follow_the_rule(kind, units, targets):
    likelihood, outputs = kind(), tf.zeros([2, 3, units])
    likelihood.build((None, 3, units))
    forms = [targets, targets[..., None]]
    if likelihood.task == "classification":
        forms.append(np.eye(likelihood.num_classes)[targets])
    expected = likelihood.check_targets(targets)
    for form in forms:
        np.testing.assert_array_equal(likelihood.check_targets(form), expected)
        aligned = likelihood.aligned(form, outputs)
        np.testing.assert_array_equal(aligned, expected)
    for wrong in (targets[0], targets[:, :1], targets[:, :2], targets.T):
        with pytest.raises(ValueError, match=r"must have the shape \[rows, 3\]"):
            likelihood.check_targets(wrong)
        with pytest.raises(ValueError, match=r"must have the shape \[rows, 3\]"):
            likelihood.aligned(wrong, outputs)


@pytest.mark.usefixtures("compiled_functions")
def test_places_of_unknown_sizes_are_compared_in_the_step():
    likelihood = likelihoods.Normal()
    likelihood.build((None, None, None, 1))

    @tf.function(input_signature=[tf.TensorSpec([None] * 3), tf.TensorSpec([None] * 4)])
    def aligned(targets, outputs):
        return likelihood.aligned(targets, outputs)

    assert aligned(tf.zeros([2, 3, 5]), tf.zeros([2, 3, 5, 1])).shape == (2, 3, 5, 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="places of the outputs"):
        aligned(tf.zeros([2, 5, 3]), tf.zeros([2, 3, 5, 1]))
