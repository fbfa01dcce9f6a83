"""Jobs recalibrate their models on held-out rows."""

import numpy as np
import pyarrow as pa
import pytest

import tfbbb
from tests.prediction.recalibration.known_models import (
    DRAWS,
    X,
    drawn,
    network,
    spread_out,
)
from tests.trained import trained_table
from tfbbb.export.manifest import Manifest
from tfbbb.prediction.recalibration import ConformalIntervals
from tfbbb.tables import Schema
from tfbbb.training import JobSpec, train_table
from tfbbb.training.left_out_error import Trial
from tfbbb.training.recalibration import calibrate
from tfbbb.training.spec import SpecError
from tfbbb.training.temperature_choice import TemperatureChoice

ROWS = 300
SPREADS = {"north": 0.2, "south": 2.0}


def spec(recalibration, **training):
    options = {"epochs": 1, "validation": {"fraction": 0.5}} | training
    options = {"kl_schedule": "constant"} | options
    fields = {"target": "y", "recalibration": recalibration, "training": options}
    model = {"hidden_units": [16], "likelihood": "normal", "members": 2}
    return JobSpec.model_validate(fields | {"model": model})


@pytest.fixture(scope="module")
def table():
    """Noise that depends on the region, which a homoscedastic network misses."""
    generator = np.random.default_rng(0)
    region = generator.choice(list(SPREADS), size=ROWS)
    x = generator.normal(size=ROWS)
    noise = np.array([SPREADS[name] for name in region]) * generator.normal(size=ROWS)
    return pa.table({"x": x, "region": region, "y": 100 + 5 * x + noise})


@pytest.fixture(scope="module")
def by_region(table):
    options = {"name": "conformal_intervals", "density": "variance_scaling"}
    return trained_table(table, spec(options | {"by": "region"}, epochs=60))


def test_each_group_of_a_job_covers_the_level(table, by_region):
    made = by_region.model.recalibration
    assert isinstance(made, ConformalIntervals)
    assert (made.by, made.group_values) == ("region", ("north", "south"))
    groups = by_region.recalibration_choice["groups"]
    for group in groups:
        error = np.sqrt(0.09 * (1 + 5 / 4) / group["num_rows"])
        assert abs(group["coverage_90"] - 0.9) < 4 * error
    widths = {}
    for name in SPREADS:
        rows = {"x": np.zeros(1, "float32"), "region": np.array([name])}
        lower, upper = by_region.model.predictive(rows).interval(0.9)
        widths[name] = (upper - lower).item()
    assert widths["south"] > 3 * widths["north"]


def test_figures_are_those_of_rows_that_fitted_nothing(by_region):
    choice, metrics = by_region.recalibration_choice, by_region.metrics
    none, chosen = choice["tried"]
    assert choice["before"]["log_likelihood"] == none["log_likelihood"]
    assert metrics["log_likelihood"] == chosen["log_likelihood"]
    assert metrics["coverage_90"] == chosen["coverage_90"]
    assert metrics["rmse"] == pytest.approx(choice["before"]["rmse"])
    assert choice["folds"] == 5
    assert choice["num_rows"] == len(by_region.held_out_rows)


def test_the_manifest_says_what_was_chosen_and_why(by_region, tmp_path):
    path = by_region.export(tmp_path)
    manifest = Manifest.read(path)
    assert manifest.recalibration_choice == by_region.recalibration_choice
    assert manifest.recalibration["class_name"] == "ConformalIntervals"
    loaded = tfbbb.load(path)
    rows = {"x": [0.0, 0.0, 0.0], "region": ["north", "south", "elsewhere"]}
    lower, upper = loaded.predictive(rows).interval(0.9)
    widths = (upper - lower)[:, 0]
    assert widths[0] < widths[2] < widths[1]


def test_the_default_is_chosen_by_the_held_out_rows(table):
    assert JobSpec(target="y").recalibration.name == "auto"
    trained = train_table(table, spec("auto"))
    choice = trained.recalibration_choice
    assert choice["method"] == "auto"
    tried = {found["name"]: found["log_likelihood"] for found in choice["tried"]}
    density = choice["chosen"].removesuffix("conformal_intervals").rstrip(", ")
    best = max(tried.values())
    assert tried[density or "none"] > best - 0.1
    assert trained.metrics["log_likelihood"] >= tried["none"]


