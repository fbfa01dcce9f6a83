"""Predictions of an exported model about blocks of a table."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from tfbbb.base.types import ArrayLike
from tfbbb.cli.options import Asked
from tfbbb.cli.predicted_rows import TargetColumn, densities, with_unusable
from tfbbb.cli.table_targets import read_targets, target_columns
from tfbbb.export.exported_model import ExportedModel
from tfbbb.export.inputs import Tensors, any_row, find_faults, to_tensors
from tfbbb.export.manifest import InputError
from tfbbb.prediction.answer_table import answer_table
from tfbbb.tables.row_warnings import ColumnFaults, ReadColumns
from tfbbb.tables.target import KnownTargets

_ROWS_AT_ONCE = 2048


class ModelAnswers:
    """Predicts blocks of a table."""

    def __init__(
        self,
        model: ExportedModel,
        levels: Mapping[str, Sequence[float]],
        asked: Asked,
    ) -> None:
        self._model, self._levels = model, levels
        self._draws = asked.num_samples, asked.seed
        self._faults: list[ColumnFaults] = []
        self.targets: TargetColumn | None = None
        if asked.log_prob:
            manifest = model.manifest
            name = ", ".join(target_columns(manifest))
            self.targets = TargetColumn(name, lambda x: read_targets(x, manifest))

    def __call__(self, block: pa.Table, first: int) -> Iterator[pa.Table]:
        """Yields the predictions of some rows at a time."""
        manifest = self._model.manifest
        read = ReadColumns.read([x.column for x in manifest.features], block)
        try:
            tensors = to_tensors(read, manifest)
        except InputError as error:
            if not first:
                raise
            raise InputError(f"Counted from row {first + 1}: {error}") from None
        faults = find_faults(tensors, manifest)
        self._faults.append(faults.by_column())
        warnings = faults.by_row()
        targets = None if self.targets is None else self.targets.read(block)
        for start in range(0, block.num_rows, _ROWS_AT_ONCE):
            rows = range(start, min(start + _ROWS_AT_ONCE, block.num_rows))
            yield self._predict(tensors, rows, warnings, targets)

    def without_rows(self) -> pa.Table:
        """Returns the table of predictions of no rows."""
        tensors = to_tensors(any_row(self._model.manifest), self._model.manifest)
        return self._predict(tensors, range(1), [[]], None).slice(0, 0)

    @property
    def faults(self) -> ColumnFaults:
        """What is not as in training in the rows so far."""
        return ColumnFaults.joined(self._faults)

    def _predict(
        self,
        tensors: Tensors,
        rows: range,
        warnings: Sequence[Sequence[str]],
        targets: KnownTargets | None,
    ) -> pa.Table:
        model = self._model
        some = slice(rows.start, rows.stop)
        block = tensors.take(some)
        outputs = self._outputs(block)
        said = [list(sentences) for sentences in warnings[some]]
        if targets is not None:
            known, log_prob = targets.known[some], None
            if known.any():
                given = targets.filled[some]
                log_prob = model.ask("log_prob", block, None, *self._draws, given)
            outputs["log_prob"] = densities(log_prob, known)
            said = with_unusable(said, targets.unusable, rows)
        if (familiarity := outputs.get("familiarity")) is not None:
            unlike = model.describe_unlike(block, familiarity)
            said = [list(chain(*both)) for both in zip(said, unlike, strict=True)]
        names = model.manifest.target_names
        return answer_table(outputs, self._levels, model.manifest.classes, said, names)

    def _outputs(self, block: Tensors) -> dict[str, ArrayLike]:
        """Returns the answers about some rows by name."""
        model, levels = self._model, self._levels
        outputs: dict[str, ArrayLike] = {**model.predict(block, *self._draws)}
        for name, joint in (("intervals", ""), ("joint_intervals", "joint_")):
            if name in levels:
                ends = model.ask(name, block, levels[name], *self._draws)
                outputs |= {f"{joint}lower": ends[:, 0], f"{joint}upper": ends[:, 1]}
        if (times := levels.get("survival")) is not None:
            outputs["survival"] = model.ask("survival", block, times, *self._draws)
        if (asked := levels.get("prediction_sets")) is not None:
            names = np.asarray(model.manifest.classes, dtype=object)
            inside = model.ask("prediction_sets", block, asked, *self._draws)
            outputs["prediction_sets"] = [[names[x] for x in row] for row in inside]
        return outputs
