"""Tables as comma-separated values, in requests and in responses."""

import io
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from service.model_process.answer import Answer
from service.model_process.codecs.codec import Body, response
from service.model_process.codecs.table_query import table_query
from service.model_process.query import Query
from service.shared.errors import InvalidRequest
from service.shared.frames import Frame
from service.shared.json_types import JsonList, JsonObject
from service.shared.prediction_formats import CSV
from tfbbb.prediction import questions


def read(body: Body, options: Mapping[str, object]) -> Query:
    """Reads a table in UTF-8 with commas and a header line.

    Every column is text, which the model reads as in a file: an empty cell is missing.
    """
    if not body.strip():
        raise InvalidRequest(
            "The body must be a table with a header line; it is empty."
        )
    # A quoted name may hold commas: then these are more types than columns.
    num_columns = body.partition(b"\n")[0].count(b",") + 1
    types = {f"f{place}": pa.string() for place in range(num_columns)}
    try:
        table = pa.csv.read_csv(
            io.BytesIO(body),
            pa.csv.ReadOptions(
                use_threads=False,
                block_size=max(1, len(body)),
                # The header is read as the first row, so that its names need no types.
                autogenerate_column_names=True,
            ),
            pa.csv.ParseOptions(newlines_in_values=True),
            pa.csv.ConvertOptions(column_types=types),
        )
    except pa.ArrowInvalid as error:
        raise InvalidRequest(f"The body is not a table in CSV: {error}.") from None
    names = [str(column[0].as_py()).removeprefix("\ufeff") for column in table.columns]
    table = table.slice(1).rename_columns(names)
    for name in str(options.get("targets", "")).split(","):
        if names.count(name) == 1:
            place = names.index(name)
            table = table.set_column(place, name, _as_numbers(table.column(place)))
    return table_query(table, options)


def write(answer: Answer) -> Frame:
    """Writes one line per row, and one column per number.

    The name of a column is that of the output, with what it is of where the output has
    several: the level, the number of the draw, the class or the number of the target,
    each after `_`. A prediction set is a JSON list.
    """
    request = answer.request
    columns: JsonObject = {}
    for name, values in answer.outputs.items():
        columns |= _flat_columns(name, values, answer)
    columns["warnings"] = [" ".join(sentences) for sentences in answer.warnings]
    sink = io.BytesIO()
    pa.csv.write_csv(pa.table(columns), sink)
    headers = {
        "Model_Version": str(request.version.number),
        "Num_Samples": str(request.num_samples),
    }
    if request.is_truncated:
        headers["Truncated"] = "true"
    if calibration := answer.calibration:
        headers["Calibration"] = json.dumps(calibration)
    return response(sink.getvalue(), CSV, **headers)


def _as_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns a column of texts as numbers, or as it is if one text is not a number."""
    try:
        return column.cast(pa.float64())
    except pa.ArrowInvalid:
        return column


def _flat_columns(
    name: str, values: np.ndarray | JsonList, answer: Answer
) -> Iterator[tuple[str, pa.Array]]:
    """Yields the columns of an output, each with its name."""
    levels = _levels(name, answer)
    if name == "prediction_sets":
        for place, level in enumerate(levels):
            texts = [json.dumps(row[place], ensure_ascii=False) for row in values]
            yield f"{name}_{level}", pa.array(texts, pa.string())
    elif not isinstance(values, np.ndarray):
        yield name, pa.array(values, pa.string())
    else:
        axes = _axes(values, levels, answer)
        for places in itertools.product(*(range(len(axis)) for axis in axes)):
            labels = [axis[place] for axis, place in zip(axes, places, strict=True)]
            index: tuple[Any, ...] = (slice(None), *places)
            column = np.ascontiguousarray(values[index])
            numbers = pa.array(column, from_pandas=True)
            yield "_".join([name, *filter(None, labels)]), numbers


def _axes(values: np.ndarray, levels: list[str], answer: Answer) -> list[list[str]]:
    """Returns the labels of each axis after the rows; the only target has none."""
    sizes = values.shape[1:]
    classes = answer.request.manifest.classes or ()
    axes = [[str(place + 1) for place in range(size)] for size in sizes]
    if axes and len(axes[-1]) == len(classes):
        axes[-1] = list(classes)
    elif axes and sizes[-1] == 1:
        axes[-1] = [""]
    if levels:
        axes[0] = levels
    return axes


def _levels(name: str, answer: Answer) -> list[str]:
    """Returns the levels of an output, if it has levels."""
    for question in questions.served_questions():
        if name in question.outputs and question.takes_levels:
            levels = answer.request.query.parameters.levels(question)
            return [str(level) for level in levels or ()]
    return []
