"""Twenty ordinary networks become Bayesian, train, and are saved."""

import keras
import numpy as np
import pytest
from keras import tree

import tfbbb
from tests.benchmarks.programs import load
from tfbbb.bayes.posteriors import MeanFieldNormal

NETWORKS = load("converted_networks").NETWORKS
# So that no pixel is constant.
EVERY = 30
ALMOST_A_POINT = {
    "posterior": MeanFieldNormal(initial_scale=1e-7),
    "bias_posterior": MeanFieldNormal(initial_scale=1e-7),
}


def prediction(twin, x, likelihoods):
    """Returns what the network would output, from one pass of the twin."""
    outputs = tree.flatten(twin(x, training=False))
    return [
        tfbbb.likelihoods.get(likelihood).point_prediction(output)
        if likelihood != "normal"
        else output
        for likelihood, output in zip(likelihoods, outputs, strict=True)
    ]


@pytest.fixture(scope="module", params=NETWORKS)
def case(request):
    keras.utils.set_random_seed(0)
    described = NETWORKS[request.param]
    x, y = tree.map_structure(lambda array: array[::EVERY], described.data())
    network = described.make()
    generator = np.random.default_rng(0)
    for weight in network.weights:
        if not np.any(weight):
            # A bias in a wrong place would not show at 0.
            weight.assign(0.1 * generator.normal(size=weight.shape))
    likelihoods = list(described.likelihoods)
    if len(likelihoods) > 1:
        twin = tfbbb.convert(
            network, likelihood=likelihoods, kl_weight=0.01, **ALMOST_A_POINT
        )
        twin.compile(
            "adam",
            [tfbbb.losses.NegativeLogLikelihood(each) for each in likelihoods],
            run_eagerly=True,
        )
    else:
        twin = tfbbb.convert(network, likelihood=likelihoods[0], **ALMOST_A_POINT)
        # To trace the one step takes longer than to run it.
        twin.compile("adam", run_eagerly=True)
    return network, twin, x, y, likelihoods


@pytest.mark.few(4)
def test_a_twin_without_spread_predicts_what_the_network_predicts(case):
    network, twin, x, _, likelihoods = case
    expected = tree.flatten(network(x, training=False))
    found = prediction(twin, x, likelihoods)
    # bfloat16 keeps eight bits.
    tolerance = 0.02 if _is_half(network) else 3e-5
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=tolerance)


@pytest.mark.few(4)
def test_a_twin_takes_a_step_and_is_loaded_as_it_was_saved(case, tmp_path):
    _, twin, x, y, likelihoods = case
    history = twin.fit(x, y, batch_size=len(tree.flatten(x)[0]), verbose=0).history
    assert np.isfinite(history["loss"]).all()
    twin.save(tmp_path / "twin.keras")
    loaded = keras.saving.load_model(tmp_path / "twin.keras")
    before, after = (prediction(each, x, likelihoods) for each in (twin, loaded))
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(one, other, atol=0.02 if _is_half(twin) else 3e-5)


def _is_half(model):
    return any("bfloat16" in str(layer.compute_dtype) for layer in model.layers)
