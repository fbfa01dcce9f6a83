"""Rows of the calibration, by which intervals adapt to the rows of another table."""

import types

import numpy as np
import pytest
from scipy import stats

import tfbbb
from tests.prediction.recalibration.known_models import Known
from tfbbb.export.shift_reference import ShiftReference
from tfbbb.prediction.from_outputs import predictive_from_outputs
from tfbbb.prediction.recalibration import ConformalIntervals, ConformalSets
from tfbbb.training.shift_reference import smallest_levels


def test_the_level_of_a_central_interval_is_that_of_its_end():
    likelihood = tfbbb.likelihoods.Normal()
    likelihood.build((None, 1))
    outputs = np.zeros((5, 20, 1), np.float32)
    prediction = predictive_from_outputs(likelihood, outputs)
    y = np.linspace(-2.0, 2.0, 5)[:, np.newaxis]
    found = smallest_levels(None, prediction, y)
    for level, target, row in zip(found, y[:, 0], range(5), strict=True):
        lower, upper = prediction.interval(max(level, 1e-5) + 1e-5)
        assert lower[row] <= target <= upper[row]
        if level > 1e-3:
            lower, upper = prediction.interval(level - 1e-3)
            assert not lower[row] <= target <= upper[row]


def test_the_level_of_a_conformal_interval_is_the_rank_of_its_score():
    known = Known(stats.norm(), 4)
    y = np.array([[3.0], [-1.0], [2.0], [0.5]])
    found = smallest_levels(ConformalIntervals([[1.0]]), known, y)
    np.testing.assert_array_equal(found, np.array([4, 2, 3, 1]) / 5)
    fitted = ConformalIntervals().fitted(tfbbb.likelihoods.Normal(), known, y)
    reach = fitted.reach(found.astype(np.float32))[:, 0]
    np.testing.assert_allclose(reach, np.abs(y[:, 0]))
    weights = np.array([1.0, 2.0, 1.0, 2.0])
    weighted = smallest_levels(fitted, known, y, weights=weights)
    np.testing.assert_allclose(weighted, np.array([6.0, 4.0, 5.0, 2.0]) / (6 + 10 / 6))
    by_group = smallest_levels(fitted, known, y, np.array([1, 1, 0, 0]))
    np.testing.assert_allclose(by_group, [2 / 3, 1 / 3, 3 / 5, 1 / 5])


def test_the_level_of_a_set_is_that_of_the_more_probable_classes():
    known = types.SimpleNamespace(probabilities=np.array([[0.2, 0.7, 0.1]] * 3))
    found = smallest_levels(None, known, np.arange(3))
    np.testing.assert_allclose(found, [0.7, 0.0, 0.9], atol=2e-6)
    ranks = smallest_levels(ConformalSets([[0.5]]), known, np.arange(3))
    np.testing.assert_array_equal(ranks, np.array([2, 1, 3]) / 4)


def manifest(*names):
    features = [types.SimpleNamespace(name=name, tensor=name) for name in names]
    return types.SimpleNamespace(inputs="matrix", features=features)


@pytest.fixture
def tensors(monkeypatch):
    """Passes matrices as they are, which no manifest checks."""
    monkeypatch.setattr(
        "tfbbb.export.shift_reference.to_tensors", lambda x, manifest: {"inputs": x}
    )


def test_adapted_levels_cover_the_new_rows(tensors):
    # The noise depends on a category, which the model does not know.
    generator = np.random.default_rng(0)
    kinds, noise = np.array(["a", "b"]), np.array([1.0, 3.0])
    covered, at_most = [], []
    for _ in range(100):
        old = generator.choice(2, size=300, p=[0.8, 0.2])
        new = generator.choice(2, size=300, p=[0.4, 0.6])
        y = noise[old] * generator.normal(size=300)
        levels = 2.0 * stats.norm.cdf(np.abs(y)) - 1.0
        reference = ShiftReference.fit({"kind": kinds[old]}, levels)
        found = reference.adapt(kinds[new][:, None], manifest("kind"), [0.9])
        reach = stats.norm.ppf(0.5 + 0.5 * found.levels[0])
        covered.append(1.0 - 2.0 * stats.norm.sf(reach / noise) @ [0.4, 0.6])
        at_most.append(1.0 / found.effective_rows)
    error = 4.0 * stats.sem(covered)
    assert 0.9 - error < np.mean(covered) < 0.9 + np.mean(at_most) + error


def test_rows_like_those_of_the_calibration_leave_levels_as_they_are(tensors):
    x, new = np.random.default_rng(1).normal(size=(2, 300, 2))
    levels = np.linspace(0.01, 0.99, 300)
    reference = ShiftReference.fit({"a": x[:, 0], "b": x[:, 1]}, levels)
    found = reference.adapt(new, manifest("a", "b"), [0.5, 0.9])
    assert found.levels == (0.5, 0.9)
    assert found.effective_rows == found.num_rows == 300


def test_a_level_that_few_rows_cannot_give_is_refused(tensors):
    x = np.random.default_rng(0).normal(size=(60, 1))
    reference = ShiftReference.fit({"a": x[:, 0]}, np.linspace(0.01, 0.99, 60))
    with pytest.raises(ValueError, match=r"too few rows like the new ones.*0\.999"):
        reference.adapt(x + 0.8, manifest("a"), [0.5, 0.999])


def test_few_rows_have_no_reference():
    assert ShiftReference.fit({"a": np.arange(39.0)}, np.full(39, 0.5)) is None
    assert ShiftReference.fit({}, np.full(50, 0.5)) is None


def test_large_tables_keep_some_rows():
    columns = {f"x{i}": np.arange(3000.0) for i in range(499)}
    reference = ShiftReference.fit(columns, np.full(3000, 0.5))
    assert reference.rows.shape == (500, 500)
    few = ShiftReference.fit({"a": np.arange(3000.0)}, np.full(3000, 0.5))
    assert few.rows.shape == (2000, 2)
