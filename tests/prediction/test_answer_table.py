"""The table of predictions: names, order and values of its columns."""

import numpy as np

from tfbbb.prediction.answer_table import answer_table

LEVELS = {"intervals": [0.5, 0.975, 5e-05], "quantiles": [0.1]}


def names(outputs, levels=LEVELS, classes=None):
    return answer_table(outputs, levels, classes).column_names


def test_bounds_stand_in_pairs_named_by_percentages():
    outputs = {name: np.zeros((2, 3, 1)) for name in ("lower", "upper")}
    assert names(outputs) == [
        *("lower_50", "upper_50", "lower_97.5", "upper_97.5"),
        *("lower_0.005", "upper_0.005"),
    ]


def test_numbers_have_one_order_and_nothing_else():
    asked = ("variance", "aleatoric", "epistemic", "std", "mean", "mean_standard_error")
    outputs = {name: np.zeros((2, 1)) for name in asked}
    outputs["familiarity"] = np.zeros(2)
    assert names(outputs) == ["mean", "std", "epistemic", "aleatoric", "familiarity"]


def test_several_targets_and_places_are_counted_from_one():
    outputs = {"mean": np.zeros((2, 2)), "quantiles": np.zeros((2, 1, 2))}
    assert names(outputs) == ["mean_1", "mean_2", "quantile_10_1", "quantile_10_2"]
    assert names({"mean": np.zeros((2, 2, 1))}) == ["mean_1", "mean_2"]
    assert names({"samples": np.zeros((5, 2, 1))}) == ["sample_1", "sample_2"]


def test_a_class_named_na_stays_a_text():
    outputs = {
        "class": ["NA", "nan"],
        "probabilities": [[0.9, 0.1], [0.2, 0.8]],
        "prediction_sets": [[["NA"]], [["NA", "nan"]]],
    }
    table = answer_table(outputs, {"prediction_sets": [0.9]}, ["NA", "nan"])
    assert table.to_pydict() == {
        "class": ["NA", "nan"],
        "probability_NA": [0.9, 0.2],
        "probability_nan": [0.1, 0.8],
        "prediction_set_90": ['["NA"]', '["NA", "nan"]'],
    }


def test_unknown_numbers_and_rows_without_warnings_are_empty():
    outputs = {"log_prob": np.array([-1.5, np.nan])}
    table = answer_table(outputs, {}, warnings=[["Far.", "Old."], []])
    assert table.to_pydict() == {
        "log_prob": [-1.5, None],
        "warnings": ["Far. Old.", None],
    }
