import numpy as np
import pyarrow as pa
import pyarrow.parquet

from service.sandbox.predicted_file import PredictedFile
from tfbbb.prediction.answer_table import answer_table
from tfbbb.tables.scan import TableScan


def test_classes_named_na_are_written(tmp_path):
    given, output = tmp_path / "given.csv", tmp_path / "predicted.csv"
    given.write_text("id\na\nb\n")
    outputs = {
        "class": ["NA", "null"],
        "probabilities": [[0.9, 0.1], [0.2, 0.8]],
        "entropy": [0.3, 0.5],
        "mutual_information": [0.1, 0.2],
    }
    table = answer_table(outputs, {}, ["NA", "null"], [[], []])
    with PredictedFile(TableScan(given), output, "csv") as predicted:
        predicted.add(pa.table({"id": ["a", "b"]}), table)
        predicted.write()
    assert output.read_text().splitlines() == [
        "id,class,probability_NA,probability_null,entropy,mutual_information",
        "a,NA,0.9,0.1,0.3,0.1",
        "b,null,0.2,0.8,0.5,0.2",
    ]


def test_predictions_wait_in_a_file_and_not_in_memory(tmp_path):
    path, rows, blocks = tmp_path / "given.csv", 1000, 40
    path.write_text("id\n" + "a\n" * rows * blocks)
    before = pa.total_allocated_bytes()
    output = tmp_path / "predicted.parquet"
    with PredictedFile(TableScan(path), output, "parquet") as predicted:
        for block in range(blocks):
            numbers = np.arange(block * rows, (block + 1) * rows, dtype=float)
            outputs = {"mean": numbers, "std": -numbers}
            answers = answer_table(outputs, {}, None, [[]] * rows)
            predicted.add(pa.table({"id": ["a"] * rows}), answers)
        # A block has 8 bytes for each of two numbers of its rows, and 5 of a text.
        assert pa.total_allocated_bytes() - before < 2 * 21 * rows
        shown = predicted.write()
    assert [row[0] for row in shown.doubtful] == list(range(1, 21))
    found = pa.parquet.read_table(output)
    assert found["mean"].to_pylist() == list(range(rows * blocks))
