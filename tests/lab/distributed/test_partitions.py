import numpy as np
import pyarrow as pa
import pytest

from tfbbb.training import JobSpec, SpecError, train_table
from tfbbb.training.preparation import prepare
from tfbbb.training.progress import Interrupted
from tfbbb.training.record import TrainingRecord

ROWS = 120
HELD_OUT = 12


def spec(partitions, hidden_units=(), likelihood=None, **training):
    return JobSpec.model_validate(
        {
            "target": "y",
            "model": {
                "hidden_units": hidden_units,
                "numeric_encoding": "standardized",
                "likelihood": likelihood or {"name": "normal", "scale": 0.5},
            },
            "training": {"partitions": partitions, "epochs": 60, **training},
        }
    )


NETWORK = spec(3, hidden_units=(6,), likelihood="normal", epochs=4)


@pytest.fixture(scope="module")
def table():
    generator = np.random.default_rng(0)
    x = generator.normal(size=ROWS)
    words = generator.choice(["a", "b"], size=ROWS)
    y = x + (words == "b") + 0.5 * generator.normal(size=ROWS)
    return pa.table({"x": x, "word": words, "y": y})


@pytest.fixture(scope="module")
def training(table):
    """A trained table, and the reports of its training."""
    reports = []
    return train_table(table, NETWORK, report=reports.append), reports


@pytest.fixture(scope="module")
def trained(training):
    return training[0]


@pytest.fixture(scope="module")
def reports(training):
    return training[1]


def posterior(trained):
    """Means and standard deviations of all weights."""
    weights = trained.model.variational_weights
    return np.concatenate([np.ravel(v) for w in weights for v in (w.mean, w.stddev)])


def test_linear_posterior_is_the_same_for_any_partitions(table):
    two, five = (train_table(table, spec(number)) for number in (2, 5))
    assert two.recipe["partitions"]["rows"] == [54, 54]
    # The weights of `word` and the bias are collinear: they approach the optimum slowly
    # along the direction that changes no prediction.
    first, second = (t.model.predictive(t.schema.inputs(table)) for t in (two, five))
    np.testing.assert_allclose(first.mean, second.mean, atol=1e-4)
    np.testing.assert_allclose(first.stddev, second.stddev, rtol=1e-4)


def test_recipe_describes_the_partitions(trained):
    assert trained.recipe["chosen"]["partitions"] == 3
    assert trained.recipe["chosen"]["members"] == 1
    found = trained.recipe["partitions"]
    assert (found["number"], found["by"], found["rows"]) == (3, "chance", [36] * 3)
    assert found["rounds"] == 4
    assert len(trained.held_out_rows) == HELD_OUT


def test_each_round_is_reported(reports):
    assert [(at.epoch, at.epochs) for at in reports] == [(n, 4) for n in (1, 2, 3, 4)]
    assert reports[0].stage == "training in 3 partitions, divided by chance"
    assert all(at.figures["change"] > 0 for at in reports)


def test_interrupted_training_starts_again_with_the_same_result(table, trained):
    asked = []

    def should_stop():
        asked.append(True)
        return len(asked) == 2

    with pytest.raises(Interrupted, match="after 2 of 4 rounds"):
        train_table(table, NETWORK, should_stop=should_stop)
    again = train_table(table, NETWORK)
    np.testing.assert_array_equal(posterior(again), posterior(trained))


def test_time_limit_ends_the_training_after_a_round(table):
    hurried = spec(2, hidden_units=(6,), likelihood="normal", max_seconds=1e-3)
    trained = train_table(table, hurried)
    assert trained.recipe["partitions"]["rounds"] == 1
    assert trained.recipe["out_of_time"]


def test_rows_of_partitions_are_read_from_disk(table, tmp_path, monkeypatch):
    in_memory = prepare(table, NETWORK).rows
    monkeypatch.setattr("tfbbb.training.preparation.BYTES_PER_GROUP", 0)
    monkeypatch.setattr("tfbbb.tables.stored_rows._BYTES_PER_BLOCK", 64)
    on_disk = prepare(table, NETWORK, directory=tmp_path).rows
    places = np.array([0, 5, 6, 50, 107])
    (x, y), (same_x, same_y) = in_memory.at(places), on_disk.at(places)
    np.testing.assert_array_equal(y, same_y)
    for name, values in x.items():
        np.testing.assert_array_equal(values, same_x[name])
    np.testing.assert_array_equal(y, in_memory.targets()[places])


def test_exported_version_can_be_a_parent(trained, tmp_path):
    version = trained.export(tmp_path / "line")
    record = TrainingRecord.read(version)
    assert record.spec.training.partitions == 3
    fields = {"target": "y", "start_from": {"model": "line", "version": 1}}
    new = pa.table({"x": [0.0] * 30, "word": ["a"] * 30, "y": np.arange(30.0)})
    continued = train_table(
        new, {**fields, "training": {"epochs": 1}}, start_from=version
    )
    assert continued.num_training_rows == 27


def test_more_partitions_than_rows_are_refused(table):
    with pytest.raises(SpecError, match="109 partitions of 108 rows"):
        train_table(table, spec(109))


def test_rows_in_partitions_have_no_weights(table):
    weights = np.arange(1.0, ROWS + 1)
    with pytest.raises(ValueError, match="Received: partitions=2"):
        train_table(table, spec(2), row_weights=weights)
