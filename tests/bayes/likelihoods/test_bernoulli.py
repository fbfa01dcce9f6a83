import numpy as np
import pytest
import tensorflow as tf

from tfbbb.bayes.likelihoods import Bernoulli, Categorical

GENERATOR = np.random.default_rng(0)
LOGITS = 3.0 * GENERATOR.normal(size=(50, 1))
LABELS = GENERATOR.integers(2, size=50)


def built():
    likelihood = Bernoulli()
    likelihood.build((None, 1))
    return likelihood


def test_equals_a_categorical_with_the_logits_0_and_f():
    categorical = Categorical()
    categorical.build((None, 2))
    both = np.concatenate([np.zeros_like(LOGITS), LOGITS], axis=1)
    for method in ("mean", "variance", "probabilities"):
        np.testing.assert_allclose(
            getattr(built(), method)(LOGITS),
            getattr(categorical, method)(both),
            rtol=1e-12,
        )
    np.testing.assert_allclose(
        built().log_prob(LABELS, LOGITS), categorical.log_prob(LABELS, both), rtol=1e-12
    )
    noise = GENERATOR.normal(size=(50, 1))
    np.testing.assert_array_equal(
        built().sample(LOGITS, noise), categorical.sample(both, noise)
    )


@pytest.mark.parametrize(
    "targets",
    [LABELS, LABELS[:, np.newaxis], LABELS.astype(bool), np.eye(2)[LABELS]],
    ids=["indices", "column", "booleans", "one-hot"],
)
def test_targets_are_classes_0_and_1(targets):
    np.testing.assert_array_equal(built().check_targets(targets), LABELS)
    np.testing.assert_allclose(
        built().negative_log_likelihood(tf.constant(targets), LOGITS),
        -built().log_prob(LABELS, LOGITS),
    )


def test_more_outputs_are_refused_with_the_way_to_several_labels():
    with pytest.raises(ValueError, match=r"\[rows, labels, 1\].*`Categorical`.*Rec"):
        Bernoulli().build((None, 2))


def test_more_classes_are_refused():
    assert Bernoulli().num_outputs() == Bernoulli().num_outputs(2) == 1
    with pytest.raises(ValueError, match=r"two classes.*num_targets=3"):
        Bernoulli().num_outputs(3)
