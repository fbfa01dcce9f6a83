import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from tests.benchmarks.programs import load, run_smoke

classification = load("classification")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    cancer = load_breast_cancer()
    np.savez(folder / "pima.npz", x=cancer.data[:, :5], y=1 + cancer.target)
    np.savez(
        folder / "mushroom.npz",
        onehot=(cancer.data[:, :4] > cancer.data[:, :4].mean(axis=0)).astype("uint8"),
        poisonous=cancer.target.astype("uint8"),
    )
    return folder


@pytest.fixture(scope="module")
def smoke(data, tmp_path_factory):
    output = tmp_path_factory.mktemp("output") / "classification.json"
    methods = ("--methods", "default,logistic_regression")

    def in_place_of_the_default(table, train, test, *, smoke):
        return classification.logistic_probabilities(table, train, test)[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classification, "default_probabilities", in_place_of_the_default)
        return run_smoke("classification", data, output, "--sets", "pima", *methods)


@pytest.mark.slow
def test_the_default_learns_the_classes(data, tmp_path):
    options = ("--sets", "pima", "--methods", "default")
    measured = run_smoke("classification", data, tmp_path / "c.json", *options)
    (record,) = measured.records
    assert record["accuracy"] > 0.75
    assert record["log_likelihood"] > -0.66


def test_both_methods_are_scored(smoke):
    default, logistic = smoke.records
    for record in (default, logistic):
        # 63 % of the rows are of one class.
        assert record["accuracy"] > 0.75
        assert record["log_likelihood"] > -0.66
        assert 0.0 <= record["brier_score"] < 0.25
    assert logistic["chosen"]["C"] > 0.0


def test_classes_of_any_two_numbers_become_0_and_1(data):
    tables = classification.find_tables(data)
    assert [table.name for table in tables] == ["mushroom", "pima"]
    for table in tables:
        assert set(table.y) == {0, 1}
        assert np.array_equal(table.y, load_breast_cancer().target)
        train, test = table.split(3)
        assert sorted([*train, *test]) == list(range(len(table.y)))
        assert len(test) == len(table.y) // 10


def test_a_directory_without_a_set_is_refused(tmp_path):
    error = load("program").DataError
    with pytest.raises(error, match=r"mushroom\.npz.*Received"):
        classification.find_tables(tmp_path)
    with pytest.raises(error, match=r"no pima\.npz"):
        classification.find_tables(tmp_path, ["pima"])
