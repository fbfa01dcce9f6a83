"""Intervals, sets, densities, methods and familiarity, as the service answers them."""

from dataclasses import replace

import numpy as np
import orjson
import pytest

import tfbbb
from service.predicting.answer import VersionName, prepare
from service.predicting.codecs import CODECS
from service.predicting.scores import score
from service.predicting.targets import read_targets
from service.shared.errors import InvalidRequest
from service.shared.settings import Settings
from tests.served_answer import served, served_answer
from tests.service.predicting.exporting import CLASSES, exported, network
from tfbbb.export.manifest import InputError
from tfbbb.prediction.questions import question_named
from tfbbb.prediction.recalibration import ConformalIntervals
from tfbbb.tables.notations.number import NumberNotation

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(4, 2)).astype("float32")
X[:, 1] = [0, 1, 1, 0]
ROWS = X.tolist()


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    """A model with a group of its own for the value 1 of the second feature."""
    scores = [np.linspace(0.1, 1.9, 19).tolist()]
    conformal = ConformalIntervals(
        scores, by=1, groups=[1.0], group_scores=[[[5.0] * 19]]
    )
    model = network(hidden=0)
    model.recalibration = conformal
    return exported(model, tmp_path_factory.mktemp("numbers") / "1")


def asked(model, **body):
    return served_answer(model, {"instances": ROWS} | body)


def test_intervals_of_each_group_are_answered(numbers):
    found = asked(numbers, parameters={"intervals": [0.5, 0.9], "num_samples": 20})
    prediction = numbers.predictive(X, num_samples=20)
    for place, level in enumerate((0.5, 0.9)):
        bounds = prediction.interval(level)
        for name, expected in zip(("lower", "upper"), bounds, strict=True):
            values = [row[name][place] for row in found["predictions"]]
            np.testing.assert_allclose(values, expected, rtol=1e-5)
    half = prediction.interval(0.9)[1] - prediction.mean
    reach = [1.8, 5.0, 5.0, 1.8]
    np.testing.assert_allclose(half / prediction.stddev, np.c_[reach], rtol=1e-6)


def test_formats_say_what_calibrates_levels(numbers):
    expected = {
        "quantiles": "none: quantiles of the predictive distribution",
        "intervals": "conformal on 19 held-out rows, by 'x1'",
    }
    levels = {"quantiles": [0.05, 0.95], "intervals": [0.9]}
    assert asked(numbers, parameters=levels)["calibration"] == expected
    assert "calibration" not in asked(numbers)

    texts = {name: ",".join(map(str, given)) for name, given in levels.items()}
    body = b"x0,x1\n0.5,1\n"
    answer = served(numbers, "csv", body, texts)
    assert orjson.loads(answer.headers["Calibration"]) == expected

    tensor = {"name": "inputs", "shape": [4, 2], "datatype": "FP32", "data": ROWS}
    body = orjson.dumps({"inputs": [tensor], "parameters": texts})
    answer = served(numbers, "open_inference", body)
    said = orjson.loads(answer.body)["parameters"]["calibration"]
    assert orjson.loads(said) == expected


SCALED = {"class_name": "VarianceScaling", "config": {"factors": [1.5]}}


@pytest.mark.parametrize(
    ("question", "recalibration", "expected"),
    [
        ("intervals", SCALED, "variance scaling on 40 held-out rows"),
        (
            "prediction_sets",
            {"class_name": "ConformalSets", "config": {"scores": [[0.1, 0.2]]}},
            "conformal on 2 held-out rows",
        ),
    ],
)
def test_the_calibration_is_that_of_the_manifest(
    numbers, question, recalibration, expected
):
    manifest = replace(
        numbers.manifest,
        recalibration=recalibration,
        recalibration_choice={"num_rows": 40},
    )
    assert manifest.describe_calibration(question_named(question)) == expected


def test_targets_get_their_log_density(numbers):
    targets = [0.5, [1.0], -2, 3.25]
    found = asked(numbers, targets=targets, parameters={"num_samples": 20})
    values = [row["log_prob"] for row in found["predictions"]]
    expected = numbers.predictive(X, num_samples=20).log_prob([0.5, 1.0, -2, 3.25])
    np.testing.assert_allclose(values, expected, rtol=1e-5)


def test_sets_are_answered_with_the_names_of_classes(classes):
    found = asked(classes, parameters={"prediction_sets": [0.4, 0.9]})
    sets = [row["prediction_sets"] for row in found["predictions"]]
    for place, level in enumerate((0.4, 0.9)):
        inside = classes.predictive(X).prediction_set(level)
        for row, members in zip(sets, inside, strict=True):
            assert row[place] == [CLASSES[i] for i in np.flatnonzero(members)]
    assert all(len(row[0]) == 1 for row in sets)
    assert any(len(row[1]) > 1 for row in sets)


