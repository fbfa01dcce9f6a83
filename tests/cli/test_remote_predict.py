"""`tfbbb remote predict` holds a few blocks of rows, however many the table has."""

import json
import weakref

import numpy as np
import pyarrow as pa
import pytest

from tests.cli.commands import refusal
from tests.exported_manifests import HALF_PLUS_THREE_FEATURES, manifest
from tfbbb.client.errors import ServiceError
from tfbbb.client.model import Model
from tfbbb.client.prediction import Prediction
from tfbbb.tables import TableScan, read_table

BLOCK, BLOCKS = 100, 30
# The first row of a block that the service refuses.
FAULTY = 10 * BLOCK * BLOCKS
MANIFEST = json.loads(manifest(HALF_PLUS_THREE_FEATURES, target="y").to_json())


class HeldRows:
    """Counts the rows of objects that still exist."""

    def __init__(self):
        self.now = self.most = 0

    def hold(self, thing, rows):
        self.now += rows
        self.most = max(self.most, self.now)
        weakref.finalize(thing, self._release, rows)

    def _release(self, rows):
        self.now -= rows


@pytest.fixture
def held(monkeypatch):
    """Predicts without a service, by the mean 2 x; returns the rows that are held."""
    held = HeldRows()

    read = TableScan.batches

    def batches(scan):
        for batch in read(scan):
            for start in range(0, batch.num_rows, BLOCK):
                part = batch.slice(start, BLOCK)
                # A copy, which is freed when nobody needs it.
                rows = pa.RecordBatch.from_pydict(part.to_pydict(), schema=part.schema)
                held.hold(rows, rows.num_rows)
                yield rows
                del rows

    def predict_blocks(model, rows, *, targets=None, version=None, **options):
        assert version in (None, 3)
        if rows["x"][0].as_py() == FAULTY:
            raise ServiceError(400, "Row 2 is wrong.")
        for start in range(0, len(rows), BLOCK // 2):
            x = rows["x"].slice(start, BLOCK // 2).to_numpy()[:, None]
            given = None if targets is None else np.zeros(len(x))
            ones = np.ones_like(x)
            answer = Prediction(
                model="m",
                version=3,
                num_samples=1,
                mean=2 * x,
                variance=2 * ones,
                std=np.sqrt(2 * ones),
                epistemic=ones,
                aleatoric=ones,
                interval_levels=np.array([0.9]),
                lower=(2 * x - 1)[:, None],
                upper=(2 * x + 1)[:, None],
                log_prob=given,
                warnings=[["far"] if value > 2000 else [] for value in x[:, 0]],
            )
            held.hold(answer, len(x))
            yield answer
            del answer

    monkeypatch.setattr(TableScan, "batches", batches)
    monkeypatch.setattr(Model, "predict_blocks", predict_blocks)
    monkeypatch.setattr(Model, "describe_manifest", lambda *_: MANIFEST)
    return held


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.csv"
    lines = (f"{x},id{x},{'' if x % 7 else x}" for x in range(BLOCK * BLOCKS))
    path.write_text("\n".join(["x,name,y", *lines]))
    return path


@pytest.fixture
def predict(tfbbb, held, tmp_path):
    """Predicts the lines of a table; returns the result and the file of answers."""

    def run(lines, *options):
        path, output = tmp_path / "rows.csv", tmp_path / "answers.csv"
        path.write_text("\n".join(lines))
        options = (*options, "--output", output, "--key", "a.b")
        return tfbbb("remote", "predict", "m", path, *options), output

    return run


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "xlsx"])
def test_few_rows_are_held_at_a_time(run, held, rows, tmp_path, suffix):
    output = tmp_path / f"answers.{suffix}"
    run("remote", "predict", "m", rows, "--output", output, "--key", "a.b")
    # A block and its answer; those before may be freed a moment later.
    assert held.most <= 4 * BLOCK < BLOCK * BLOCKS
    if suffix == "xlsx":
        pytest.importorskip("python_calamine")
    answers = read_table(output)
    assert answers.column_names[:3] == ["name", "mean", "std"]
    x = np.arange(BLOCK * BLOCKS)
    np.testing.assert_allclose(answers["mean"].to_numpy(), 2 * x)
    assert answers["name"].to_pylist() == [f"id{value}" for value in x]
    warned = [text or "" for text in answers["warnings"].to_pylist()]
    assert warned == ["far" if value > 2000 else "" for value in x]


def test_an_error_names_the_row_of_its_block(predict):
    rows = [*range(BLOCK), FAULTY, FAULTY + 1]
    result, output = predict(["x", *map(str, rows)])
    assert f"Counted from row {BLOCK + 1}: Row 2 is wrong." in refusal(result)
    assert not output.exists()


def test_rows_without_a_target_have_no_log_prob(predict):
    # The first block has no target at all.
    lines = (f"{x},{x if x >= BLOCK and x % 2 else ''}" for x in range(3 * BLOCK))
    result, output = predict(["x,y", *lines], "--log-prob")
    assert result.exit_code == 0, result.output
    answers = read_table(output)
    assert "warnings" not in answers.column_names
    known = np.array([value is not None for value in answers["log_prob"].to_pylist()])
    x = np.arange(3 * BLOCK)
    np.testing.assert_array_equal(known, (x >= BLOCK) & (x % 2 == 1))


def test_a_table_without_targets_is_refused(predict):
    result, output = predict(["x,y", "1,", "2,", ""], "--log-prob")
    assert "No row of the table has a target" in refusal(result)
    assert not output.exists()
