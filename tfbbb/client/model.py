"""A model of the service."""

import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from urllib.parse import quote

from tfbbb.base.files import atomic_directory
from tfbbb.base.types import ArrayLike, JsonObject, TableLike
from tfbbb.client.connection import SECONDS_TO_RESPOND, Connection
from tfbbb.client.errors import ServiceError
from tfbbb.client.prediction import Prediction
from tfbbb.client.rows import ROWS_OF_JSON, Rows

if TYPE_CHECKING:
    import pyarrow as pa


class PredictionOptions(TypedDict, total=False):
    """The options of a prediction.

    Attributes:
        quantiles: Levels of the quantiles to return.
        intervals: Levels of the intervals to return; conformal where the model is.
        joint_intervals: Levels of the boxes to return that hold all of several targets.
        prediction_sets: Levels of the sets of classes to return; conformal where the
            model is.
        times: Times, or other numbers in raw units, of which to return the probability
            that the target is beyond.
        targets: The target of each row, whose `log_prob` to return: a number in raw
            units, or the name of a class; of several targets a list of numbers, of
            times that may be cut off a time and its event.
        num_samples: Draws of the weights; the model's default if None.
        seed: Seed of the draws; the model's default if None.
        return_samples: Whether to return draws of the targets too.
        version: The version that predicts; `Model.version` by default.
        label: Label of a version, in place of `version`.
    """

    quantiles: Sequence[float]
    intervals: Sequence[float]
    joint_intervals: Sequence[float]
    prediction_sets: Sequence[float]
    times: Sequence[float]
    targets: ArrayLike
    num_samples: int | None
    seed: int | None
    return_samples: bool
    version: int | None
    label: str | None


# In the order in which `Prediction.of` takes them.
_LEVELS = ("quantiles", "intervals", "prediction_sets", "times", "joint_intervals")


def _read(answer: "pa.Table", options: Mapping[str, Any]) -> Prediction:
    """Reads an answer to a request with these options."""
    return Prediction.of(answer, *(options.get(name, ()) for name in _LEVELS))


def _listed(values: ArrayLike) -> list[object]:
    """Returns an array or a column as a list."""
    to_list = getattr(values, "to_pylist", None) or getattr(values, "tolist", None)
    return list(values) if to_list is None else to_list()


def _check_targets(targets: list[object], table: Rows) -> None:
    if len(targets) != len(table):
        raise ValueError(
            "Every row needs one target. "
            f"Received: {len(targets)} targets and {len(table)} rows"
        )


def _in_rows(error: ServiceError, start: int, stop: int) -> ServiceError:
    """Says in which rows of several blocks an error is."""
    if start == 0:
        return error
    message = f"In rows {start + 1} to {stop}: {error.message}"
    return ServiceError(error.status, message)


