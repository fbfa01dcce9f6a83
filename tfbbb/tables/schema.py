"""The schema of a table: features, target and task of a model."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tfbbb.base.task import MIN_ROWS, Task
from tfbbb.base.types import Config, TableLike
from tfbbb.tables.column import Column, Role, infer_column
from tfbbb.tables.column_names import (
    ColumnSource,
    check_column_names,
    check_columns_exist,
    describe_missing_columns,
    named_targets,
)
from tfbbb.tables.given_table import as_source
from tfbbb.tables.leaks import Leaks
from tfbbb.tables.override import Override, OverrideError
from tfbbb.tables.parsed_column import ParsedColumn
from tfbbb.tables.row_warnings import ReadColumns, RowWarnings
from tfbbb.tables.table_error import ColumnError, TableError
from tfbbb.tables.target import infer_target, read_target, refit_target
from tfbbb.tables.target_choice import TargetChoice
from tfbbb.tables.values import first_row


def parse_overrides(
    columns: Mapping[str, str], names: Sequence[str]
) -> dict[str, Override]:
    """Parses overrides by column."""
    if missing := describe_missing_columns(columns, names, role="overruled"):
        raise TableError(missing)
    overrides = {}
    for name, text in columns.items():
        try:
            overrides[name] = Override.parse(text)
        except OverrideError as error:
            raise TableError(f"Column {name!r}: {error}") from None
    return overrides


def infer_features(
    table: ColumnSource,
    names: Sequence[str],
    overrides: Mapping[str, Override],
    rows: np.ndarray | None = None,
    targets: Sequence[ParsedColumn] = (),
    *,
    required: bool = False,
    refuses: bool = True,
    held_out_at_random: bool = True,
) -> tuple[tuple[Column, ...], tuple[tuple[str, str], ...]]:
    """Infers the features of a table, and which columns are left out and why."""
    leaks = Leaks(targets)
    features: list[Column] = []
    spare: list[Column] = []
    left_out: dict[str, str] = {}
    first_error: TableError | None = None
    refused: dict[str, TableError] = {}
    for name in names:
        override = overrides.get(name)
        if override is not None and override.kind == "ignore":
            left_out[name] = "As asked."
            continue
        keep = required or override is not None
        try:
            column, parsed = infer_column(table, name, rows, override, required=keep)
        except TableError as error:
            unusable = isinstance(error, ColumnError) and error.unusable
            if refuses and (keep or not unusable):
                refused[name] = error
            first_error = first_error or error
            left_out[name] = str(error)
            continue
        for kind, text, advice in leaks.examine(parsed):
            if kind == "warning":
                column = column.with_warnings(text)
                continue
            column = column.with_remarks(text)
            if kind == "reason" and not keep:
                left_out[name] = f"{text} {advice}".rstrip()
        (spare if name in left_out else features).append(column)
    if refused:
        name, *others = refused
        if not others:
            raise refused[name]
        raise ColumnError(" ".join(map(str, refused.values())), name, others=others)
    if not features:
        # Better a poor feature than none.
        features, spare = spare, []
        for column in features:
            del left_out[column.name]
    warnings = leaks.find_warnings(held_out_at_random=held_out_at_random)
    features = [
        column.with_warnings(*warnings.get(column.name, ())) for column in features
    ]
    if not features and refuses:
        if first_error is not None:
            raise first_error
        raise TableError("No column is left to predict from.")
    return tuple(features), tuple(left_out.items())


# What every value of a column with a role must be.
_RULES: dict[Role, str] = {
    "exposure": "a positive number in every row, such as days, kilometres or insured "
    "years",
    "event": "1 (true, yes) where it happened at the time of the target, and 0 (false, "
    "no) where the row was still running then",
}


def infer_role(
    table: ColumnSource, name: str, role: Role, override: Override | None
) -> Column:
    """Infers a column that the likelihood reads; it has no range."""
    column, parsed = infer_column(table, name, None, override, required=True)
    if column.kind != "numeric":
        raise ColumnError(
            f"The {role} {name!r} must be {_RULES[role]}, but is a column of "
            f"{column.meaning}s.",
            name,
        )
    check_role(name, role, parsed.values)
    if not parsed.values.any():
        raise ColumnError(
            f"The event {name!r} happened in no row, so nothing tells how long it "
            "takes until then.",
            name,
        )
    if role == "exposure":
        column = column.with_remarks("The exposure: the mean is proportional to it.")
    return replace(column, role=role, low=None, high=None)


def check_role(name: str, role: Role, values: np.ndarray) -> None:
    """Raises `ColumnError` with its row for a value that does not suit the role."""
    right = np.isin(values, (0.0, 1.0))
    if role == "exposure":
        right = np.isfinite(values) & (values > 0.0)
    if not right.all():
        row = first_row(~right)
        value = values[row - 1]
        has = "has no value" if np.isnan(value) else f"is {value:g}"
        raise ColumnError(
            f"The {role} {name!r} must be {_RULES[role]}, but {has} in row {row}; drop "
            "or fill such rows.",
            name,
        )


@dataclass(frozen=True)
class Schema:
    """The features and the target of a model, inferred from its training table.

    Attributes:
        features: The columns that the model reads, in order; one with a role is last.
        target: The column that the model predicts, the first of several.
        task: `"regression"` or `"classification"`.
        classes: The distinct values of the target in order, as text; empty for a
            regression.
        left_out: Names of the columns that were left out, each with the reason.
        event: The column that says whether the event of a time happened; None if no
            time is cut off.
        more_targets: The other columns of numbers that the model predicts.

    Example:
    >>> import pyarrow as pa
    >>> table = pa.table({"x": range(12), "kind": ["a", None, "b"] * 4,
    ...                   "y": [0.5 * x for x in range(12)]})
    >>> schema = Schema.infer(table, "y")
    >>> schema.task, schema.input_format
    ('regression', 'columns')
    >>> [(column.name, column.kind, column.missing) for column in schema.features]
    [('x', 'numeric', False), ('kind', 'categorical', True)]
    >>> schema.inputs(table)["kind"][:3]
    array(['a', '', 'b'], dtype=object)
    >>> schema.targets(table)[:3].tolist()
    [[0.0], [0.5], [1.0]]
    """

    features: tuple[Column, ...]
    target: Column
    task: Task
    classes: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    event: Column | None = None
    more_targets: tuple[Column, ...] = ()

    @classmethod
    def infer(
        cls,
        table: TableLike,
        target: str | Sequence[str],
        *,
        task: Task | None = None,
        features: Sequence[str] | None = None,
        exposure: str | None = None,
        event: str | None = None,
        columns: Mapping[str, str] | None = None,
        training_rows: npt.ArrayLike | None = None,
        held_out_at_random: bool = True,
        target_choice: TargetChoice | Mapping[str, TargetChoice] | None = None,
    ) -> "Schema":
        """Infers the schema of a table.

        A column is one of numbers, booleans, dates, durations or categories, by its
        type or, for text, by how its cells are written: see `tfbbb.tables.notations`.
        Of columns that `features` does not name, those are left out from which a model
        learns nothing (constants, identifiers, duplicates, free text) and copies of
        the target. Remarks on the columns say what was chosen.

        Kinds, classes and `missing` come from the whole table; means, scales and
        categories come from the training rows only, so that the model learns nothing
        from the held-out rows.

        Args:
            table: Features and target, as a table of pyarrow, pandas or polars, a
                mapping from column names to values, or a list of rows as mappings.
            target: Name of the column to predict, or names of several columns of
                numbers that are predicted together.
            task: `"regression"` or `"classification"`. By default classification for
                text and booleans, regression for numbers. Integers can be classes too.
            features: Names of the columns to predict from; all others by default.
            exposure: Name of the column that a count is proportional to.
            event: Name of the column that says whether the event of a time happened, 0
                where the row was still running.
            columns: What columns are, by name, in place of what their cells suggest:
                `"number"`, `"date:day-first"`, `"ordered:low,middle,high"`,
                `"ignore"` and so on: see `tfbbb.tables.override.Override`.
            training_rows: Indices of the training rows, or a mask `[n]`; all rows by
                default.
            held_out_at_random: Whether rows that measure a model are held out at
                random. Then columns have warnings of an order in time and of groups.
            target_choice: How the target is read, if rows without one were left out;
                of several targets by name.

        Returns:
            The schema.

        Raises:
            TableError: The table cannot be used; the message names the column, the row
                and the reason.
            ValueError: `task` has another value.
        """
        if task not in (None, "regression", "classification"):
            raise ValueError(
                "`task` must be 'regression', 'classification' or None. "
                f"Received: task={task!r}"
            )
        table = as_source(table)
        check_column_names(table.column_names)
        if table.num_rows < MIN_ROWS:
            count = "1 row" if table.num_rows == 1 else f"{table.num_rows} rows"
            raise TableError(f"The table has {count}; at least {MIN_ROWS} are needed.")
        rows = None if training_rows is None else np.asarray(training_rows)
        targets = (target,) if isinstance(target, str) else tuple(target)
        if len(targets) > 1:
            if task == "classification":
                raise TableError(
                    "Several targets are predicted together only if they are numbers; "
                    "train a model for each target of classes."
                )
            task = "regression"
        check_column_names(targets)
        check_columns_exist(table, targets, role="target")
        required = features is not None
        if features is None:
            beside = (*targets, exposure, event)
            features = [name for name in table.column_names if name not in beside]
        if not features:
            raise TableError(
                f"The table has no column other than {named_targets(targets)}."
            )
        for each in targets:
            if each in features:
                raise TableError(f"The target {each!r} cannot be a feature as well.")
        check_column_names(features)
        check_columns_exist(table, features, role="feature")
        asked: dict[Role, str | None] = {"exposure": exposure, "event": event}
        for role, column in asked.items():
            if column is not None:
                check_columns_exist(table, [column], role=role)
        overrides = parse_overrides(columns or {}, table.column_names)
        choices = target_choice
        if not isinstance(choices, Mapping):
            choices = {} if choices is None else {targets[0]: choices}
        found, *more = [
            infer_target(
                table, name, task, rows, overrides.get(name), choices.get(name)
            )
            for name in targets
        ]
        columns_to_read, left_out = infer_features(
            table,
            features,
            overrides,
            rows,
            tuple(each.parsed for each in (found, *more)),
            required=required,
            held_out_at_random=held_out_at_random,
        )
        roles = {
            role: infer_role(table, name, role, overrides.get(name))
            for role, name in asked.items()
            if name is not None
        }
        if "exposure" in roles:
            columns_to_read += (roles["exposure"],)
        return cls(
            features=columns_to_read,
            target=found.column,
            task=found.task,
            classes=found.classes,
            left_out=left_out,
            event=roles.get("event"),
            more_targets=tuple(each.column for each in more),
        )

    def refitted(self, table: TableLike, training_rows: npt.ArrayLike) -> "Schema":
        """Returns the schema with the statistics and categories of some rows.

        Columns that have no value in these rows are left out.

        Args:
            table: The table that the schema was inferred from.
            training_rows: Indices of the rows, or a mask `[n]`.

        Raises:
            TableError: No column has a value in these rows, or the target is constant.
        """
        source, rows = as_source(table), np.asarray(training_rows)
        features: list[Column] = []
        left_out = dict(self.left_out)
        for column in self.features:
            if column.role is not None:
                features.append(column)
                continue
            try:
                features.append(column.refitted(source, rows))
            except ColumnError as error:
                left_out[column.name] = str(error)
        if all(column.role is not None for column in features):
            raise TableError(
                "No column has a value in the training rows, so there is nothing to "
                "learn from."
            )
        target, *more = [
            refit_target(source, column, self.task, rows)
            for column in self.target_columns
        ]
        return replace(
            self,
            features=tuple(features),
            target=target,
            left_out=tuple(left_out.items()),
            more_targets=tuple(more),
        )

    @property
    def predictors(self) -> tuple[Column, ...]:
        """The features that the network reads: those without a role."""
        return tuple(column for column in self.features if column.role is None)

    @property
    def exposure(self) -> str | None:
        """The name of the feature that a count is proportional to, if there is one."""
        names = [column.name for column in self.features if column.role == "exposure"]
        return names[0] if names else None

    @property
    def target_columns(self) -> tuple[Column, ...]:
        """The target, and any more of them."""
        return (self.target, *self.more_targets)

    @property
    def target_names(self) -> tuple[str, ...]:
        """The names of the targets."""
        return tuple(column.name for column in self.target_columns)

    @property
    def input_format(self) -> Literal["matrix", "columns"]:
        """`"matrix"` if all features are numbers without a role, and none may miss."""
        plain = all(
            c.kind == "numeric" and not c.missing and c.role is None
            for c in self.features
        )
        return "matrix" if plain else "columns"

    @property
    def column_warnings(self) -> tuple[str, ...]:
        """The warnings of the features, each with the name of its column."""
        return tuple(
            f"Column {column.name!r}: {warning}"
            for column in self.features
            for warning in column.warnings
        )

    def inputs(
        self, table: TableLike, *, strict: bool = False
    ) -> np.ndarray | dict[str, np.ndarray]:
        """Reads the features of a table, in raw units.

        Args:
            table: A table, as for `infer`, with all feature columns; other columns are
                ignored.
            strict: Whether a cell that cannot be read is an error, unless it is a level
                that an ordered column lacks.

        Returns:
            A matrix `[n, d]` if `input_format` is `"matrix"`, else a dictionary of
            arrays `[n]` by column name: numbers with NaN for missing, text with `""`
            for missing, and of dates int64 seconds since 1970 with the least int64 for
            missing. Numbers are float32; a column whose numbers differ too little for
            it, and a matrix with one, is float64. A missing value in a column without
            one
            in training is allowed: the model takes it for the mean. A cell that cannot
            be read counts as missing, with a warning; `warnings` says which.

        Raises:
            TableError: The table lacks columns, or they hold values of another type.
        """
        table = as_source(table)
        columns = ReadColumns.read(self.features, table)
        # An ordered column may have a level that training did not.
        ordered = (x.name for x in self.features if x.meaning == "ordered")
        if strict and (refused := columns.describe_unreadable(*ordered)):
            raise TableError(refused)
        if columns.unreadable:
            warnings.warn(
                f"{columns.describe_unreadable()} Such cells count as missing.",
                stacklevel=2,
            )
        if self.exposure is not None:
            check_role(self.exposure, "exposure", columns[self.exposure])
        if self.input_format == "matrix":
            return np.stack(list(columns.values()), axis=-1)
        return dict(columns)

    def warnings(self, table: TableLike) -> list[list[str]]:
        """Says which values of rows to predict the training rows did not have.

        Args:
            table: As for `inputs`.

        Returns:
            For each row a list of sentences, mostly empty: of missing values in columns
            that had none, cells that cannot be read, values outside the range of
            training, and unseen categories.

        Raises:
            TableError: As for `inputs`.
        """
        source = as_source(table)
        columns = ReadColumns.read(self.features, source)
        return RowWarnings(self.features).find(columns, columns.unreadable).by_row()

    def targets(self, table: TableLike) -> np.ndarray:
        """Reads the targets of a table, in raw units.

        Args:
            table: A table, as for `infer`, with the columns of the targets.

        Returns:
            `[n, k]` for a regression, float32, or float64 if the numbers differ too
            little for it, and `[n, 2]` with an event, 0 or 1; int32 class indices `[n]`
            for a classification.

        Raises:
            TableError: The table lacks the column, or a value is missing, of the wrong
                kind, or not one of the classes.
        """
        table = as_source(table)
        check_columns_exist(table, self.target_names, role="target")
        columns = [
            read_target(table, column.name, self.classes, column.notation)
            for column in self.target_columns
        ]
        if self.classes:
            return columns[0]
        if self.event is not None:
            check_columns_exist(table, [self.event.name], role="event")
            columns.append(self.event.values(table))
            check_role(self.event.name, "event", columns[-1])
        dtype = np.result_type(*(column.dtype for column in self.target_columns))
        return np.stack(columns, axis=-1).astype(dtype)

    def to_dict(self) -> Config:
        """Returns the schema as plain JSON values."""
        return {
            "features": [column.to_dict() for column in self.features],
            "target": self.target.to_dict(),
            "task": self.task,
            "classes": list(self.classes),
            "left_out": dict(self.left_out),
            "event": None if self.event is None else self.event.to_dict(),
            "more_targets": [column.to_dict() for column in self.more_targets],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Schema":
        """Creates a schema from the result of `to_dict`."""
        return cls(
            features=tuple(Column.from_dict(column) for column in values["features"]),
            target=Column.from_dict(values["target"]),
            task=values["task"],
            classes=tuple(values["classes"]),
            left_out=tuple(values.get("left_out", {}).items()),
            event=Column.from_dict(values["event"]) if values.get("event") else None,
            more_targets=tuple(map(Column.from_dict, values.get("more_targets", ()))),
        )