def test_names_of_classes_get_their_log_probability(classes):
    found = asked(classes, targets=["red", "blue", "green", "red"])
    values = [row["log_prob"] for row in found["predictions"]]
    rows = [row["probabilities"] for row in found["predictions"]]
    expected = np.log([rows[0][0], rows[1][2], rows[2][1], rows[3][0]])
    np.testing.assert_allclose(values, expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ([1.0], r"one target for each of the 4 rows\. Received: 1 targets"),
        ([0.5, 1, [1, 2], 1], r"Row 3: the target must be a number, finite"),
    ],
)
def test_targets_that_do_not_fit_are_refused_with_their_row(numbers, targets, message):
    with pytest.raises(InputError, match=message):
        asked(numbers, targets=targets)


def test_an_unseen_class_has_no_density_but_a_warning(classes):
    found = asked(classes, targets=["red", "pink", "red", "red"])
    known = asked(classes, targets=["red"] * 4)["predictions"]
    densities = [row["log_prob"] for row in found["predictions"]]
    expected = [row["log_prob"] for row in known]
    assert densities == [expected[0], None, *expected[2:]]
    assert found["predictions"][1]["warnings"][-1] == (
        "The target 'pink' is a class unseen in training; it has no log_prob."
    )


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("unknown", "is not a number"),
        (
            1e300,
            r"is outside of what the model predicts (finite numbers, 1e+18 at most "
            "in size)",
        ),
        (None, None),
    ],
)
def test_a_target_that_is_no_number_has_no_density_but_a_warning(
    numbers, target, reason
):
    found = asked(numbers, targets=[0.5, target, "1", -2.0])["predictions"]
    known = asked(numbers, targets=[0.5, 0, 1, -2])["predictions"]
    densities = [row["log_prob"] for row in known]
    assert [row["log_prob"] for row in found] == [densities[0], None, *densities[2:]]
    warning = f"The target {target!r} {reason}; it has no log_prob."
    if reason is not None:
        assert found[1]["warnings"][-1] == warning
    alone = asked(numbers, targets=[target] * 4)
    assert [row["log_prob"] for row in alone["predictions"]] == [None] * 4


def test_written_targets_are_read_as_those_of_training(numbers):
    notation = NumberNotation(thousands=",", currency=True, bounds=True).to_dict()
    manifest = replace(numbers.manifest, target_notation=notation)
    found = read_targets(["$1,200", "<5", "free", 3, None], manifest, 5)
    np.testing.assert_array_equal(found.values[:, 0], [1200, 5, np.nan, 3, np.nan])
    assert [*found.unusable] == [2]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("unknown", "Row 2: the target 'unknown' is not a number"),
        (None, "Row 2 has no"),
    ],
)
def test_feedback_without_a_target_to_use_is_refused(numbers, target, message):
    query = CODECS["json"].read(
        orjson.dumps({"instances": ROWS, "targets": [1, target, 1, 1]}), {}
    )
    request = prepare(VersionName("m", 1), numbers.manifest, query, Settings())
    with pytest.raises(InputError, match=message):
        score(numbers, request)


@pytest.mark.parametrize(
    ("model", "parameters", "message"),
    [
        ("numbers", {"prediction_sets": [0.9]}, "numbers, which have no prediction se"),
        ("classes", {"intervals": [0.9]}, "no order and thus no intervals"),
        ("numbers", {"method": "linearised"}, "no such method"),
        ("numbers", {"method": "magic"}, "`parameters.method`"),
        ("numbers", {"intervals": [0.9, 0.99]}, r"takes 99 held-out rows.*level=0\.99"),
    ],
)
def test_parameters_that_do_not_fit_the_model_are_refused(
    request, model, parameters, message
):
    with pytest.raises(InvalidRequest, match=message):
        asked(request.getfixturevalue(model), parameters=parameters)


@pytest.mark.parametrize("method", ["auto", "weight"])
def test_method_is_that_of_the_live_prediction(plain_numbers, method):
    parameters = {"num_samples": 30, "seed": 4, "quantiles": [0.1], "intervals": [0.5]}
    answer = asked(plain_numbers, parameters=parameters | {"method": method})
    expected = plain_numbers.predictive(X, 30, method, 4)
    lower, upper = expected.interval(0.5)
    for name, values in {
        "mean": expected.mean,
        "variance": expected.variance,
        "quantiles": expected.ask("quantiles", [0.1]),
        "lower": lower[:, np.newaxis],
        "upper": upper[:, np.newaxis],
    }.items():
        found = np.array([row[name] for row in answer["predictions"]])
        np.testing.assert_allclose(
            found, np.reshape(values, found.shape), rtol=1e-5, err_msg=name
        )
    # A version without a reference of its training rows tells no familiarity.
    assert "familiarity" not in answer["predictions"][0]


def test_each_row_has_its_familiarity_and_the_least_one_a_warning(tmp_path):
    model = network("normal", 1, hidden=0)
    seen = np.random.default_rng(0).normal(size=(200, 2)).astype("float32")
    model.familiarity = tfbbb.Familiarity.fit(seen)
    version = exported(model, tmp_path / "1", num_samples=50)
    rows = np.array([[0.1, 0.2], [-0.3, 0.1], [40.0, -30.0]])
    found = served_answer(version, {"instances": rows.tolist()})["predictions"]
    familiarity = [row["familiarity"] for row in found]
    np.testing.assert_allclose(familiarity, version.familiarity(rows))
    assert ["warnings" in row for row in found] == [False, False, True]
