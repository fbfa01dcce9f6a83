import gc

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfbbb import BayesianModel, priors
from tfbbb.bayes.divergences import closed_form_of, kl_divergence
from tfbbb.layers import DenseVariational

FAMILIES = [
    ("mean_field_normal", 2),
    ("full_covariance_normal", 1),
    ("low_rank_normal", 2),
]


def network(posterior="mean_field_normal", prior="normal", units=2, members=1):
    options = {"kl_weight": 0.1, "members": members, "estimator": "weight"}
    layers = [
        DenseVariational(
            n,
            posterior=posterior,
            prior=prior,
            bias_posterior=posterior,
            bias_prior=prior,
            name=name,
            **options,
        )
        for n, name in ((units, "hidden"), (1, "output"))
    ]
    model = keras.Sequential([keras.Input((3,)), *layers])
    generator = np.random.default_rng(0)
    for layer in layers:
        for weight in layer.variational_weights:
            for variable in weight.variables.values():
                noise = generator.normal(size=variable.shape)
                variable.assign(variable.numpy() + 0.3 * noise)
    return model


def weights_of(model):
    layers = [layer for layer in model.layers if isinstance(layer, DenseVariational)]
    return [weight for layer in layers for weight in layer.variational_weights]


def divergence(weight):
    return kl_divergence(weight, lambda: weight.draw(tf.constant([0, 1])))


@pytest.mark.parametrize(("family", "members"), FAMILIES)
def test_prior_density_is_that_of_the_trained_posterior(family, members):
    trained = network(family, members=members)
    today = network("mean_field_normal", priors.FromPosterior(trained), members=members)
    for old, new in zip(weights_of(trained), weights_of(today), strict=True):
        draw = new.draw(tf.constant([0, 1]), samples=2)
        np.testing.assert_allclose(
            new.prior_log_prob(draw), old.log_prob(draw), rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize(("family", "members"), FAMILIES)
def test_divergence_is_zero_where_nothing_was_learnt_since(family, members):
    trained = network(family, members=members)
    today = network(family, priors.FromPosterior(trained), members=members)
    for old, new in zip(weights_of(trained), weights_of(today), strict=True):
        for name, variable in new.variables.items():
            variable.assign(old.variables[name])
        # Rounding of terms of about 10 nats, some of them squares of small pivots.
        np.testing.assert_allclose(divergence(new), 0.0, atol=1e-4)
        assert len(new.prior_variables) == len(old.variables)
        assert not any(v.trainable for v in new.prior_variables.values())


def test_one_trained_posterior_is_the_prior_of_every_member():
    trained = network()
    today = network(prior=priors.FromPosterior(trained), members=3)
    for old, new in zip(weights_of(trained), weights_of(today), strict=True):
        pairs = zip(new.prior_variables.values(), old.variables.values(), strict=True)
        for held, variable in pairs:
            np.testing.assert_array_equal(held.numpy(), [variable.numpy()] * 3)


def test_saved_models_hold_the_prior(tmp_path):
    today = network("low_rank_normal", priors.FromPosterior(network()))
    today.save(tmp_path / "today.keras")
    again = keras.models.load_model(tmp_path / "today.keras")
    for weight, loaded in zip(weights_of(today), weights_of(again), strict=True):
        np.testing.assert_allclose(divergence(loaded), divergence(weight), rtol=1e-6)


def test_priors_are_equal_where_their_values_are():
    model = network()
    prior, same = priors.FromPosterior(model), priors.FromPosterior(model)
    assert prior == same
    assert hash(prior) == hash(same)
    model.layers[-1].bias.variables["mean"].assign_add([1e-3])
    assert prior != priors.FromPosterior(model)
    assert prior == priors.get(priors.serialize(prior))


def test_a_prior_whose_values_are_gone_is_refused_by_fit():
    config = priors.serialize(priors.FromPosterior(network()))
    gc.collect()
    fresh = network(prior=priors.get(config))
    assert np.isnan(divergence(weights_of(fresh)[0]))
    model = BayesianModel(fresh)
    model.compile("sgd")
    with pytest.raises(ValueError, match=r"Load the weights.*'hidden/kernel'"):
        model.fit(np.ones((8, 3)), np.arange(8.0), verbose=0)


def in_layer(**options):
    DenseVariational(2, **options).build((None, 3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda prior: in_layer(prior=prior, name="first"),
            r"'hidden/kernel'.*Received: 'first/kernel'",
        ),
        (
            lambda prior: network(prior=prior, units=4),
            r"`mean` is \(3, 2\).*'hidden/kernel'",
        ),
        (
            lambda _: network(prior=priors.FromPosterior(network("point", None))),
            "has no density",
        ),
        (
            lambda _: priors.FromPosterior(keras.Sequential([keras.Input((2,))])),
            "no variational weights",
        ),
    ],
)
def test_posteriors_of_other_weights_are_refused(make, message):
    prior = priors.FromPosterior(network())
    with pytest.raises(ValueError, match=message):
        make(prior)


def test_refuses_another_number_of_members():
    today = network(prior=priors.FromPosterior(network(members=2)), members=3)
    with pytest.raises(ValueError, match=r"2 members.*Received: members=3"):
        divergence(weights_of(today)[0])


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("new", "old", "closed"),
    [
        ("mean_field_normal", "mean_field_normal", True),
        ("low_rank_normal", "mean_field_normal", True),
        ("matrix_normal", "mean_field_normal", True),
        ("full_covariance_normal", "mean_field_normal", True),
        ("mean_field_normal", "full_covariance_normal", True),
        ("full_covariance_normal", "full_covariance_normal", True),
        ("low_rank_normal", "full_covariance_normal", False),
        ("mean_field_normal", "low_rank_normal", False),
    ],
)
def test_divergence_agrees_with_draws(new, old, closed):
    today = network(new, priors.FromPosterior(network(old)))
    weight = weights_of(today)[0]
    assert (closed_form_of(weight) is not None) == closed
    draws = weight.draw(tf.constant([0, 2]), samples=20_000)
    ratios = np.asarray(weight.log_prob(draws) - weight.prior_log_prob(draws))
    value = kl_divergence(weight, lambda: draws)
    error = ratios.std() / np.sqrt(len(ratios))
    assert abs(np.mean(value) - ratios.mean()) < 4.5 * error