class Model:
    """A model of the service, with all its versions.

    Attributes:
        name: Name of the model.
        version: Default version of the methods; None means the service's `latest`.
    """

    def __init__(
        self, connection: Connection, name: str, version: int | None = None
    ) -> None:
        self._connection = connection
        self.name = name
        self.version = version

    def describe(self) -> JsonObject:
        """Returns the model's description: versions, features, held-out metrics."""
        return self._connection.request("GET", self._path)

    def describe_version(
        self, version: int | None = None, label: str | None = None
    ) -> JsonObject:
        """Returns the description of one version.

        Args:
            version: The version; `self.version` by default.
            label: Label of a version, in place of `version`.
        """
        return self._connection.request("GET", self._build_path(version, label))

    def describe_manifest(
        self, version: int | None = None, label: str | None = None
    ) -> JsonObject:
        """Returns the manifest of one version, with all that its export recorded.

        Args:
            version: The version; `self.version` by default.
            label: Label of a version, in place of `version`.
        """
        path = f"{self._build_path(version, label)}/metadata"
        return self._connection.request("GET", path)["metadata"]["manifest"]

    def labels(self) -> dict[str, int]:
        """Returns the version of each label. `latest` is the service's default."""
        return {name: x["version"] for name, x in self.describe_labels().items()}

    def describe_labels(self) -> dict[str, JsonObject]:
        """Returns the version of each label, and when it was moved."""
        labels = self._connection.request("GET", f"{self._path}/labels")["labels"]
        return {label["label"]: label for label in labels}

    def set_label(self, label: str, version: int) -> None:
        """Points a label at a version that loads and predicts.

        Args:
            label: The label, e.g. `champion`.
            version: The version.

        Raises:
            ServiceError: The version does not predict.
        """
        place = self._build_path(None, label)
        self._connection.request("PUT", place, json={"version": version})

    def delete_label(self, label: str) -> None:
        """Deletes a label, but not its version."""
        self._connection.request("DELETE", self._build_path(None, label))

    def delete_version(self, version: int) -> None:
        """Deletes an unused version; the service does not use its number again."""
        self._connection.request("DELETE", self._build_path(version, None))

    def predict(
        self, rows: TableLike | ArrayLike, **options: Unpack[PredictionOptions]
    ) -> Prediction:
        """Predicts rows, all of them with the same version.

        Args:
            rows: A table (pyarrow, pandas, polars), columns by name, a list of rows
                that are mappings, or a matrix in the order of the features. Columns
                that are not features are ignored.
            options: Any of `PredictionOptions`, by name.

        Raises:
            ServiceError: The rows do not fit the model, or there is no such version.
            ValueError: `rows` is empty, or both `version` and `label` are given.
        """
        import pyarrow as pa

        blocks = list(self._answers(rows, options))
        return _read(pa.concat_tables(blocks), options)

    def predict_blocks(
        self, rows: TableLike | ArrayLike, **options: Unpack[PredictionOptions]
    ) -> Iterator[Prediction]:
        """Predicts rows block by block, in memory for one block at a time.

        A table is sent in blocks of about 512 KB, other rows in blocks of 1000. While
        the service is busy, a block is sent again for up to a minute.

        Args:
            rows: As for `predict`.
            options: As for `predict`.

        Yields:
            The predictions of consecutive rows, all of the same version.

        Raises:
            ServiceError: The rows do not fit the model, or there is no such version.
            ValueError: `rows` is empty, or both `version` and `label` are given.
        """
        for answer in self._answers(rows, options):
            yield _read(answer, options)

    def _answers(
        self, rows: TableLike | ArrayLike, options: Mapping[str, Any]
    ) -> "Iterator[pa.Table]":
        """Yields the answers to blocks of rows."""
        known = PredictionOptions.__annotations__
        for name in options.keys() - known.keys():
            raise TypeError(
                f"An option must be one of {', '.join(known)}. Received: {name!r}"
            )
        table = Rows.read(rows)
        if not len(table):
            raise ValueError("There are no rows to predict. Received: an empty table")
        parameters: JsonObject = {
            "return_samples": options.get("return_samples", False)
        }
        for name in _LEVELS:
            if len(given := options.get(name, ())):
                parameters[name] = list(map(float, given))
        for name in ("num_samples", "seed"):
            if options.get(name) is not None:
                parameters[name] = options[name]
        targets = None
        if options.get("targets") is not None:
            targets = _listed(options["targets"])
            _check_targets(targets, table)
        path = self._build_path(options.get("version"), options.get("label"))
        start, size = 0, table.block_size
        while start < len(table):
            stop = min(start + size, len(table))
            request = table.request(start, stop, parameters, targets)
            try:
                answer = self._connection.predict(f"{path}:predict", request)
            except ServiceError as error:
                if error.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE and size > 1:
                    # The limits of the service count draws too.
                    size = (stop - start) // 2 or 1
                    continue
                raise _in_rows(error, start, stop) from None
            yield answer
            # The version of the first rows predicts the rest, even if a newer version
            # is published meanwhile.
            number = int(answer.schema.metadata[b"model_version"])
            path = self._build_path(number, None)
            start = stop

    def feedback(
        self,
        rows: TableLike | ArrayLike,
        targets: ArrayLike,
        *,
        version: int | None = None,
        label: str | None = None,
    ) -> int:
        """Tells the service what came true, which scores a version by it.

        Each request of at most 1000 rows is counted wholly or not at all, and is not
        sent again if the connection breaks.

        Args:
            rows: The rows, as for `predict`.
            targets: The target of each row: a number in raw units, or the name of a
                class.
            version: The version that is scored; `self.version` by default.
            label: Label of a version, in place of `version`.

        Returns:
            The version that was scored.

        Raises:
            ServiceError: The rows do not fit the model, or there is no such version.
            ValueError: `rows` is empty, or there is not one target per row.
        """
        table, targets = Rows.read(rows), _listed(targets)
        if not len(table):
            raise ValueError("There are no rows to score. Received: an empty table")
        _check_targets(targets, table)
        path, scored = self._build_path(version, label), 0
        for start in range(0, len(table), ROWS_OF_JSON):
            stop = min(start + ROWS_OF_JSON, len(table))
            request = table.json_request(start, stop, {}, targets)
            try:
                answer = self._connection.request("POST", f"{path}/feedback", **request)
            except ServiceError as error:
                raise _in_rows(error, start, stop) from None
            # The version of the first rows scores the rest too.
            scored = int(answer["model_version"])
            path = self._build_path(scored, None)
        return scored

    def describe_feedback(
        self, version: int | None = None, label: str | None = None
    ) -> JsonObject:
        """Returns the running figures and the drift of one version.

        Args:
            version: The version; `self.version` by default, else `latest`.
            label: Label of a version, in place of `version`.
        """
        return self._describe("feedback", version, label)

    def describe_report(
        self, version: int | None = None, label: str | None = None
    ) -> JsonObject:
        """Returns what training measured: calibration, importance, effects and more.

        The section "The report of a version" of `docs/service.md` shows the fields.

        Args:
            version: The version; `self.version` by default, else `latest`.
            label: Label of a version, in place of `version`.
        """
        return self._describe("report", version, label)

    def download(
        self,
        path: str | os.PathLike[str],
        version: int | None = None,
        label: str | None = None,
    ) -> None:
        """Downloads a version, which `tfbbb.load(path)` loads.

        Args:
            path: Directory to write; nothing may be there yet.
            version: The version; `self.version` by default, else `latest`.
            label: Label of a version, in place of `version`.

        Raises:
            FileExistsError: There is something at `path` already.
            ServiceError: There is no such version, or the key may not train.
        """
        url = f"{self._path_of_number(version, label)}/files"
        with tempfile.TemporaryFile() as file:
            with self._connection.stream(url, {}, SECONDS_TO_RESPOND) as answer:
                for block in answer.iter_bytes():
                    file.write(block)
            with atomic_directory(path) as staging, zipfile.ZipFile(file) as archive:
                archive.extractall(staging)

    def _describe(
        self, what: str, version: int | None, label: str | None
    ) -> JsonObject:
        path = self._path_of_number(version, label)
        return self._connection.request("GET", f"{path}/{what}")

    def _path_of_number(self, version: int | None, label: str | None) -> str:
        if version is None and (label is not None or self.version is None):
            version = self.labels()[label or "latest"]
        return self._build_path(version, None)

    @property
    def _path(self) -> str:
        return f"/v1/models/{quote(self.name, safe='')}"

    def _build_path(self, version: int | None, label: str | None) -> str:
        if version is not None and label is not None:
            raise ValueError(
                f"Give either `version` or `label`. Received: version={version}, "
                f"label={label!r}"
            )
        if label is not None:
            return f"{self._path}/labels/{quote(label, safe='')}"
        if version is None:
            version = self.version
        return self._path if version is None else f"{self._path}/versions/{version}"

    def __repr__(self) -> str:
        return f"Model(name={self.name!r}, version={self.version})"
