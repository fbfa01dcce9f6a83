"""`tfbbb remote predict`."""

from typing import TYPE_CHECKING

import typer

from tfbbb.base.types import JsonObject
from tfbbb.cli.prediction_options import (
    Intervals,
    Keep,
    Level,
    LogProb,
    NumSamples,
    Output,
    PredictionSets,
    Seed,
    Sheet,
    Table,
    echo_note,
)
from tfbbb.cli.remote.service import (
    Key,
    Label,
    ModelName,
    Url,
    Version,
    check_version_or_label,
    columns_of_text,
    service,
    terminal_bar,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    import pyarrow as pa

    from tfbbb.client import Model, Prediction
    from tfbbb.tables import TableScan
    from tfbbb.tables.known_targets import KnownTargets, UnusableTarget
    from tfbbb.tables.notations import Notation


def predict(
    model: ModelName,
    data: Table,
    output: Output = None,
    sheet: Sheet = None,
    keep: Keep = False,
    version: Version = None,
    label: Label = None,
    num_samples: NumSamples = None,
    seed: Seed = None,
    level: Level = 0.9,
    intervals: Intervals = None,
    prediction_sets: PredictionSets = False,
    log_prob: LogProb = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """Predict the rows of a table with the service.

    The output has the columns of `tfbbb predict`. Rows are read, sent and written in
    blocks, so the table may be larger than the memory.

    Example: tfbbb remote predict houses new.csv --output answer.csv
    """
    check_version_or_label(version, label)
    with service(url, key) as client:
        from tfbbb.cli.kept_columns import may_be_kept, with_kept_columns
        from tfbbb.cli.prediction_options import interval_levels
        from tfbbb.cli.shown_table import output_table, with_digits_for
        from tfbbb.cli.spooled_table import SpooledTable
        from tfbbb.tables import TableScan
        from tfbbb.tables.reading import notify_of_reading
        from tfbbb.tables.writing import check_writable

        if output is not None:
            check_writable(output)
        remote_model = client.model(model)
        description = remote_model.describe_version(version, label)["description"]
        texts, notation = columns_of_text(description)
        scan = TableScan(data, text_columns=texts, sheet=sheet)
        notify_of_reading(scan, echo_note)
        levels = interval_levels(intervals) or {"": level}
        targets = _KnownTargets(description, notation) if log_prob else None
        asking = _Asking(
            remote_model,
            targets,
            list(levels),
            {
                "intervals": [] if description["classes"] else list(levels.values()),
                "prediction_sets": [level] if prediction_sets else [],
                "num_samples": num_samples,
                "seed": seed,
            },
            {"version": version, "label": label},
        )
        names = [feature["name"] for feature in description["features"]]
        used = [*names, description["target"]]
        kept = may_be_kept(scan.schema, used, keep=keep)
        with SpooledTable() as given, SpooledTable() as answered:
            for block, predictions in asking.answers(scan):
                given.append(block.select(kept))
                answered.append(with_digits_for(output, predictions))
            if targets is not None:
                targets.check()
            answers = answered.table()
            if not asking.has_warnings:
                answers = answers.drop_columns("warnings")
            output_table(
                answers,
                output,
                lambda answers: with_kept_columns(
                    answers, given.table(), used, keep=keep
                ),
                rounded=True,
            )
        version = asking.route["version"]
        typer.echo(f"predicted by version {version} of {model}", err=True)


class _KnownTargets:
    """Reads the targets of blocks of a table, as the service takes them."""

    def __init__(self, description: JsonObject, notation: "Notation | None") -> None:
        self._target, self._classes = description["target"], description["classes"]
        self._notation = notation
        self._unusable: dict[int, UnusableTarget] = {}
        self._num_rows = 0
        self._has_one = False

    def read(self, block: "pa.Table") -> "KnownTargets":
        """Returns the targets of the rows."""
        from tfbbb.tables.known_targets import read_known_targets

        targets = read_known_targets(block, self._target, self._classes, self._notation)
        for row, target in targets.unusable.items():
            self._unusable[self._num_rows + row] = target
        self._num_rows += block.num_rows
        self._has_one |= not targets.missing.all()
        return targets

    def ask(self, targets: "KnownTargets") -> "np.ndarray | None":
        """Returns targets as the service takes them, None if no row has one to use."""
        from tfbbb.cli.table_targets import name_classes

        if not targets.known.any():
            return None
        return name_classes(targets.filled, self._classes)

    def check(self) -> None:
        """Notes how many targets have no density, and why."""
        from tfbbb.cli.table_targets import refuse_without_targets
        from tfbbb.tables.known_targets import describe_unusable

        if not self._has_one:
            refuse_without_targets(self._target, {}, self._num_rows)
        end = "such a row has no log_prob"
        for note in describe_unusable(
            self._target, self._unusable, self._num_rows, end
        ):
            echo_note(note)


class _Asking:
    """Predicts a table block by block, all of it by the same version.

    Attributes:
        has_warnings: Whether a row had a warning so far.
    """

    def __init__(
        self,
        model: "Model",
        targets: _KnownTargets | None,
        levels: list[str],
        options: JsonObject,
        route: JsonObject,
    ) -> None:
        self._model, self._targets = model, targets
        self._levels, self._options = levels, options
        self.route = route
        self.has_warnings = False

    def answers(self, scan: "TableScan") -> "Iterator[tuple[pa.Table, pa.Table]]":
        """Yields blocks of the table, and their predictions with a progress bar."""
        import pyarrow as pa
        from rich.progress import MofNCompleteColumn

        with terminal_bar("rows", MofNCompleteColumn()) as progress:
            task = progress.add_task("", total=scan.num_rows)
            first = 0
            for batch in scan.batches():
                block = pa.Table.from_batches([batch])
                for answer in self._answers(block, first):
                    stop = first + answer.num_rows
                    yield block.slice(0, answer.num_rows), answer
                    block = block.slice(answer.num_rows)
                    first = stop
                    progress.advance(task, answer.num_rows)

    def _answers(self, block: "pa.Table", first: int) -> "Iterator[pa.Table]":
        """Yields the predictions of a block, of which `first` rows come before."""
        from tfbbb.cli.answer_table import with_warning_texts
        from tfbbb.cli.table_targets import empty_log_prob
        from tfbbb.client.errors import ServiceError

        asked: np.ndarray | None = None
        known: np.ndarray | None = None
        unusable: Mapping[int, UnusableTarget] = {}
        if self._targets is not None:
            targets = self._targets.read(block)
            asked, known = self._targets.ask(targets), targets.known
            unusable = targets.unusable
        options = {**self._options, **self.route, "targets": asked}
        start = 0
        try:
            for prediction in self._model.predict_blocks(block, **options):
                self.route = {"version": prediction.version}
                table = _build_table(prediction, self._levels)
                rows = range(start, start + len(table))
                warnings = _with_unusable(prediction.warnings, unusable, rows)
                self.has_warnings |= any(warnings)
                if known is not None:
                    table = empty_log_prob(table, known[rows.start : rows.stop])
                start = rows.stop
                yield with_warning_texts(table, warnings)
        except ServiceError as error:
            if not first:
                raise
            message = f"Counted from row {first + 1}: {error.message}"
            raise ServiceError(error.status, message) from None


def _with_unusable(
    warnings: "Sequence[Sequence[str]] | None",
    unusable: "Mapping[int, UnusableTarget]",
    rows: range,
) -> list[list[str]]:
    """Adds the warnings of targets without a density to those of some rows."""
    found = [list(sentences) for sentences in warnings or [()] * len(rows)]
    for row, target in unusable.items():
        if row in rows:
            found[row - rows.start].append(target.warning)
    return found


def _build_table(prediction: "Prediction", levels: list[str]) -> "pa.Table":
    import numpy as np

    from tfbbb.cli.answer_table import classes_table, numbers_table

    answers = vars(prediction)
    if prediction.classes is not None:
        sets = prediction.prediction_sets
        return classes_table(
            prediction.classes,
            answers,
            None if sets is None else [row[0] for row in sets],
            prediction.log_prob,
        )
    assert prediction.lower is not None
    assert prediction.upper is not None
    ends = np.stack([prediction.lower, prediction.upper], axis=1)
    bounds = {name: ends[:, :, place] for place, name in enumerate(levels)}
    return numbers_table(answers, bounds, prediction.log_prob)
