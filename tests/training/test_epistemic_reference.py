"""References of trained models are honest about rows that nothing trained on."""

import numpy as np
import pyarrow as pa
import pytest

import tfbbb
from tests.trained import trained_table
from tfbbb.export.manifest import Manifest

ROWS, NEW = 300, 2000


def table(rows, seed, shift=0.0):
    x = np.random.default_rng(seed).normal(size=(rows, 3)) + shift
    noise = np.random.default_rng(seed + 1000).normal(size=rows)
    y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * noise
    columns = {f"x{i}": x[:, i] for i in range(3)}
    return pa.table({**columns, "y": y, "kind": np.where(y > 0, "high", "low")})


def trained_by(target, **spec):
    ignored = {"y", "kind"} - {target}
    training = {"epochs": 60} | spec.pop("training", {})
    spec = {"target": target, "training": training} | spec
    return trained_table(table(ROWS, 0).drop_columns(list(ignored)), spec)


def percentiles(trained, rows):
    prediction = trained.model.predictive(trained.schema.inputs(rows), method="local")
    return trained.epistemic_reference.percentiles(prediction)


@pytest.fixture(scope="module")
def crossed():
    return trained_by("y")


@pytest.mark.slow
def test_new_rows_exceed_percentiles_as_often_as_they_should(crossed):
    found = percentiles(crossed, table(NEW, 1))
    for percent in (50, 80, 90):
        share = np.mean(found > percent)
        expected = 1 - percent / 100
        # The reference has 300 rows, and the factor an error of about a tenth.
        error = np.sqrt(expected * (1 - expected) / ROWS)
        assert abs(share - expected) < 4 * error


def test_members_agree_more_about_rows_that_they_saw(crossed):
    assert 1.05 < crossed.epistemic_reference.factor < 5
    assert crossed.epistemic_reference.num_rows == ROWS


def test_rows_far_away_are_above_all_percentiles(crossed):
    assert np.mean(percentiles(crossed, table(200, 2, shift=6.0)) == 100.0) > 0.95


def test_the_reference_is_in_the_manifest(crossed, tmp_path):
    crossed.export_to(tmp_path / "1")
    reference = Manifest.read(tmp_path / "1").epistemic_reference
    assert reference == crossed.epistemic_reference


def test_a_file_has_the_percentiles_of_its_model(crossed, tmp_path):
    crossed.export_to(tmp_path / "1")
    rows = table(50, 3)
    found = tfbbb.load(tmp_path / "1").epistemic_percentiles(rows.to_pydict())
    # The uncertainties of file and model agree to some 1e-5.
    np.testing.assert_allclose(found, percentiles(crossed, rows), atol=0.05)


def test_held_out_rows_are_the_reference_as_they_are():
    trained = trained_by(
        "y", model={"members": 2}, training={"validation": {"fraction": 0.3}}
    )
    reference = trained.epistemic_reference
    assert (reference.factor, reference.num_rows) == (1.0, 90)
    prediction = trained.model.predictive(
        trained.schema.inputs(table(ROWS, 0).take(trained.held_out_rows)),
        method="local",
    )
    np.testing.assert_allclose(
        np.quantile(prediction.epistemic / reference.scales, [0.0, 0.5, 1.0]),
        np.array(reference.quantiles)[[0, 100, 200]],
        rtol=1e-5,
    )


@pytest.mark.slow
def test_classes_need_no_factor_and_an_odd_number_of_members_has_no_reference():
    classes = trained_by("kind", training={"epochs": 10})
    assert classes.epistemic_reference.factor == 1.0
    assert classes.epistemic_reference.scales == ()
    odd = trained_by("y", model={"members": 3}, training={"epochs": 5})
    assert odd.epistemic_reference is None
