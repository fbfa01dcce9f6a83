import keras
import numpy as np
import pyarrow as pa
import pytest

from tfbbb.data import TableError
from tfbbb.diverged_training import TrainingDivergedError
from tfbbb.export.manifest import Manifest
from tfbbb.training import held_out_figures, make_network, train_table

ROWS = 400
NOISE = 2.0


@pytest.fixture(scope="module")
def table():
    """A line in x, with noise of known size, beside columns of no influence."""
    generator = np.random.default_rng(0)
    x = generator.uniform(100, 200, size=ROWS)
    return pa.table(
        {
            "x": x,
            "word": generator.choice(["a", "b"], size=ROWS),
            "y": 0.3 * x + NOISE * generator.normal(size=ROWS),
        }
    )


@pytest.fixture(scope="module")
def trained(table):
    return train_table(table, "y", epochs=150)


def test_the_held_out_figures_are_those_of_the_noise(trained):
    # 80 held-out rows: standard errors of about 8 % for the deviation, 0.08 nats for
    # the log-likelihood and 0.034 for the coverage; four of them.
    best = -0.5 * np.log(2 * np.pi * np.e * NOISE**2)
    assert len(trained.held_out_rows) == 80
    np.testing.assert_allclose(trained.metrics["rmse"], NOISE, rtol=0.32)
    np.testing.assert_allclose(trained.metrics["log_likelihood"], best, atol=0.32)
    np.testing.assert_allclose(trained.metrics["coverage_90"], 0.9, atol=0.136)


def test_held_out_rows_reach_neither_statistics_nor_weights(table):
    trained = train_table(table, "y", epochs=2)
    rows = trained.training_rows
    assert not set(rows) & set(trained.held_out_rows)
    x = table["x"].to_numpy()[rows]
    assert trained.schema.features[0].mean == pytest.approx(x.mean(), rel=1e-12)

    others = table["y"].to_numpy().copy()
    others[trained.held_out_rows] += 10 * NOISE
    changed = table.set_column(2, "y", pa.array(others))
    again = train_table(changed, "y", epochs=2)
    for weight, same in zip(trained.model.weights, again.model.weights, strict=True):
        np.testing.assert_array_equal(weight, same)


def test_another_seed_gives_another_split_and_other_weights(table):
    first, other = (train_table(table, "y", epochs=1, seed=seed) for seed in (1, 2))
    assert set(first.held_out_rows) != set(other.held_out_rows)
    for layer, different in zip(
        first.model.variational_layers, other.model.variational_layers, strict=True
    ):
        kernels = layer.kernel.mean.numpy(), different.kernel.mean.numpy()
        assert not np.array_equal(*kernels)


def test_the_figures_are_computed_from_the_predictive_distribution(table, trained):
    held_out = table.take(trained.held_out_rows)
    targets = trained.schema.targets_of(held_out)
    prediction = trained.model.predictive(trained.schema.inputs_of(held_out))
    lower, upper = prediction.interval(0.9)
    errors = prediction.mean - targets
    assert trained.metrics == pytest.approx(
        {
            "rmse": np.sqrt(np.mean(errors**2)),
            "log_likelihood": np.mean(prediction.log_prob(targets)),
            "coverage_90": np.mean((lower < targets) & (targets < upper)),
        }
    )


def test_classes_are_told_apart_and_held_out_in_proportion(table):
    labels = np.where(table["x"].to_numpy() > 180, "high", "low")
    classes = table.set_column(2, "y", pa.array(labels))
    trained = train_table(classes, "y", epochs=100)
    held_out = labels[trained.held_out_rows]
    assert np.sum(held_out == "high") == round(0.2 * np.sum(labels == "high"))
    assert set(trained.metrics) == {"accuracy", "log_likelihood"}
    assert trained.metrics["accuracy"] > 0.9
    inputs = trained.schema.inputs_of(classes.take(trained.held_out_rows))
    wrong = (held_out == "high").astype(int)
    figures = held_out_figures(trained.model, inputs, wrong)
    assert figures["accuracy"] == pytest.approx(1 - trained.metrics["accuracy"])


