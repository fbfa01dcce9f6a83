"""Splits a table into training and held-out rows, and reads them."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tfbbb.base.files import disk_faults_named
from tfbbb.base.types import Config
from tfbbb.judging.evaluation import Baselines
from tfbbb.judging.evaluation.baseline import Baseline
from tfbbb.judging.evaluation.input_encoding import InputEncoding, named_columns
from tfbbb.judging.types import Inputs
from tfbbb.tables import Schema, TableError
from tfbbb.tables.column_names import ColumnSource
from tfbbb.tables.memory_rows import MemoryRows
from tfbbb.tables.parsed_column import ParsedTable
from tfbbb.tables.scan import TableScan
from tfbbb.tables.stored_table import StoredTable
from tfbbb.tables.values import first_row, without_views
from tfbbb.training.network import make_likelihood
from tfbbb.training.plan import cross_fitting_folds
from tfbbb.training.spec import JobSpec
from tfbbb.training.split import Split, find_rows_with_target, infer_schema, split_rows
from tfbbb.training.target_means import RowMeans, with_target_means

# Of the rows: the choice has seen the others.
_HELD_OUT = 0.2
_LEFT_OUT = "A lasso of the training rows leaves it out."
_FOLDS, _FEWEST_ROWS_PER_FOLD = 5, 5
_FEWEST_COLUMNS = 5
# Rows of a file whose texts are in memory while their mean targets are found.
_MOST_WITH_MEANS = 500_000
# Rows that show whether a column of times helps, and the share of the error by which
# it must not be worse.
_MOST_COMPARED, _WORSE_ERROR = 5000, 0.05


@dataclass(frozen=True)
class Prepared:
    """The rows of a table, ready for training.

    `held_out_rows` and `training_rows` are places in the table; none are held out if
    members leave out folds of the training rows. `groups` are those of the rows that
    measure the model, [n], None for a group per row, and `last` which training rows
    members leave out by time. `num_rows` counts all rows with a target.
    """

    schema: Schema
    rows: MemoryRows
    held_out: tuple[Any, np.ndarray]
    held_out_rows: np.ndarray
    training_rows: np.ndarray
    groups: np.ndarray | None = None
    last: np.ndarray | None = None
    split: Config = field(default_factory=dict)
    num_rows: int = 0
    rows_without_target: int = 0
    weights: np.ndarray | None = None
    held_out_weights: np.ndarray | None = None


def prepare(
    source: pa.Table | TableScan,
    spec: JobSpec,
    schema: Schema | None = None,
    directory: Path | None = None,
    row_weights: np.ndarray | None = None,
) -> Prepared:
    """Splits a table and reads its rows."""
    if row_weights is not None:
        directory = None
    whole_table = _open(source, directory)
    if row_weights is not None and len(row_weights) != whole_table.num_rows:
        raise ValueError(
            f"Every row of the table needs one weight. Received: {len(row_weights)} "
            f"weights for {whole_table.num_rows} rows"
        )
    found = find_rows_with_target(whole_table, spec, schema)
    kept = np.flatnonzero(found.known)
    with_target = _take_known(whole_table, found.known, directory)
    table: StoredTable | ParsedTable
    if isinstance(with_target, StoredTable):
        table = with_target
    else:
        table = ParsedTable(with_target)
    if row_weights is not None:
        row_weights = row_weights[kept]
    if schema is not None:
        _check_columns(table, schema)
    whole = schema or infer_schema(table, spec, found.choices)
    _check_targets(table, whole, spec)
    # A training with a parent version goes on with all of its members.
    num_folds = 0
    if schema is None:
        num_folds = cross_fitting_folds(spec, table.num_rows)
    rows = split_rows(table, whole, spec, num_folds=num_folds)
    means: RowMeans = {}
    if schema is None and spec.features is None:
        whole, rows = _with_chosen_columns(whole, spec, table, rows, row_weights)
    if schema is None:
        schema = _with_useful_time(whole, spec, table, rows)
        schema = schema.refitted(table, rows.training)
        if not isinstance(table, StoredTable) or table.num_rows <= _MOST_WITH_MEANS:
            places, seed = np.sort(rows.training), spec.training.seed
            groups = None if rows.groups is None else rows.groups[places]
            schema, means = with_target_means(
                schema, _take(table, places), groups=groups, last=rows.last, seed=seed
            )
    held_out = _take(table, rows.held_out)
    return Prepared(
        schema=schema,
        rows=MemoryRows.read(
            schema, _parts(table, rows.training), len(rows.training), means
        ),
        held_out=(schema.inputs(held_out), schema.targets(held_out)),
        held_out_rows=kept[rows.held_out],
        training_rows=kept[np.sort(rows.training)],
        groups=_measured_groups(rows),
        last=rows.last,
        split=rows.description,
        num_rows=table.num_rows,
        rows_without_target=whole_table.num_rows - table.num_rows,
        weights=None if row_weights is None else row_weights[np.sort(rows.training)],
        held_out_weights=None if row_weights is None else row_weights[rows.held_out],
    )


def _with_chosen_columns(
    schema: Schema,
    spec: JobSpec,
    table: StoredTable | ParsedTable,
    rows: Split,
    weights: np.ndarray | None,
) -> tuple[Schema, Split]:
    """Leaves columns out, and holds rows out, if there are more columns than rows."""
    if not has_more_columns_than(table.num_rows, schema):
        return schema, rows
    held_out = rows
    if not len(rows.held_out):
        # Folds would be predicted by members whose columns were chosen with them.
        update = {"fraction": _HELD_OUT}
        validation = spec.training.validation.model_copy(update=update)
        training = spec.training.model_copy(update={"validation": validation})
        rows_held_out = spec.model_copy(update={"training": training})
        held_out = split_rows(table, schema, rows_held_out)
    places = np.sort(held_out.training)
    fitted = _take(table, places)
    chosen = choose_columns(
        schema,
        schema.inputs(fitted),
        schema.targets(fitted),
        None if weights is None else weights[places],
    )
    return (schema, rows) if chosen is None else (chosen, held_out)


def _with_useful_time(
    schema: Schema, spec: JobSpec, table: StoredTable | ParsedTable, rows: Split
) -> Schema:
    """Leaves the column of times out if it predicts later rows worse.

    A trend may end, and no earlier row tells. A linear model of the earlier rows
    predicts the last ones, with the column and without.
    """
    if schema.event is not None:
        return schema
    name = spec.training.validation.time or ""
    every = [column.name for column in schema.features]
    kept = [column for column in schema.features if column.name != name]
    if (
        all(column.role for column in kept)
        or len(kept) == len(every)
        or spec.features is not None
    ):
        return schema
    earlier, later = rows.training, rows.held_out
    if rows.last is not None:
        earlier, later = np.flatnonzero(~rows.last), np.flatnonzero(rows.last)

    def read(places: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        size = min(len(places), _MOST_COMPARED)
        some = places[np.linspace(0, len(places) - 1, size, dtype=int)]
        part = _take(table, np.sort(some))
        return named_columns(schema.inputs(part), every), schema.targets(part)

    (fitted, targets), (measured, true) = read(earlier), read(later)
    losses = []
    for names in (every, [column.name for column in kept]):
        baselines = Baselines.fit(
            {name: fitted[name] for name in names},
            targets,
            num_classes=len(schema.classes),
            exposure=schema.exposure,
        )
        found = baselines.predict({name: measured[name] for name in names}, true)
        linear = found[baselines.models[-1].name]
        errors = -linear.log_prob if schema.classes else linear.errors(true)
        losses.append(errors)
    worse = losses[0] - losses[1]
    error = worse.std() / np.sqrt(len(worse))
    if worse.mean() < max(_WORSE_ERROR * losses[1].mean(), 2.0 * error):
        return schema
    reason = "A linear model predicts later rows better without it."
    left_out = (*schema.left_out, (name, reason))
    return replace(schema, features=tuple(kept), left_out=left_out)


def _take(table: StoredTable | ParsedTable, rows: np.ndarray) -> ColumnSource:
    if isinstance(table, StoredTable):
        return table.take(rows)
    return ParsedTable(table, rows)


def _measured_groups(rows: Split) -> np.ndarray | None:
    if rows.groups is None or not len(rows.held_out):
        return rows.groups
    return rows.groups[rows.held_out]


def _take_known(
    table: pa.Table | StoredTable, known: np.ndarray, directory: Path | None
) -> pa.Table | StoredTable:
    """Returns the rows that have a target, a mask `[n]`."""
    if known.all():
        return table
    if not isinstance(table, StoredTable):
        return table.filter(pa.array(known))
    assert directory is not None
    first, path = 0, table.path.with_stem(f"{table.path.stem}-with-target")

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal first
        for part in table.tables():
            here = known[first : first + part.num_rows]
            first += part.num_rows
            yield from part.filter(pa.array(here)).to_batches()

    with disk_faults_named(directory):
        return StoredTable.write(path, batches())


def _check_columns(table: ColumnSource, schema: Schema) -> None:
    """Raises `TableError` with its row for values that do not fit the schema."""
    schema.targets(table)
    errors = []
    for column in schema.features:
        try:
            column.check(table)
        except TableError as error:
            errors.append(str(error))
    if errors:
        raise TableError(" ".join(errors))


def _check_targets(table: ColumnSource, schema: Schema, spec: JobSpec) -> None:
    """Raises `TableError` for a target outside the support of the likelihood."""
    likelihood = make_likelihood(spec.model.likelihood, schema)
    if likelihood.support is None:
        return
    every = schema.targets(table).astype(np.float64)
    # An event may follow.
    for name, targets in zip(schema.target_names, every.T, strict=False):
        other = ~likelihood.support.contains(targets)
        if other.any():
            row = first_row(other)
            raise TableError(
                f"The target {name!r} has the value {targets[row - 1]:g} in row {row}, "
                f"but targets of {type(likelihood).__name__} must be "
                f"{likelihood.support.description}; use another likelihood or other "
                "units, or drop such rows."
            )


def _open(
    source: pa.Table | TableScan, directory: Path | None
) -> pa.Table | StoredTable:
    if not isinstance(source, TableScan):
        return without_views(source)
    if directory is None:
        return pa.Table.from_batches(source.batches(), source.schema)
    return StoredTable.from_scan(source, directory)


def _parts(
    table: ParsedTable | StoredTable, rows: np.ndarray
) -> Iterator[ColumnSource]:
    """Yields some rows of a table, in their order, part by part."""
    chosen = np.zeros(table.num_rows, dtype=bool)
    chosen[rows] = True
    first = 0
    for part in table.tables() if isinstance(table, StoredTable) else [table]:
        here = chosen[first : first + part.num_rows]
        first += part.num_rows
        yield ParsedTable(part, np.flatnonzero(here))


def remark_on_choice(schema: Schema) -> list[str]:
    """Says how many columns were chosen, if there was a choice."""
    number = sum(reason == _LEFT_OUT for _, reason in schema.left_out)
    if not number:
        return []
    chosen = len(schema.features)
    return [
        f"The table has more columns than rows: a lasso of the training rows chose "
        f"{chosen} of {chosen + number}. Name `features` to choose them yourself."
    ]


def has_more_columns_than(num_rows: int, schema: Schema) -> bool:
    """Whether a network cannot tell which of the columns of numbers matter."""
    numbers = [column for column in schema.predictors if column.kind == "numeric"]
    return len(numbers) > num_rows >= _FOLDS * _FEWEST_ROWS_PER_FOLD


def choose_columns(
    schema: Schema,
    inputs: Inputs,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
) -> Schema | None:
    """Returns a schema with the columns of numbers that a lasso chooses.

    The penalty is the greatest whose cross-validated error is within one standard error
    of the least (Hastie, Tibshirani and Friedman 2009, section 7.10). Of classes, each
    has a lasso of its indicator. Other columns are kept.
    """
    # scikit-learn takes a second to import.
    from sklearn.linear_model import Lasso, LassoCV
    from sklearn.model_selection import KFold

    names = [column.name for column in schema.predictors]
    columns = named_columns(inputs, names)
    values = np.asarray(targets, np.float64).reshape(len(targets), -1)
    if schema.event is not None:
        values = np.log(values[:, :1])
    if schema.more_targets:
        # Their weights are compared with each other.
        values = values / values.std(axis=0)
    if schema.exposure is not None:
        exposures = columns.pop(schema.exposure).astype(np.float64)
        values = values / exposures[:, np.newaxis]
        weights = exposures if weights is None else weights * exposures
    encoding = InputEncoding.fit(columns, names)
    x = encoding.transform(columns)
    if schema.classes:
        values = (values == np.arange(len(schema.classes))).astype(np.float64)
        values = values[:, 1:] if len(schema.classes) == 2 else values
    strength, of_lasso, of_ridge = np.zeros(x.shape[1]), 0.0, 0.0
    folds = KFold(_FOLDS, shuffle=True, random_state=0)
    for y in values.T:
        path = LassoCV(cv=folds).fit(x, y, sample_weight=weights)
        errors = path.mse_path_.mean(axis=1)
        least = int(errors.argmin())
        error = path.mse_path_[least].std(ddof=1) / np.sqrt(_FOLDS)
        within = np.flatnonzero(errors <= errors[least] + error)
        fitted = Lasso(path.alphas_[within[0]]).fit(x, y, sample_weight=weights)
        strength = np.maximum(strength, np.abs(fitted.coef_))
        of_lasso += errors[least] - error
        ridge = Baseline.linear(x, y[:, np.newaxis], weights=weights)
        of_ridge += (ridge.scale or 0.0) ** 2
    if of_ridge < of_lasso:
        return None
    if np.count_nonzero(strength) < _FEWEST_COLUMNS:
        correlation = np.abs((x - x.mean(axis=0)).T @ (values - values.mean(axis=0)))
        strength = strength + 1e-9 * correlation.max(axis=1)
        strength[np.argsort(-strength)[_FEWEST_COLUMNS:]] = 0.0
    owners = np.repeat(names, [column.width for column in encoding.columns])
    chosen = set(owners[strength > 0.0])
    kept, left_out = [], list(schema.left_out)
    for column in schema.features:
        if column.name in chosen or column.kind != "numeric" or column.role:
            kept.append(column)
        else:
            left_out.append((column.name, _LEFT_OUT))
    return replace(schema, features=tuple(kept), left_out=tuple(left_out))
