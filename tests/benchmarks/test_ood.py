import numpy as np
import pytest

from tests.benchmarks.digits import write_digits
from tests.benchmarks.programs import load, run_smoke

METHODS = ["Bayes by backprop", "deep ensemble", "SNGP"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    directory = tmp_path_factory.mktemp("data")
    write_digits(directory)
    return directory


@pytest.fixture(scope="module")
def measured(data, tmp_path_factory):
    output = tmp_path_factory.mktemp("ood") / "ood.json"
    return run_smoke("ood", data, output, "--methods", *METHODS)


@pytest.mark.slow
def test_stripes_are_more_uncertain_than_digits(measured):
    records = measured.select(part="images")
    assert [record["method"] for record in records] == METHODS
    for record in records:
        figures = record["sets"]["stripes"]
        assert min(figures["entropy"], figures["mutual_information"]) > 0.7


def test_answering_the_surest_rows_has_less_risk(measured):
    for record in measured.select(part="images"):
        share_wrong = record["test"]["error"] / 100.0
        assert record["risk"][-1] == pytest.approx(share_wrong, abs=1e-5)
        assert record["risk_coverage_area"] < share_wrong


def test_a_digit_turns_upside_down(data, measured):
    ood = load("ood")
    one = ood._first_one(load("image_sets").read_digits(data))
    np.testing.assert_allclose(ood.rotated(one, 0), one, atol=1e-5)
    np.testing.assert_allclose(ood.rotated(one, 180), one[:, ::-1], atol=1e-5)
    for record in measured.select(part="images"):
        probabilities = np.array(record["rotated"]["probabilities"])
        assert probabilities.shape == (19, 10)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-4)