def test_callbacks_see_every_epoch_and_the_held_out_nll(table):
    seen = []
    train_table(
        table,
        "y",
        epochs=3,
        callbacks=[
            keras.callbacks.LambdaCallback(
                on_epoch_end=lambda epoch, logs: seen.append(sorted(logs))
            )
        ],
    )
    assert (
        seen
        == [["kl", "loss", "nll", "temperature", "val_kl", "val_loss", "val_nll"]] * 3
    )


def test_training_that_diverges_ends_at_once_and_is_named(table):
    epochs = []
    with pytest.raises(TrainingDivergedError, match="Received: learning_rate=1e\\+06"):
        train_table(
            table,
            "y",
            epochs=50,
            learning_rate=1e6,
            callbacks=[
                keras.callbacks.LambdaCallback(
                    on_epoch_end=lambda epoch, logs: epochs.append(logs["loss"])
                )
            ],
        )
    assert np.all(np.isfinite(epochs[:-1]))
    assert len(epochs) < 50


def test_held_out_figures_that_are_not_finite_are_refused(table, monkeypatch):
    monkeypatch.setattr(
        "tfbbb.training.held_out_figures", lambda *_: {"rmse": 1.0, "nll": np.inf}
    )
    with pytest.raises(TrainingDivergedError):
        train_table(table, "y", epochs=1)


def test_by_default_six_thousand_steps_are_planned(table, monkeypatch):
    planned = {}

    def fit(model, x, **arguments):
        planned.update(arguments, rate=model.optimizer.learning_rate)
        planned["rate at the end"] = float(model.optimizer._learning_rate(6000))

    monkeypatch.setattr("tfbbb.training.BayesianModel.fit", fit)
    train_table(table, "y")
    assert planned["epochs"] * planned["steps_per_epoch"] == 6000
    assert planned["dataset_size"] == 320
    assert float(planned["rate"]) == pytest.approx(0.01)
    assert planned["rate at the end"] == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize(("num_rows", "units"), [(1200, 20), (1300, 50)])
def test_more_rows_get_a_wider_network(num_rows, units):
    x = np.linspace(0, 1, num_rows)
    trained = train_table(pa.table({"x": x, "y": x**2}), "y", epochs=1)
    assert [layer.units for layer in trained.model.variational_layers] == [units, 2]


def test_a_network_has_the_hidden_layers_asked_for(trained):
    network = make_network(trained.schema, [7, 5])
    assert [layer.units for layer in network.variational_layers] == [7, 5, 2]
    linear = make_network(trained.schema, ())
    assert [layer.units for layer in linear.variational_layers] == [2]


def test_exports_are_numbered_and_describe_the_table(trained, tmp_path):
    first, second = (trained.export(tmp_path / "line") for _ in range(2))
    assert [path.relative_to(tmp_path).as_posix() for path in (first, second)] == [
        "line/1",
        "line/2",
    ]
    manifest = Manifest.read(second)
    assert [feature.name for feature in manifest.features] == ["x", "word"]
    assert (manifest.target, manifest.num_rows) == ("y", 320)
    assert manifest.metrics == trained.metrics


def test_a_version_taken_by_another_process_is_passed_over(
    trained, tmp_path, monkeypatch
):
    taken = [tmp_path / "1", tmp_path / "2"]
    taken[0].mkdir()
    monkeypatch.setattr("tfbbb.training.next_version", lambda root: taken.pop(0))
    assert trained.export(tmp_path) == tmp_path / "2"


def test_an_export_under_a_file_is_refused(trained, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        trained.export(tmp_path / "file")


def test_a_table_that_cannot_serve_is_refused_before_training(table):
    with pytest.raises(TableError, match="no target column 'z'"):
        train_table(table, "z")
    with pytest.raises(TableError, match="has 5 rows"):
        train_table(table.slice(0, 5), "y")
