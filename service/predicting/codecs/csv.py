"""Tables as comma-separated values, in requests and in responses."""

import io
import json
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.csv

from service.predicting.answer import Answer
from service.predicting.codecs.codec import Body, Written, response
from service.predicting.codecs.table_query import table_query
from service.predicting.query import Query
from service.shared.errors import InvalidRequest
from service.shared.prediction_formats import CSV


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
    return table_query(table.slice(1).rename_columns(names), options)


def write(answer: Answer) -> Written:
    """Writes one line per row, and one column per number.

    `tfbbb.prediction.answer_table` names the columns.
    """
    request = answer.request
    sink = io.BytesIO()
    pa.csv.write_csv(answer.table(), sink)
    headers = {
        "Model_Version": str(request.version.number),
        "Num_Samples": str(request.num_samples),
    }
    if calibration := answer.calibration:
        headers["Calibration"] = json.dumps(calibration)
    return response(sink.getvalue(), CSV, **headers)
