"""Every training is judged beside baselines of the same rows."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV

from tests.training import trainings
from tfbbb.judging.evaluation import Baselines
from tfbbb.judging.evaluation.judgement import is_worse
from tfbbb.judging.evaluation.predicted_rows import PredictedRows
from tfbbb.tables import Schema
from tfbbb.tables.given_table import as_source
from tfbbb.tables.memory_rows import MemoryRows
from tfbbb.training.judging import TrainingBaselines, _sample

ROWS = trainings.ROWS
INPUTS, TARGETS = trainings.held_out()
MODEL = PredictedRows(np.zeros(ROWS), TARGETS, 0.9)


def judged_beside_baselines(
    rows, folds, inputs, targets, model, schema=trainings.SCHEMA
):
    measured = (schema, rows, folds, inputs, targets)
    baselines = TrainingBaselines.fit(*measured, discrete=False)
    return baselines.judge(model), baselines.of_all


def test_baselines_of_a_row_are_fitted_to_the_other_folds():
    folds = np.arange(ROWS)[np.newaxis] % 4
    judged, baselines = judged_beside_baselines(
        trainings.rows(), folds, INPUTS, TARGETS, MODEL
    )
    errors, ridge_errors = [], []
    whole = Baselines.fit(INPUTS, TARGETS)
    for fold in range(4):
        others, left_out = folds[0] != fold, folds[0] == fold
        errors.append(TARGETS[left_out] - TARGETS[others].mean())
        encoding = Baselines.fit(
            {name: values[others] for name, values in INPUTS.items()}, TARGETS[others]
        ).encoding
        features = encoding.transform(INPUTS)
        ridge = RidgeCV(np.logspace(-2, 4, 7)).fit(features[others], TARGETS[others, 0])
        ridge_errors.append(TARGETS[left_out, 0] - ridge.predict(features[left_out]))
    figures = judged["figures"]
    rmse = np.sqrt(np.mean(np.square(np.concatenate(errors))))
    assert figures["mean"]["rmse"] == pytest.approx(rmse)
    rmse = np.sqrt(np.mean(np.square(np.concatenate(ridge_errors))))
    assert figures["linear model"]["rmse"] == pytest.approx(rmse)
    assert figures["model"]["rmse"] == 0.0
    # Those that are stored with the model have seen all rows.
    assert baselines.models[0].bias == pytest.approx(TARGETS.mean())
    assert baselines.encoding == whole.encoding


def test_baselines_of_held_out_rows_are_fitted_to_the_training_rows():
    held_out = {"x": np.zeros(2), "word": np.array(["a", "b"], dtype=object)}
    rows, model = trainings.rows(), PredictedRows(np.zeros(2), TARGETS[:2], 0.9)
    judged, _ = judged_beside_baselines(rows, None, held_out, TARGETS[:2], model)
    errors = TARGETS[:2] - TARGETS.mean(dtype=np.float64)
    rmse = np.sqrt(np.mean(np.square(errors)))
    assert judged["figures"]["mean"]["rmse"] == pytest.approx(rmse, rel=1e-6)


def test_a_sample_of_rows_is_bounded(monkeypatch):
    monkeypatch.setattr("tfbbb.training.judging.MOST_ROWS", 20)
    inputs, targets, _ = _sample(trainings.rows(), None, 2)
    assert len(targets) == len(inputs["x"]) == 20
    assert set(targets[:, 0]) <= set(trainings.rows().targets()[:, 0])
    assert set(inputs["word"]) <= {"a", "b", ""}


def of_a_product(classes, rows=400):
    """A table that no linear model can learn, with its schema and rows."""
    generator = np.random.default_rng(1)
    table = {name: generator.normal(size=rows) for name in "ab"}
    product = np.sign(table["a"] * table["b"])
    noise = 0.3 * generator.standard_t(5, size=rows)
    table["y"] = np.where(product > 0, "up", "down") if classes else product + noise
    schema = Schema.infer(table, "y")
    rows = MemoryRows.read(schema, [as_source(table)], len(table["y"]))
    return schema, rows, schema.inputs(table), schema.targets(table)


@pytest.mark.parametrize(
    ("classes", "cross_fitted"), [(False, True), (True, True), (True, False)]
)
def test_gradient_boosting_judges_a_model_that_learns_no_product(classes, cross_fitted):
    schema, rows, inputs, targets = of_a_product(classes)
    folds = np.arange(len(targets))[np.newaxis] % 4 if cross_fitted else None
    measured = (schema, rows, folds, inputs, targets)
    baselines = TrainingBaselines.fit(*measured, discrete=False)
    assert list(baselines.predicted)[2] == "gradient boosting"
    assert [model.name for model in baselines.of_all.models] == (
        ["commonest class", "logistic model"] if classes else ["mean", "linear model"]
    )
    judged = baselines.judge(baselines.linear)
    figures = judged["figures"]["gradient boosting"]
    *warnings, advice = judged["warnings"]
    assert any("gradient boosting" in warning for warning in warnings)
    assert "HistGradientBoosting" in advice
    if classes:
        assert figures["accuracy"] > 0.95
        assert figures["log_likelihood"] > -0.2
    else:
        # The noise has a standard deviation of 0.3 sqrt(5 / 3) = 0.39.
        assert 0.38 < figures["rmse"] < 0.55
        assert figures["coverage_90"] == pytest.approx(
            0.9, abs=3 * np.sqrt(0.09 / len(targets))
        )


def test_a_model_as_good_as_gradient_boosting_is_not_told_of_trees():
    schema, rows, inputs, targets = of_a_product(classes=False)
    folds = np.arange(len(targets))[np.newaxis] % 4
    baselines = TrainingBaselines.fit(
        schema, rows, folds, inputs, targets, discrete=False
    )
    judged = baselines.judge(baselines.predicted["gradient boosting"])
    assert "The model is no better than gradient boosting." in judged["sentences"]
    assert not [text for text in judged["sentences"] if "HistGradient" in text]


@pytest.mark.parametrize(
    ("error", "likelihood", "worse"),
    [
        (0.0, 0.0, False),
        (-2.1, 3.0, True),
        (0.0, -2.1, True),
        # Less error, but less likelihood: calibration is at fault, not the network.
        (2.1, -2.1, False),
    ],
)
def test_a_model_is_worse_if_one_figure_is_and_its_error_is_not_better(
    error, likelihood, worse
):
    assert (
        is_worse({"error": {"z": error}, "log_likelihood": {"z": likelihood}}) is worse
    )


def test_without_time_no_gradient_boosting_judges():
    baselines = TrainingBaselines.fit(
        trainings.SCHEMA,
        trainings.rows(),
        np.arange(ROWS)[np.newaxis] % 4,
        INPUTS,
        TARGETS,
        discrete=False,
        seconds=0.0,
    )
    assert list(baselines.predicted) == ["mean", "linear model"]
    judged = baselines.judge(baselines.predicted["linear model"])
    assert (
        judged["sentences"][-1]
        == "Gradient boosting would take too long to judge the model."
    )
    assert judged["sentences"][-1] not in judged["warnings"]
