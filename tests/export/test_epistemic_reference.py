"""Percentiles of epistemic uncertainty among rows that a model did not see."""

import dataclasses
import json

import numpy as np
import pytest

from tests.exported_models import write_regression
from tfbbb.export import EpistemicReference, Manifest
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


def test_a_model_that_never_varies_has_percentiles():
    reference = EpistemicReference.of(variances(np.zeros((5, 1))))
    assert np.isfinite(reference.percentiles(variances([[0.0], [1.0]]))).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"quantiles": (2.0, 1.0)}, "ascend"),
        ({"quantiles": ()}, "two or more"),
        ({"scales": (0.0,)}, "positive"),
        ({"abstain_above": 101.0}, "percentile from 0 to 100"),
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
