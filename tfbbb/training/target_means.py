"""The mean target of each text of the columns with too many texts to list."""

from dataclasses import replace

import numpy as np

from tfbbb.tables import Schema
from tfbbb.tables.column import Column
from tfbbb.tables.column_names import ColumnSource
from tfbbb.tables.splitting import draw_folds
from tfbbb.tables.text_features import text_code
from tfbbb.training.neighbours import normal_scores

_FOLDS = 5
_MOST_TEXTS = 50_000
# The text of a training row stands for a bucket and a level of the mean.
_MOST_BUCKETS = 1000
# Standard errors from which on a correlation is not chance.
_LEAST_ERRORS = 4.0

# The mean that each training row has, by column.
RowMeans = dict[str, np.ndarray]


def with_target_means(
    schema: Schema,
    table: ColumnSource,
    *,
    groups: np.ndarray | None = None,
    last: np.ndarray | None = None,
    seed: int = 0,
) -> tuple[Schema, RowMeans]:
    """Adds the mean target of each text to the columns with at most 1000 buckets.

    The mean of the n rows of a text is smoothed towards 0, that of all rows:

        m = (sum of y) / (n + k),    k = variance within texts / variance between them

    which is the best linear prediction (Micci-Barreca 2001), of the normal scores of
    numbers (with an exposure, of rates; of several targets their mean) or of the
    indicator of the second of two classes. A training row has the mean of the rows in
    other folds, and one of the `last` rows that of the earlier ones, so that no row is
    told its own target. Columns whose means do not correlate with the targets stay as
    they are.
    """
    if not any(column.buckets for column in schema.features) or len(schema.classes) > 2:
        return schema, {}
    targets = schema.targets(table).astype(np.float64)
    targets = targets.reshape(len(targets), -1)
    if schema.event is not None:
        # How long it ran.
        targets = targets[:, :1]
    for column in schema.features:
        if column.role == "exposure":
            targets = targets / column.values(table)[:, np.newaxis]
    values = targets[:, 0]
    if not schema.classes:
        values = np.mean([normal_scores(column) for column in targets.T], axis=0)
    values = values - values.mean()
    groups = np.arange(len(values)) if groups is None else groups
    if len(np.unique(groups)) < _FOLDS:
        return schema, {}
    folds = draw_folds(groups, _FOLDS, generator=np.random.default_rng(seed))
    if last is not None:
        folds[last] = _FOLDS
    features: list[Column] = []
    row_means: RowMeans = {}
    for column in schema.features:
        if 0 < column.buckets <= _MOST_BUCKETS:
            column, of_rows = _with_means(column, table, values, folds)
            if of_rows is not None:
                row_means[column.name] = of_rows
        features.append(column)
    return replace(schema, features=tuple(features)), row_means


def _with_means(
    column: Column, table: ColumnSource, values: np.ndarray, folds: np.ndarray
) -> tuple[Column, np.ndarray | None]:
    """Returns a column with means and those of its rows, or itself and None."""
    parsed = column.parse(table)
    texts, places = parsed.texts, parsed.values
    counts = np.bincount(places, minlength=len(texts))
    smoothing = _smoothing(places, values)
    if smoothing is None:
        return column, None
    common = np.argsort(-counts, kind="stable")[:_MOST_TEXTS]
    common = common[counts[common] > 0]
    has_mean = np.isin(np.arange(len(texts)), common)

    def means(rows: np.ndarray) -> np.ndarray:
        numbers = np.bincount(places[rows], minlength=len(texts))
        sums = np.bincount(places[rows], values[rows], minlength=len(texts))
        return np.where(has_mean, sums / (numbers + smoothing), 0.0)

    of_rows = np.empty(len(values))
    for fold in np.unique(folds):
        others = (folds != fold) & (folds != _FOLDS)
        of_rows[folds == fold] = means(others)[places[folds == fold]]
    scale = float(of_rows.std())
    if not scale:
        return column, None
    correlation = np.mean(of_rows * values) / (scale * values.std())
    if correlation * np.sqrt(len(values)) < _LEAST_ERRORS:
        return column, None
    codes = text_code(texts.to_numpy(zero_copy_only=False)).numpy()
    common = common[np.argsort(codes[common])]
    found = means(np.ones(len(values), dtype=bool))[common] / scale
    column = replace(
        column,
        codes=tuple(codes[common].tolist()),
        means=tuple(np.round(found, 4).tolist()),
    )
    return column, of_rows / scale


def _smoothing(places: np.ndarray, values: np.ndarray) -> float | None:
    """Returns the variance within texts over that between, by analysis of variance."""
    counts = np.bincount(places)
    rows, number = len(places), np.count_nonzero(counts)
    if not 1 < number < rows:
        return None
    means = np.bincount(places, values) / np.maximum(counts, 1)
    within = np.square(values - means[places]).sum() / (rows - number)
    of_means = (counts * np.square(means)).sum() / (number - 1)
    effective = (rows - np.square(counts).sum() / rows) / (number - 1)
    between = (of_means - within) / effective
    return float(within / between) if between > 0.0 else None
