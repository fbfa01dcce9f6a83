"""The messages between the API and the process that reads the rows of a file.

They are frames on the pipes of the process. The first frame to the process has a
`FileTask` as its header. The process sends blocks of rows: `rows`, the number of rows
so far, `of`, that of all, and the rows as the body. The answer to a block is the body
of a frame, or a frame with `"smaller": true`, after which the process sends the first
half of the block. At the end it sends `"done": true`. An error is a frame with `error`.
"""

from pathlib import Path

from pydantic import BaseModel

from service.shared.inspection import Limits
from service.shared.json_types import JsonList
from tfbbb.tables.format import Format


class FileTask(BaseModel):
    """What to do with the rows of a file.

    Attributes:
        path: Path of the file.
        name: Name of the file, for errors.
        format: Format of the file.
        limits: Limits on reading the file.
        features: Names of the columns that the model reads.
        text_columns: Names of the columns to read as text.
        output: Where to write the rows with their predictions.
        written: Format of the output.
    """

    path: Path
    name: str
    format: Format
    limits: Limits
    features: list[str]
    text_columns: list[str]
    output: Path
    written: Format = "csv"


class PredictedRows(BaseModel):
    """Some rows of a predicted file, for people.

    Attributes:
        given: Names of the columns of the file.
        predicted: Names of the columns of the predictions.
        first: The first rows: their number, then the cells of both.
        doubtful: The rows that deserve the least trust, in the same form.
        doubtful_by: What makes them doubtful, in words.
        remarks: Sentences about how the file was read.
    """

    given: list[str]
    predicted: list[str]
    first: list[JsonList]
    doubtful: list[JsonList]
    doubtful_by: str
    remarks: list[str] = []
