"""Predicts the rows of a file by a version, block by block."""

import time
from collections.abc import Callable, Iterator

import pyarrow as pa

from service.predicting.answer import (
    Answer,
    Block,
    VersionName,
    compute,
    finish,
    prepare,
)
from service.predicting.query import Query, read_text_parameters
from service.sandbox.limits import allow_seconds, apply_limits
from service.sandbox.predicted_file import PredictedFile
from service.shared.errors import InvalidRequest, RequestTooLarge
from service.shared.sandbox import PredictedRows, PredictTask
from service.shared.settings import Settings
from tfbbb.base.types import JsonObject
from tfbbb.export.exported_model import ExportedModel
from tfbbb.export.manifest import InputError
from tfbbb.export.reader import load
from tfbbb.tables import TableError
from tfbbb.tables.plain_values import typed_table
from tfbbb.tables.row_warnings import ColumnFaults
from tfbbb.tables.scan import TableScan, predict_rows

_MOST_ROWS = 2000
_MOST_BYTES = 2**19
_LEVEL = "0.9"


def predict(task: PredictTask, report: Callable[[JsonObject], object]) -> PredictedRows:
    """Writes the rows of a file with their predictions; returns some of them."""
    model = load(task.version)
    answer = _answering(model, task)
    apply_limits(task.limits, most_written_bytes=task.limits.decompressed_bytes)
    end = time.process_time() + task.limits.seconds
    # Read as texts, as in training.
    texts = [
        feature.name
        for feature in model.manifest.features
        if feature.kind == "categorical" or feature.notation
    ]
    scan = TableScan(task.path, format=task.format)
    features = _features(scan, [x.name for x in model.manifest.features])
    if scan.num_rows > task.limits.rows:
        raise TableError(
            f"{task.path} may have at most {task.limits.rows} rows "
            f"(TFBBB_MAX_UPLOAD_ROWS). Received: {scan.num_rows}"
        )
    faults: list[ColumnFaults] = []

    def ask(block: pa.Table, first: int) -> Iterator[pa.Table]:
        nonlocal end
        for part in _parts(typed_table(block.select(features), texts)):
            report({"rows": first, "of": scan.num_rows})
            begin = time.process_time()
            answers = list(_answers(part, first, answer))
            # The time to predict does not count.
            end += time.process_time() - begin
            allow_seconds(end)
            faults.extend(answer.request.faults for answer in answers)
            yield from (answer.table() for answer in answers)
            first += part.num_rows

    with PredictedFile(scan, task.output, task.written) as predicted:
        for rows, answers in predict_rows(scan, ask):
            predicted.add(rows, answers)
        shown = predicted.write()
    shown.remarks += ColumnFaults.joined(faults).describe()
    return shown


def _answering(model: ExportedModel, task: PredictTask) -> Callable[[pa.Table], Answer]:
    """Returns the function that answers about rows, as the API does."""
    settings = Settings(
        max_work=task.max_work, default_num_samples=task.default_num_samples
    )
    given = dict(task.parameters)
    if model.manifest.classes is None:
        given.setdefault("intervals", _LEVEL)
        if len(model.manifest.target_names) > 1:
            given.setdefault("joint_intervals", given["intervals"])
    parameters = read_text_parameters(given)

    def answer(rows: pa.Table) -> Answer:
        query = Query(None, rows, parameters, targets=None)
        request = prepare(VersionName("", 0), model.manifest, query, settings)
        whole = Block(request, slice(0, request.num_rows))
        return finish(request, compute(model, [whole]))

    return answer


def _answers(
    block: pa.Table, first: int, answer: Callable[[pa.Table], Answer]
) -> Iterator[Answer]:
    """Yields the answers about a block, which is halved while it is too large."""
    at, size = 0, block.num_rows
    while at < block.num_rows:
        part = block.slice(at, size)
        try:
            yield answer(part)
        except RequestTooLarge:
            if part.num_rows == 1:
                raise
            size = max(1, size // 2)
            continue
        except InputError as error:
            if not first + at:
                raise
            message = f"Counted from row {first + at + 1}: {error}"
            raise InvalidRequest(message, error.column) from None
        at += part.num_rows


def _features(scan: TableScan, wanted: list[str]) -> list[str]:
    """Returns the columns of a file that a model reads."""
    names = scan.schema.names
    found = [name for name in wanted if name in names]
    if not found:
        raise TableError(
            f"{scan.path} has none of the columns that the model reads: "
            f"{', '.join(map(repr, wanted[:20]))}. "
            f"Received: {', '.join(map(repr, names[:20]))}"
        )
    return found


def _parts(block: pa.Table) -> Iterator[pa.Table]:
    """Yields parts of a block, each of which takes a moment to predict."""
    per_row = max(1, block.nbytes // block.num_rows)
    size = max(1, min(_MOST_ROWS, _MOST_BYTES // per_row))
    for start in range(0, block.num_rows, size):
        yield block.slice(start, size)
