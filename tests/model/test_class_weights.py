import numpy as np
import pytest
import tensorflow as tf

from tfbbb.bayes.likelihoods import Categorical
from tfbbb.model.class_weights import relative_class_weights, with_weights_of_places
from tfbbb.model.training_rows import training_rows


def categorical(shape=(None, 3), **options):
    likelihood = Categorical(**options)
    likelihood.build(shape)
    return likelihood


LABELS = np.array([0, 0, 1, 2, 2, 2])


@pytest.mark.parametrize(
    ("factor", "y"),
    [(1e-3, LABELS), (1.0, LABELS[:, np.newaxis]), (50.0, np.eye(3)[LABELS])],
)
def test_only_ratios_of_class_weights_count(y, factor):
    rows = training_rows(np.zeros((6, 1)), y)
    weights = relative_class_weights(
        {0: 0.5 * factor, 1: factor, 2: 3.0 * factor}, categorical(), rows
    )
    mean = (2 * 0.5 + 1 + 3 * 3.0) / 6
    assert weights == pytest.approx({0: 0.5 / mean, 1: 1 / mean, 2: 3 / mean})
    assert rows.size == 6


def test_the_mean_is_over_the_targets_that_count():
    y = np.array([[0, 1, 255], [2, 2, 2]])
    mask = np.array([[True, True, True], [True, False, False]])
    rows = training_rows(y, y, num_places=1, mask=lambda x: mask)
    likelihood = categorical((None, 3, 3), ignore_class=255)
    weights = relative_class_weights({2: 4.0}, likelihood, rows)
    assert weights == pytest.approx({0: 0.5, 1: 0.5, 2: 2.0})


def test_places_get_the_weights_of_their_classes_in_any_data():
    y, given = np.array([[0, 1], [2, 255]]), np.array([1.0, 2.0])
    likelihood = categorical((None, 2, 3), ignore_class=255)
    weights = {0: 0.25, 1: 0.5, 2: 1.5}
    _, of_arrays = with_weights_of_places(y, y, given, weights, likelihood)
    np.testing.assert_allclose(of_arrays, [[0.25, 0.5], [3.0, 2.0]])
    data = tf.data.Dataset.from_tensor_slices((y, y, given)).batch(2)
    weighted, _ = with_weights_of_places(data, None, None, weights, likelihood)
    np.testing.assert_allclose(next(iter(weighted))[2], of_arrays)
    with pytest.raises(ValueError, match=r"arrays or a `tf.data.Dataset`.*iterator"):
        with_weights_of_places(iter(()), None, None, weights, likelihood)


@pytest.mark.parametrize(
    ("class_weight", "received"),
    [
        ({3: 1.0}, r"class_weight\[3\]=1.0"),
        ({"cat": 1.0}, r"class_weight\['cat'\]=1.0"),
        ({0: -1.0}, r"class_weight\[0\]=-1.0"),
        ({0: np.nan}, r"class_weight\[0\]=nan"),
        ({0: 0.0, 1: 0.0, 2: 0}, "class_weight="),
    ],
)
def test_class_weights_that_mean_nothing_are_refused(class_weight, received):
    rows = training_rows(np.zeros((6, 1)), LABELS)
    with pytest.raises(ValueError, match=f"Received: {received}"):
        relative_class_weights(class_weight, categorical(), rows)
