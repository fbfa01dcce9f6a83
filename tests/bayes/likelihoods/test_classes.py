"""The likelihoods of classes: Categorical and Bernoulli."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import special, stats

from tfbbb.bayes.likelihoods import Bernoulli, Categorical

GENERATOR = np.random.default_rng(0)
LOGITS = 3.0 * GENERATOR.normal(size=(50, 4))
LABELS = GENERATOR.integers(4, size=50)


def built(num_classes=4):
    likelihood = Categorical()
    likelihood.build((None, num_classes))
    return likelihood


def bernoulli():
    likelihood = Bernoulli()
    likelihood.build((None, 1))
    return likelihood


def test_density_and_moments_are_those_of_the_softmax():
    probabilities = special.softmax(LOGITS, axis=-1)
    np.testing.assert_allclose(built().mean(LOGITS), probabilities, rtol=1e-12)
    np.testing.assert_allclose(
        built().variance(LOGITS), probabilities * (1 - probabilities), rtol=1e-12
    )
    np.testing.assert_allclose(
        built().log_prob(LABELS, LOGITS),
        special.log_softmax(LOGITS, axis=-1)[np.arange(50), LABELS],
        rtol=1e-12,
    )
    np.testing.assert_allclose(built().probabilities(LOGITS), probabilities, rtol=1e-12)


def test_a_bernoulli_equals_a_categorical_with_the_logits_0_and_f():
    one, two = bernoulli(), built(2)
    logits, labels = LOGITS[:, :1], LABELS % 2
    both = np.concatenate([np.zeros_like(logits), logits], axis=1)
    for method in ("mean", "variance", "probabilities"):
        found, expected = getattr(one, method)(logits), getattr(two, method)(both)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(
        one.log_prob(labels, logits), two.log_prob(labels, both), rtol=1e-12
    )
    noise = GENERATOR.normal(size=(50, 1))
    np.testing.assert_array_equal(one.sample(logits, noise), two.sample(both, noise))


FORMS = {
    "indices": lambda labels, num_classes: labels,
    "column": lambda labels, num_classes: labels[:, np.newaxis],
    "floats": lambda labels, num_classes: labels.astype(np.float32),
    "one-hot": lambda labels, num_classes: np.eye(num_classes)[labels],
    "list": lambda labels, num_classes: labels.tolist(),
}


@pytest.mark.parametrize("num_classes", [2, 4])
@pytest.mark.parametrize("form", FORMS)
def test_targets_are_indices_or_one_hot_rows(form, num_classes):
    likelihood = built() if num_classes == 4 else bernoulli()
    outputs, labels = LOGITS[:, : 1 if num_classes == 2 else 4], LABELS % num_classes
    targets = FORMS[form](labels, num_classes)
    checked = likelihood.check_targets(targets)
    np.testing.assert_array_equal(checked, labels)
    assert checked.dtype == np.int32
    np.testing.assert_allclose(
        likelihood.negative_log_likelihood(tf.constant(targets), outputs),
        -likelihood.log_prob(labels, outputs),
    )


def test_booleans_are_the_classes_0_and_1():
    likelihood, labels = bernoulli(), LABELS[:, np.newaxis] % 2
    np.testing.assert_allclose(
        likelihood.negative_log_likelihood(tf.constant(labels == 1), LOGITS[:, :1]),
        -likelihood.log_prob(labels[:, 0], LOGITS[:, :1]),
    )


@pytest.mark.parametrize(
    ("targets", "received"),
    [
        ([0, 1, 4], "4 in row 2"),
        ([0.0, 0.5], "0.5 in row 1"),
        ([np.nan, 1.0], "nan in row 0"),
        (["a", "b"], "'a'.* in row 0"),
        ([1, None], "nan in row 1"),
    ],
)
def test_label_that_is_no_class_is_named_with_its_row(targets, received):
    with pytest.raises(
        ValueError, match=rf"class indices 0 to 3, or one-hot.*Received: .*{received}"
    ):
        built().check_targets(targets)


@pytest.mark.parametrize("row", [[0.5, 0.5, 0, 0], [0, 0, 0, 0], [2, -1, 0, 0]])
def test_row_that_is_not_one_hot_is_named(row):
    with pytest.raises(ValueError, match=r"single 1, otherwise 0, .* in row 1"):
        built().check_targets([[1, 0, 0, 0], row])


def test_frequencies_of_samples_are_the_probabilities():
    logits = LOGITS[:3]
    noise = GENERATOR.normal(size=(20_000, 3, 1))
    drawn = built().sample(np.broadcast_to(logits, (20_000, 3, 4)), noise).numpy()
    assert drawn.dtype == np.int32
    for row, probabilities in enumerate(special.softmax(logits, axis=-1)):
        counts = np.bincount(drawn[:, row], minlength=4)
        assert stats.chisquare(counts, 20_000 * probabilities).pvalue > 1e-3


def test_unordered_classes_have_no_distribution_function():
    assert not Categorical.ordered
    for method in ("cdf", "prob", "quantile"):
        with pytest.raises(NotImplementedError, match="Categorical has no ordered"):
            getattr(built(), method)([0.5], LOGITS)


@pytest.mark.parametrize("outputs", [1, None])
def test_fewer_than_two_classes_are_refused(outputs):
    with pytest.raises(ValueError, match="at least two classes"):
        Categorical().build((None, outputs))


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_soft_labels_of_a_step_are_refused(dtype):
    likelihood = Categorical()
    likelihood.build((None, 3))
    outputs = tf.zeros([2, 3])
    possible = tf.constant([[0, 1, 0], [0, 0, 1]], dtype)
    np.testing.assert_allclose(
        likelihood.negative_log_likelihood(possible, outputs), np.log([3, 3])
    )
    soft = tf.constant([[0.0, 0.9, 0.1], [0, 0, 1]]) if dtype == "float32" else None
    for wrong in (soft, tf.constant([[0, 2, 0], [0, 0, 1]], dtype)):
        if wrong is not None:
            with pytest.raises(tf.errors.InvalidArgumentError, match="soft labels"):
                likelihood.negative_log_likelihood(wrong, outputs)
    with pytest.raises(tf.errors.InvalidArgumentError, match="soft labels"):
        likelihood.negative_log_likelihood(tf.constant([0.0, 0.5]), outputs)
    masked = likelihood.negative_log_likelihood(
        tf.constant([[0, 0, 0], [0, 0, 1]], dtype), outputs, tf.constant([0.0, 1.0])
    )
    np.testing.assert_allclose(masked, [0.0, np.log(3)], rtol=1e-6)


def test_more_outputs_are_refused_with_the_way_to_several_labels():
    with pytest.raises(ValueError, match=r"\[rows, labels, 1\].*`Categorical`.*Rec"):
        Bernoulli().build((None, 2))


def test_more_classes_are_refused():
    assert Bernoulli().num_outputs() == Bernoulli().num_outputs(2) == 1
    with pytest.raises(ValueError, match=r"two classes.*num_targets=3"):
        Bernoulli().num_outputs(3)
