"""Familiarity in answers."""

import numpy as np

import tfbbb
from tests.served_answer import served_answer
from tests.service.predicting.exporting import exported, network

ROWS = np.array([[0.1, 0.2], [-0.3, 0.1], [40.0, -30.0]])


def rows_of(model):
    return served_answer(model, {"instances": ROWS.tolist()})["predictions"]


def test_each_row_has_its_familiarity_and_the_least_one_a_warning(tmp_path):
    model = network("normal", 1, hidden=0)
    seen = np.random.default_rng(0).normal(size=(200, 2)).astype("float32")
    model.familiarity = tfbbb.Familiarity.fit(seen)
    version = exported(model, tmp_path / "1", num_samples=50)
    found = rows_of(version)
    familiarity = [row["familiarity"] for row in found]
    np.testing.assert_allclose(familiarity, version.familiarity(ROWS))
    assert ["warnings" in row for row in found] == [False, False, True]


def test_a_version_without_a_familiarity_tells_none(plain_numbers):
    assert "familiarity" not in rows_of(plain_numbers)[0]