@pytest.mark.slow
def test_numbers_are_groups_of_a_matrix(table):
    sites = np.random.default_rng(1).integers(1, 3, size=ROWS).astype(float)
    numbers = pa.table({"x": table["x"], "site": sites, "y": table["y"]})
    by_site = {"name": "auto", "by": "site"}
    trained = trained_table(numbers, spec(by_site, epochs=1))
    assert trained.schema.input_format == "matrix"
    assert trained.model.recalibration.by == 1
    assert trained.model.recalibration.group_values == (1.0, 2.0)


def test_classes_get_prediction_sets():
    generator = np.random.default_rng(0)
    x = generator.normal(size=ROWS)
    names = np.array(["low", "high", "rare"])
    y = names[(x + generator.normal(size=ROWS) > 0).astype(int)]
    y[:3] = "rare"
    fields = spec("auto").model_dump() | {"recalibration": "conformal_sets"}
    fields["model"]["likelihood"] = None
    trained = train_table(pa.table({"x": x, "y": y}), fields)
    assert trained.recalibration_choice["chosen"] == "conformal_sets"
    tried = trained.recalibration_choice["tried"][1]
    assert abs(tried["coverage_90"] - 0.9) < 4 * np.sqrt(0.09 * 2 / 120)


@pytest.mark.parametrize(
    ("recalibration", "likelihood", "message"),
    [
        ("temperature", None, "for a classification, but the task of the target is r"),
        ({"name": "auto", "by": "city"}, None, "told apart by a feature.*'city'"),
        ("variance_scaling", "gamma", "does not suit the target: Scaling about"),
    ],
)
def test_a_recalibration_that_does_not_fit_is_refused_before_training(
    table, recalibration, likelihood, message
):
    fields = {"target": "y", "recalibration": recalibration}
    with pytest.raises(SpecError, match=message):
        train_table(table, {**fields, "model": {"likelihood": likelihood}})


def calibrated(y, gain, gain_of_intervals, **options):
    """What a model is recalibrated by, if members that left out folds predict y."""
    model, x = network(), X[: len(y)]
    columns = {f"x{i}": x[:, i] for i in range(3)}
    schema = Schema.infer({**columns, "y": y[:, 0]}, "y")
    crossed = TemperatureChoice(
        model=model,
        best=Trial(1.0, 0.0, 1.0),
        gain=gain,
        gain_of_intervals=gain_of_intervals,
        trials=(),
        prediction=model.predictive(x, num_samples=DRAWS),
    )
    part = JobSpec(target="y").recalibration
    found = calibrate(model, part, schema, x, y, crossed, **options)
    return model.recalibration, found.choice


@pytest.mark.slow
def test_a_recalibration_is_extrapolated_to_all_members():
    y = spread_out(network(), X[:400], 2.5)
    before, _ = calibrated(y, 1.0, 1.0)
    after, choice = calibrated(y, 0.8, 0.6)
    assert isinstance(after, ConformalIntervals)
    assert choice["chosen"] == "variance_scaling, conformal_intervals"
    assert choice["reason"].endswith("its factor is 0.8 times theirs.")
    (factor,), (unscaled,) = after.density.factors, before.density.factors
    assert factor == pytest.approx(0.8 * unscaled)
    # Scores are in standard deviations of the density, which are 0.8 times as large.
    scores = np.multiply(before.scores, 0.6 / 0.8)
    np.testing.assert_allclose(after.scores, scores)


def test_the_choice_says_that_all_members_have_a_factor_of_their_own():
    # Too few rows for any fit.
    y = drawn(network(), X[:20])
    none, choice = calibrated(y, 1.0, 1.0)
    assert (none, choice["chosen"]) == (None, "none")
    found, choice = calibrated(y, 0.8, 0.7)
    assert found == tfbbb.recalibration.VarianceScaling(0.8)
    assert choice["chosen"] == "variance_scaling"
    # The factor that was chosen comes first, then why the others have none.
    mixture, others = choice["reason"].split(" About them: ")
    assert mixture.endswith("its factor is 0.8, and theirs is 1.")
    assert "needs 25 held-out rows" in others


def test_in_haste_one_factor_is_taken_without_a_choice():
    y = spread_out(network(), X[:100], 2.5)
    found, choice = calibrated(y, 1.0, 1.0, in_haste=True)
    assert isinstance(found, tfbbb.recalibration.VarianceScaling)
    assert choice["chosen"] == "variance_scaling"
    # Conformal intervals, which would help, are not tried.
    names = [tried["name"] for tried in choice["tried"]]
    assert names == ["none", "variance_scaling"]
    assert choice["reason"] == "`max_seconds` left no time to choose a recalibration."
