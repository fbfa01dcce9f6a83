"""Percentiles of epistemic uncertainty among rows that a model did not see."""

import dataclasses
import json

import keras
import numpy as np
import pytest
from scipy import special

import tfbbb
from tests.exported_models import write_regression
from tfbbb.export import EpistemicReference, Manifest
from tfbbb.export.inputs import to_tensors
from tfbbb.export.manifest import MANIFEST_PATH, ManifestError


def variances(values):
    return {"epistemic": np.asarray(values, np.float64)}


def test_new_rows_have_uniform_percentiles():
    generator = np.random.default_rng(0)
    reference = EpistemicReference.of(variances(generator.gamma(2, size=(100_000, 1))))
    new = reference.percentiles(variances(generator.gamma(2, size=(100_000, 1))))
    for percent in (5, 50, 90, 99):
        error = 100 * np.sqrt(2 * 0.01 * percent * (1 - 0.01 * percent) / 100_000)
        assert abs(np.mean(new <= percent) * 100 - percent) < 4 * error + 0.02


def test_the_factor_multiplies_the_uncertainties_of_the_reference():
    seen = variances(np.arange(1.0, 101.0)[:, None])
    one, two = EpistemicReference.of(seen), EpistemicReference.of(seen, factor=2.0)
    np.testing.assert_allclose(two.quantiles, 2 * np.array(one.quantiles))
    new = variances([[50.5]])
    np.testing.assert_allclose(one.percentiles(new), 50.0)
    np.testing.assert_allclose(two.percentiles(new), 100 * (50.5 / 2 - 1) / 99)


def test_targets_of_other_units_count_alike():
    values = np.random.default_rng(1).gamma(2, size=(500, 2))
    one = EpistemicReference.of(variances(values))
    other = EpistemicReference.of(variances(values * [1e-6, 1e6]))
    new = np.array([[1.0, 4.0], [4.0, 1.0]])
    np.testing.assert_allclose(
        one.percentiles(variances(new)),
        other.percentiles(variances(new * [1e-6, 1e6])),
    )


def test_classes_have_their_mutual_information():
    reference = EpistemicReference.of(
        # Classes also have the variances of their probabilities.
        {"mutual_information": np.linspace(0, 0.5, 11)} | variances(np.ones((11, 3)))
    )
    assert reference.scales == ()
    found = reference.percentiles({"mutual_information": np.array([0.0, 0.25, 0.6])})
    np.testing.assert_allclose(found, [0, 50, 100])


def network(likelihood="normal", hidden=16, units=1, features=3):
    keras.utils.set_random_seed(0)
    flow = inputs = keras.Input((features,))
    if hidden:
        flow = tfbbb.layers.DenseVariational(hidden, activation="relu")(flow)
    outputs = tfbbb.layers.DenseVariational(units, use_bias=False)(flow)
    return tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)


def uncertainties(model, rows, seeds):
    """Predicts rows by the draws of each seed."""
    rows = np.asarray(rows, "float32")
    return [model.predictive(rows, seed=seed, method="weight") for seed in seeds]


def test_shared_draws_rank_the_rows_of_a_linear_network_exactly():
    # Rows along one direction: each variance is a multiple of the same estimate.
    rows = np.linspace(1, 5, 101)[:, np.newaxis] * np.array([1.0, -2.0, 0.5])
    predicted = uncertainties(network(hidden=0), rows, range(200))
    references = [EpistemicReference.of(found) for found in predicted]
    for reference, found in zip(references, predicted, strict=True):
        np.testing.assert_allclose(
            reference.percentiles(found), np.arange(101.0), atol=0.02
        )
    # Those of another seed vary as the estimate does: 50 pairs of mirrored draws give a
    # variance that is chi-squared with 50 degrees of freedom.
    own = [references[0].percentiles(found)[50] for found in predicted[1:]]
    assert np.std(own) > 5
    logs = np.log([found.epistemic[50, 0] for found in predicted])
    expected = np.sqrt(special.polygamma(1, 25))
    assert np.std(logs, ddof=1) == pytest.approx(
        expected, abs=4 * expected / np.sqrt(2 * 199)
    )


@pytest.mark.parametrize(("likelihood", "units"), [("gamma", 2), ("categorical", 3)])
def test_the_stated_share_of_new_rows_exceeds_a_percentile(likelihood, units):
    seen, new = np.random.default_rng(0).normal(size=(2, 400, 3))
    model, seeds = network(likelihood, units=units), range(10)
    # Each 40 of 400 rows are above 90, and the reference has an error as large.
    error = np.sqrt(2 * 0.1 * 0.9 / 400)
    by_seed = [
        np.mean(EpistemicReference.of(of_seen).percentiles(of_new) > 90)
        for of_seen, of_new in zip(
            uncertainties(model, seen, seeds),
            uncertainties(model, new, seeds),
            strict=True,
        )
    ]
    assert np.abs(np.array(by_seed) - 0.1).max() < 3.5 * error


def test_a_file_has_the_same_percentiles_whatever_is_asked(tmp_path):
    rows = np.random.default_rng(0).normal(size=(300, 3)).astype("float32")
    model = network()
    seen = model.predictive(rows, 60, method="local", seed=7)
    reference = EpistemicReference.of(seen)
    assert (reference.num_samples, reference.seed) == (60, 7)
    model.export_predictive(tmp_path / "1", epistemic_reference=reference)
    loaded = tfbbb.load(tmp_path / "1")
    expected = reference.percentiles(seen)[:50]
    for draws in ((None, None), (60, 7), (60, 8), (20, 7)):
        given = to_tensors(rows[:50], loaded.manifest)
        loaded.predict(given, *draws)
        found = loaded.epistemic_percentiles(given)
        np.testing.assert_allclose(found, expected, atol=0.05)
        # The prediction that was asked for is kept.
        assert given.distribution[0][1:] == (draws[0] or 100, draws[1] or 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"quantiles": (2.0, 1.0)}, "ascend"),
        ({"quantiles": ()}, "two or more"),
        ({"scales": (0.0,)}, "positive"),
    ],
)
def test_numbers_that_contradict_each_other_are_refused(change, message, tmp_path):
    reference = EpistemicReference((0.0, 1.0), (1.0,), 2)
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(reference, **change)
    write_regression(tmp_path / "1")
    fields = json.loads((tmp_path / "1" / MANIFEST_PATH).read_text())
    fields["epistemic_reference"] = dataclasses.asdict(reference) | change
    with pytest.raises(ManifestError, match="epistemic_reference"):
        Manifest.from_json(json.dumps(fields))
