"""A table that is larger than the memory used goes from the upload to an answer."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from tfbbb.cli.running_service import running_service
from tfbbb.client import Client

COLUMNS = 20
ROWS_AT_ONCE = 200_000
WORDS = ("amber", "blue", "crimson", "dun")


def blocks(rows):
    """Yields a table of numbers, texts and a target."""
    generator = np.random.default_rng(0)
    slopes = generator.normal(size=COLUMNS - 2)
    for start in range(0, rows, ROWS_AT_ONCE):
        number = min(ROWS_AT_ONCE, rows - start)
        x = np.round(generator.normal(size=[COLUMNS - 2, number]), 5)
        words = generator.integers(len(WORDS), size=number)
        y = slopes @ x + words + generator.normal(size=number)
        columns = {f"x{index}": values for index, values in enumerate(x)}
        columns["word"] = np.array(WORDS)[words]
        columns["y"] = np.round(y, 5)
        yield pa.RecordBatch.from_pydict(columns)


def write_csv(path, rows):
    first, *others = blocks(rows)
    with pa.csv.CSVWriter(path, first.schema) as writer:
        for block in (first, *others):
            writer.write_batch(block)


@pytest.mark.slow
def test_a_million_rows_are_trained_on_in_bounded_memory(tmp_path, monkeypatch):
    # A job that takes more fails. TensorFlow alone takes a third of it, and the table
    # as an array of its texts and numbers would take more than the rest.
    monkeypatch.setenv("TFBBB_JOB_MEMORY_BYTES", str(2 * 2**30))
    write_csv(tmp_path / "table.csv", 10**6)
    models = tmp_path / "models"
    models.mkdir()
    with running_service(models) as (url, key), Client(url, key) as client:
        dataset = client.upload(tmp_path / "table.csv")
        training = {"epochs": 1, "batch_size": 256}
        job = client.train(dataset, "y", name="streamed", training=training).wait()
        row = {f"x{index}": 0.0 for index in range(COLUMNS - 2)} | {"word": "blue"}
        client.model("streamed").predict([row], version=job.version)
        model = client.model("streamed").describe_version(job.version)
    # The target's noise has a standard deviation of 1.
    assert model["description"]["metrics"]["rmse"] < 1.1
