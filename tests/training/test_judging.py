"""Every training is judged beside baselines of the same rows."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV

from tests.training import trainings
from tfbbb.judging.evaluation import Baselines, PredictedRows
from tfbbb.tables.row_layout import RowLayout
from tfbbb.training.judging import _sample, judge_training

ROWS = trainings.ROWS
INPUTS, TARGETS = trainings.held_out()
MODEL = PredictedRows(np.zeros(ROWS), TARGETS, 0.9)


def test_baselines_of_a_row_are_fitted_to_the_other_folds():
    folds = np.arange(ROWS)[np.newaxis] % 4
    judged, baselines = judge_training(
        trainings.SCHEMA,
        trainings.rows(),
        folds,
        INPUTS,
        TARGETS,
        MODEL,
        discrete=False,
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


def test_baselines_of_held_out_rows_are_fitted_to_the_training_rows(tmp_path):
    held_out = {"x": np.zeros(2), "word": np.array(["a", "b"], dtype=object)}
    for rows in (trainings.rows(), trainings.stored_rows(tmp_path / "rows")):
        judged, _ = judge_training(
            trainings.SCHEMA,
            rows,
            None,
            held_out,
            TARGETS[:2],
            PredictedRows(np.zeros(2), TARGETS[:2], 0.9),
            discrete=False,
        )
        errors = TARGETS[:2] - TARGETS.mean(dtype=np.float64)
        rmse = np.sqrt(np.mean(np.square(errors)))
        assert judged["figures"]["mean"]["rmse"] == pytest.approx(rmse, rel=1e-6)


def test_a_sample_of_stored_rows_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("tfbbb.training.judging.MOST_ROWS", 20)
    inputs, targets = _sample(trainings.stored_rows(tmp_path / "rows"), 2)
    assert len(targets) == len(inputs["x"]) == 20
    rows = RowLayout(trainings.SCHEMA).encode(trainings.table())
    assert set(targets[:, 0]) <= set(rows[:, -1])
    assert set(inputs["word"]) <= {"a", "b", ""}
