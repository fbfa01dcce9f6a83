"""Explanations of models whose importance and effects have closed forms."""

import json

import numpy as np
import pytest
from scipy.stats import norm

from tests.judging.explain.known_model import DEVIATION, NOISE, SLOPE, Classes, Line
from tfbbb.judging.evaluation.input_encoding import InputEncoding
from tfbbb.judging.explain import explain
from tfbbb.judging.explain.effects import effect
from tfbbb.judging.explain.importance import permutation_importance
from tfbbb.judging.explain.unusual_rows import least_like_training
from tfbbb.judging.explain.variance_split import variance_split
from tfbbb.tables.values import MISSING_DATE

ROWS = 900
RNG = np.random.default_rng(0)
X = RNG.normal(size=ROWS)
KIND = RNG.choice(["a", "b", "b"], size=ROWS).astype(object)
INPUTS = {"kind": KIND, "x": X}
Y = (SLOPE * X + NOISE * RNG.normal(size=ROWS))[:, np.newaxis]


def test_importance_is_the_loss_of_log_likelihood_and_the_rise_of_the_error():
    first, second = permutation_importance(Line(), INPUTS, Y, repeats=4)
    assert (first.name, second.name) == ("x", "kind")
    # Two independent values of x differ by a variance of 2.
    error = np.sqrt(NOISE**2 + 2 * SLOPE**2) - NOISE
    assert abs(first.error - error) < 4 * first.error_standard_error
    assert first.error_standard_error < 0.1 * error
    # E_z[log N(y; w x)] - E_z'[log N(y; w x')] with a variance that hardly varies.
    nats = 2 * SLOPE**2 / (2 * NOISE**2)
    assert first.nats == pytest.approx(nats, rel=0.2)
    assert second.nats == second.error == second.nats_standard_error == 0.0
    # Two values of x differ by sqrt(2), and the width is hardly theirs.
    assert first.mean_change == pytest.approx(np.sqrt(2) * SLOPE, rel=0.1)
    assert first.width_change < 0.2 * first.mean_change
    assert second.mean_change == second.width_change == 0.0


class Fan:
    """Predictions whose mean is that of one column, and whose width of another."""

    def predictive(self, x, *arguments, **options):
        location, log_scale = np.asarray(x, np.float64).T
        outputs = np.stack([location, np.exp(0.5 * log_scale)], axis=1)
        return FanPrediction(outputs)


class FanPrediction:
    def __init__(self, outputs):
        self.mean, self.stddev = outputs[:, :1], outputs[:, 1:]

    def log_prob(self, y):
        return norm.logpdf(y, self.mean, self.stddev)[:, 0]


def test_the_column_that_makes_an_answer_unsure_moves_its_width():
    x = RNG.normal(size=(ROWS, 2))
    y = x[:, :1] + np.exp(0.5 * x[:, 1:]) * RNG.normal(size=(ROWS, 1))
    found = permutation_importance(Fan(), x, y, names=["mean", "width"])
    found = {one.name: one for one in found}
    assert found["mean"].width_change == found["width"].mean_change == 0.0
    assert found["mean"].mean_change == pytest.approx(np.sqrt(2), rel=0.1)
    # exp(z / 2) of a normal z has the variance (e^(1/4) - 1) e^(1/4).
    spread = np.sqrt(2 * (np.exp(0.25) - 1) * np.exp(0.25))
    assert found["width"].width_change == pytest.approx(spread, rel=0.15)


def test_standard_errors_are_those_of_repeated_tables():
    found = []
    for seed in range(40):
        generator = np.random.default_rng(seed)
        x = generator.normal(size=150)
        y = (SLOPE * x + NOISE * generator.normal(size=150))[:, np.newaxis]
        inputs = {"x": x}
        (one,) = permutation_importance(Line(), inputs, y, seed=seed)
        found.append((one.error, one.error_standard_error))
    errors, standard_errors = np.transpose(found)
    # The standard deviation of 40 values has a relative error of 11 %.
    assert errors.std(ddof=1) == pytest.approx(standard_errors.mean(), rel=0.33)


