"""Which formula serves a pair of families."""

import numpy as np
import pytest
import tensorflow as tf

from tests.variational_weights import variational_weight
from tfbbb import posteriors, priors
from tfbbb.bayes.divergences import (
    closed_form_of,
    is_log_ratio,
    kl_divergence,
    register_kl,
)
from tfbbb.bayes.divergences.kl_divergence import _CLOSED_FORMS


class HalvedNormal(priors.Normal):
    """A user's prior: a subclass, whose density may be anything."""


@pytest.fixture
def registry():
    known = dict(_CLOSED_FORMS)
    yield
    _CLOSED_FORMS.clear()
    _CLOSED_FORMS.update(known)


def log_ratio_of(weight, draw):
    return weight.log_prob(draw) - weight.prior_log_prob(draw)


def test_closed_forms_do_not_apply_to_subclasses():
    weight = variational_weight(prior=HalvedNormal())
    assert closed_form_of(weight) is None
    assert is_log_ratio(weight)
    draw = weight.draw(tf.constant([0, 1]))
    np.testing.assert_allclose(
        kl_divergence(weight, lambda: draw), log_ratio_of(weight, draw)
    )


def test_registered_forms_replace_the_estimate(registry):
    families = (posteriors.MeanFieldNormal, posteriors.LowRankNormal)
    register_kl(families, HalvedNormal)(lambda weight: tf.constant(7.0))
    for family in ("mean_field_normal", "low_rank_normal"):
        weight = variational_weight(family, HalvedNormal())
        assert float(kl_divergence(weight, draw=None)) == 7.0
    weight = variational_weight("full_covariance_normal", HalvedNormal())
    assert is_log_ratio(weight)


def test_registered_forms_apply_only_to_covered_weights(registry):
    @register_kl(
        posteriors.MeanFieldNormal,
        HalvedNormal,
        covers=lambda weight: weight.prior.scale == 0.5,
    )
    def seven(weight):
        return tf.constant(7.0)

    assert closed_form_of(variational_weight(prior=HalvedNormal(0.5))) is seven
    assert closed_form_of(variational_weight(prior=HalvedNormal(0.6))) is None
