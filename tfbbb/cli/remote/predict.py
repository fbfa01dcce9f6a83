"""`tfbbb remote predict`."""

from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from tfbbb.base.types import JsonObject
from tfbbb.cli.application import with_options
from tfbbb.cli.notes import echo_next, echo_note
from tfbbb.cli.options import Asked, Table
from tfbbb.cli.remote.service import (
    Label,
    ModelName,
    Version,
    check_version_or_label,
    read_manifest,
    service,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from tfbbb.cli.predicted_rows import TargetColumn
    from tfbbb.client import Client, Model


@with_options(Asked)
@with_options(service)
def predict(
    client: "Client",
    asked: Asked,
    model: ModelName,
    data: Table,
    version: Version = None,
    label: Label = None,
) -> None:
    """Predict the rows of a table with the service.

    The output has the columns of `tfbbb predict`. Rows are read, sent and written in
    blocks, so the table may be larger than the memory.

    Example: tfbbb remote predict houses new.csv --output answer.csv
    """
    check_version_or_label(version, label)
    from tfbbb.cli.predicted_rows import (
        TargetColumn,
        with_progress,
        write_predictions,
    )
    from tfbbb.cli.table_targets import columns_used, read_targets
    from tfbbb.tables import TableScan
    from tfbbb.tables.plain_values import typed_table
    from tfbbb.tables.scan import notify_of_reading
    from tfbbb.tables.writing import check_writable

    if asked.output is not None:
        check_writable(asked.output)
    remote_model = client.model(model)
    manifest, texts = read_manifest(remote_model, version, label)
    levels = asked.levels(manifest)
    scan = TableScan(data, sheet=asked.sheet)
    notify_of_reading(scan, echo_note)
    targets = None
    if asked.log_prob:
        targets = TargetColumn(
            ", ".join(manifest.target_names), lambda x: read_targets(x, manifest)
        )
    options: JsonObject = {"num_samples": asked.num_samples, "seed": asked.seed}
    options |= {"times": levels.pop("survival", []), **levels}
    route: JsonObject = {"version": version, "label": label}
    asking = _Asking(remote_model, targets, manifest.classes, options, route)

    def ask(block: "pa.Table", first: int) -> "Iterator[pa.Table]":
        return asking(typed_table(block, texts), first)

    predicted = with_progress(scan, ask)
    write_predictions(predicted, asked, columns_used(manifest), targets)
    version = asking.route["version"]
    typer.echo(f"predicted by version {version} of {model}", err=True)
    echo_next(f"tfbbb remote feedback {model} TABLE, once the targets are known")


class _Asking:
    """Predicts a table block by block, all of it by the same version."""

    def __init__(
        self,
        model: "Model",
        targets: "TargetColumn | None",
        classes: "Sequence[str] | None",
        options: JsonObject,
        route: JsonObject,
    ) -> None:
        self._model, self._targets, self._classes = model, targets, classes
        self._options = options
        self.route = route

    def __call__(self, block: "pa.Table", first: int) -> "Iterator[pa.Table]":
        """Yields the predictions of a block, of which `first` rows come before."""
        from tfbbb.cli.predicted_rows import densities, with_unusable
        from tfbbb.cli.table_targets import name_classes
        from tfbbb.client.errors import ServiceError

        targets = None if self._targets is None else self._targets.read(block)
        asked = None
        if targets is not None and targets.known.any():
            asked = name_classes(targets.filled, self._classes)
        options = {**self._options, **self.route, "targets": asked}
        start = 0
        try:
            for found in self._model.predict_blocks(block, **options):
                self.route = {"version": found.version}
                rows = range(start, start + len(found))
                start = rows.stop
                if targets is not None:
                    known = targets.known[rows.start : rows.stop]
                    warnings = found.warnings or [[] for _ in rows]
                    found = replace(
                        found,
                        log_prob=densities(found.log_prob, known),
                        warnings=with_unusable(warnings, targets.unusable, rows),
                    )
                yield found.to_table()
        except ServiceError as error:
            if not first:
                raise
            message = f"Counted from row {first + 1}: {error.message}"
            raise ServiceError(error.status, message) from None