def test_importance_of_classes_is_the_loss_of_accuracy():
    x = np.stack([X, RNG.normal(size=ROWS)], axis=1)
    labels = (RNG.uniform(size=ROWS) < np.where(X > 0, 0.9, 0.2)).astype(int)
    first, second = permutation_importance(Classes(), x, labels, names=["x", "z"])
    positive = np.mean(X > 0)
    right = positive * 0.9 + (1 - positive) * 0.8
    share = np.mean(labels)
    shuffled = positive * share + (1 - positive) * (1 - share)
    assert first.name == "x"
    assert abs(first.error - (right - shuffled)) < 4 * first.error_standard_error + 0.02
    assert second.nats == second.error == 0.0


def test_the_effect_of_a_line_is_the_line_with_the_band_of_its_slope():
    found = effect(Line(), INPUTS, "x", draws=2000)
    values = np.array(found.values)
    np.testing.assert_allclose(found.mean, SLOPE * values)
    half = norm.ppf(0.95) * DEVIATION * np.abs(values)
    # A quantile at 5 % of 2000 draws has a standard error of 2.1 sqrt(.05 .95 / 2000).
    np.testing.assert_allclose(found.upper - found.mean, half, rtol=0.12)
    np.testing.assert_allclose(found.mean - found.lower, half, rtol=0.12)
    flat = effect(Line(), INPUTS, "kind")
    assert flat.values == ("b", "a")
    assert not flat.between
    assert flat.range == 0.0
    with pytest.raises(ValueError, match="The model reads 'kind', 'x'"):
        effect(Line(), INPUTS, "y")


def test_the_split_of_the_variance_adds_up_by_row():
    split = variance_split(Line().predictive(INPUTS))
    np.testing.assert_allclose(split.epistemic, (DEVIATION * X) ** 2)
    np.testing.assert_allclose(
        split.epistemic_share, split.epistemic / (split.epistemic + NOISE**2)
    )
    prediction = Classes().predictive(X[:, np.newaxis])
    split = variance_split(prediction)
    np.testing.assert_allclose(split.epistemic + split.aleatoric, prediction.entropy)
    np.testing.assert_allclose(split.epistemic_share, 0.1)


def test_the_rows_least_like_training_are_the_least_familiar():
    new = {"x": np.array([0.5, 1.0, 30.0])}
    split = variance_split(Line().predictive(new))
    first, second, third = least_like_training(split)
    assert [first.row, second.row, third.row] == [2, 1, 0]
    assert first.ratio == pytest.approx(900.0)
    familiarity = np.array([0.5, 0.01, 0.01])
    ordered = least_like_training(split, familiarity)
    assert [(u.row, u.familiarity) for u in ordered] == [(2, 0.01), (1, 0.01), (0, 0.5)]


def test_dates_are_shown_as_dates_and_may_be_missing():
    day = np.where(X > 1.5, MISSING_DATE, 86400 * np.arange(len(X)))
    inputs = {"day": day, "x": X}
    encoding = InputEncoding.fit(inputs)
    assert encoding.columns[0].missing
    assert np.all(np.abs(encoding.transform(inputs)) < 10)
    found = explain(Line(), inputs)
    values = {entry["name"]: entry["values"] for entry in found.to_dict()["effects"]}
    assert values["day"][0].startswith("1970-01")


def test_an_explanation_is_json_and_counts_rows_from_one():
    found = explain(Line(), INPUTS, Y, target="y", max_rows=300)
    values = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    rows = np.array(values["uncertainty"]["row"])
    assert len(rows) == 300
    assert np.all(np.diff(rows) > 0)
    np.testing.assert_allclose(
        values["uncertainty"]["epistemic"], (DEVIATION * X[rows - 1]) ** 2
    )
    unusual = values["least_like_training"]["rows"][0]
    assert abs(X[unusual["row"] - 1]) == np.max(np.abs(X[rows - 1]))
    assert [entry["name"] for entry in values["importance"]] == ["x", "kind"]
    without = explain(Line(), INPUTS).to_dict()
    assert without["importance"] is None
    assert without["effects"][0]["name"] == "x"
