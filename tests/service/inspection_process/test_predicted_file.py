from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from service.inspection_process.predicted_file import PredictedFile
from service.shared.file_rows import FileTask
from service.shared.inspection import Limits
from service.shared.settings import Settings
from tfbbb.prediction.answer_table import answer_table
from tfbbb.tables.scan import TableScan


def test_classes_named_na_are_written(tmp_path: Path) -> None:
    given, output = tmp_path / "given.csv", tmp_path / "predicted.csv"
    given.write_text("id\na\nb\n")
    task = FileTask(
        path=given,
        name=given.name,
        format="csv",
        limits=Limits.from_settings(Settings()),
        features=["id"],
        text_columns=["id"],
        output=output,
    )
    outputs = {
        "class": ["NA", "null"],
        "probabilities": [[0.9, 0.1], [0.2, 0.8]],
        "entropy": [0.3, 0.5],
        "mutual_information": [0.1, 0.2],
    }
    table = answer_table(outputs, {}, ["NA", "null"], [[], []])
    with PredictedFile(TableScan(given), task) as predicted:
        predicted.add(table)
        predicted.write()
    assert output.read_text().splitlines() == [
        "id,class,probability_NA,probability_null,entropy,mutual_information",
        "a,NA,0.9,0.1,0.3,0.1",
        "b,null,0.2,0.8,0.5,0.2",
    ]


def test_predictions_wait_in_a_file_and_not_in_memory(tmp_path: Path) -> None:
    path, rows, blocks = tmp_path / "given.csv", 1000, 40
    path.write_text("id\n" + "a\n" * rows * blocks)
    limits = Limits.from_settings(Settings())
    task = FileTask(
        path=path,
        name=path.name,
        format="csv",
        limits=limits,
        features=["id"],
        text_columns=["id"],
        output=tmp_path / "predicted.parquet",
        written="parquet",
    )
    before = pa.total_allocated_bytes()
    with PredictedFile(TableScan(path), task) as predicted:
        for block in range(blocks):
            numbers = np.arange(block * rows, (block + 1) * rows, dtype=float)
            outputs = {"mean": numbers, "std": -numbers}
            predicted.add(answer_table(outputs, {}, None, [[]] * rows))
        # A block has 8 bytes for each of two numbers of its rows.
        assert pa.total_allocated_bytes() - before < 2 * 16 * rows
        shown = predicted.write()
    assert [row[0] for row in shown.doubtful] == list(range(1, 21))
    found = pa.parquet.read_table(tmp_path / "predicted.parquet")
    assert found["mean"].to_pylist() == list(range(rows * blocks))
