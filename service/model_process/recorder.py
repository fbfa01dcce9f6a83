"""Records rows of predictions until their targets are known."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from sqlalchemy import delete, func, insert, select

from service.model_process.answer import Request
from service.shared.database import Database, new_id, report_outage
from service.shared.database.tables import RecordedRow
from service.shared.errors import RequestTooLarge, UnknownPrediction
from service.shared.json_types import JsonList
from service.shared.settings import Settings
from tfbbb.export.inputs import Tensors
from tfbbb.export.manifest import Manifest

# SQLite allows some 32 000 variables in a statement.
_IDS_AT_ONCE = 10_000
_DTYPES: Mapping[str, type] = {
    "numeric": np.float32,
    "categorical": object,
    "date": np.int64,
}


class PredictionRecorder:
    """Records rows for feedback by the id of their prediction."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings

    def record(self, request: Request) -> str:
        """Records the rows of a request, and deletes those over the limits."""
        most = self._settings.max_recorded_rows
        if request.num_rows > most:
            raise RequestTooLarge(
                f"At most {most} rows can be recorded (TFBBB_MAX_RECORDED_ROWS); send "
                f"fewer at a time, or without `record`. Received: {request.num_rows}"
            )
        prediction_id, version = new_id(), request.version
        rows = _as_rows(request.inputs, request.manifest)
        with (
            report_outage("The database did not record the prediction"),
            self._database.writing() as session,
        ):
            now = self._database.now(session)
            session.execute(
                insert(RecordedRow),
                [
                    {
                        "prediction_id": prediction_id,
                        "row": place,
                        "name": version.name,
                        "number": version.number,
                        "values": values,
                        "created_at": now,
                    }
                    for place, values in enumerate(rows, start=1)
                ],
            )
            newest = session.scalar(select(func.max(RecordedRow.sequence)))
            assert newest is not None
            session.execute(
                delete(RecordedRow).where(RecordedRow.sequence <= newest - most)
            )
        return prediction_id

    def find(
        self, places: Sequence[tuple[str, int]], name: str, number: int | None
    ) -> Mapping[tuple[str, int], RecordedRow]:
        """Returns recorded rows, of any version or of one, by prediction and number."""
        ids = sorted({prediction_id for prediction_id, _ in places})
        found: dict[tuple[str, int], RecordedRow] = {}
        with (
            report_outage("The database did not find the predictions"),
            self._database.reading() as session,
        ):
            for start in range(0, len(ids), _IDS_AT_ONCE):
                some = ids[start : start + _IDS_AT_ONCE]
                rows = session.scalars(
                    select(RecordedRow).where(RecordedRow.prediction_id.in_(some))
                )
                for row in rows:
                    if row.name == name and number in (None, row.number):
                        found[row.prediction_id, row.row] = row
        for place in places:
            if place not in found:
                version = "" if number is None else f"version {number} of "
                raise UnknownPrediction(
                    f"There is no such row of a prediction by {version}the model "
                    f"{name!r}: predict with the parameter `record`, and send the "
                    "feedback while the row is kept. "
                    f"Received: row {place[1]} of {place[0]!r:.100}"
                )
        return found


def as_columns(rows: Sequence[JsonList], manifest: Manifest) -> dict[str, np.ndarray]:
    """Returns recorded rows as columns by feature name."""
    columns = zip(manifest.features, zip(*rows, strict=True), strict=True)
    return {
        feature.name: np.array(values, feature.dtype or _DTYPES[feature.kind])
        for feature, values in columns
    }


def _as_rows(tensors: Tensors, manifest: Manifest) -> list[JsonList]:
    """Returns rows as JSON lists of values, in the order of the features."""
    if manifest.inputs == "matrix":
        columns = list(tensors["inputs"].T)
    else:
        columns = [tensors[feature.tensor] for feature in manifest.features]
    return [list(row) for row in zip(*map(_plain, columns), strict=True)]


def _plain(column: np.ndarray) -> JsonList:
    """Returns values as JSON has them: missing numbers are None."""
    values: JsonList = column.tolist()
    if column.dtype.kind == "f":
        return [None if math.isnan(value) else value for value in values]
    return [x.decode() if isinstance(x, bytes) else x for x in values]
