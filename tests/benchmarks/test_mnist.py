import numpy as np
import pytest

from tests.benchmarks.digits import write_digits
from tests.benchmarks.programs import load, run_smoke

METHOD = "Bayes by backprop"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    directory = tmp_path_factory.mktemp("data")
    write_digits(directory)
    return directory


@pytest.fixture(scope="module")
def measured(data, tmp_path_factory):
    output = tmp_path_factory.mktemp("mnist") / "mnist.json"
    return run_smoke("mnist", data, output, "--methods", METHOD)


def test_the_network_learns_the_digits(measured):
    (record,) = measured.records
    assert record["method"] == METHOD
    # Guessing has an error of 90 %.
    assert record["test"]["error"] < 30.0


@pytest.mark.slow
def test_dropout_is_scored_with_and_without_masks(data, tmp_path):
    options = ("--methods", "dropout")
    (record,) = run_smoke("mnist", data, tmp_path / "mnist.json", *options).records
    assert max(record[x]["error"] for x in ("test", "test_of_masks")) < 30.0


def test_removing_all_but_two_percent_of_the_weights_costs_accuracy(measured):
    (record,) = measured.select(method="Bayes by backprop")
    errors = {point["share"]: point["error"] for point in record["pruning"]}
    # 20 draws here and 100 draws there differ on few rows.
    assert errors[0.0] == pytest.approx(record["test"]["error"], abs=2.0)
    assert errors[0.98] > errors[0.0] + 10.0


@pytest.mark.slow
def test_a_network_pruned_while_it_trains_stays_pruned(data, tmp_path):
    method = "Bayes by backprop, pruned while it trains"
    measured = run_smoke("mnist", data, tmp_path / "mnist.json", "--methods", method)
    (record,) = measured.records
    errors = {point["share"]: point["error"] for point in record["pruning"]}
    # The weights that a copy would lose are removed already.
    assert errors[0.0] == errors[0.5] == errors[0.95]


def test_checkpoints_are_deleted_after_their_records_are_written(measured):
    files = {path.name for path in measured.path.parent.iterdir()}
    assert files == {"mnist.json", "mnist.png"}


def test_the_validation_part_is_the_last_sixth(data):
    digits = load("image_sets").read_digits(data)
    assert [len(part[0]) for part in (digits.train, digits.validation)] == [1200, 240]
    with np.load(data / "mnist.npz") as archive:
        np.testing.assert_array_equal(digits.validation[1], archive["y_train"][1200:])
        last = archive["x_train"][-1].reshape(-1) / np.float32(126)
    np.testing.assert_allclose(digits.validation[0][-1], last, rtol=1e-6)


def test_a_killed_training_goes_on_after_its_last_epoch(data, tmp_path):
    networks, mnist = load("image_networks"), load("mnist")
    digits = load("image_sets").read_digits(data, rows=256)
    settings = mnist.SETTINGS[mnist.POINT] | {"epochs": 4}
    scored = []

    def score(model):
        scored.append(int(model.optimizer.iterations.numpy()))
        if len(scored) == 3:
            raise KeyboardInterrupt
        return {"steps": scored[-1]}

    def train():
        return networks.train(
            lambda: networks.make_network(8, settings),
            digits.train,
            settings,
            seed=0,
            directory=tmp_path,
            points=range(1, 5),
            score=score,
        )

    with pytest.raises(KeyboardInterrupt):
        train()
    _, figures = train()
    # Two steps per epoch; the third epoch is trained twice.
    assert scored == [2, 4, 6, 6, 8]
    assert [point["steps"] for point in figures["scores"]] == [2, 4, 6, 8]
    assert [point["epoch"] for point in figures["scores"]] == [1, 2, 3, 4]


def test_a_directory_without_digits_is_an_error(tmp_path):
    with pytest.raises(SystemExit, match=r"must have `mnist\.npz`"):
        run_smoke("mnist", tmp_path, tmp_path / "mnist.json")
