"""Chooses the columns of a table that has more of them than rows."""

from dataclasses import replace

import numpy as np

from tfbbb.judging.evaluation.baseline import Baseline
from tfbbb.judging.evaluation.input_encoding import InputEncoding
from tfbbb.judging.types import Inputs
from tfbbb.tables import Schema

# Of the rows: the choice has seen the others.
HELD_OUT = 0.2
LEFT_OUT = "A lasso of the training rows leaves it out."
_FOLDS, _FEWEST_ROWS_PER_FOLD = 5, 5
_FEWEST_COLUMNS = 5


def remark_on_choice(schema: Schema) -> list[str]:
    """Says how many columns were chosen, if there was a choice."""
    number = sum(reason == LEFT_OUT for _, reason in schema.left_out)
    if not number:
        return []
    chosen = len(schema.features)
    return [
        f"The table has more columns than rows: a lasso of the training rows chose "
        f"{chosen} of {chosen + number}. Name `features` to choose them yourself."
    ]


def has_more_columns_than(num_rows: int, schema: Schema) -> bool:
    """Whether a network cannot tell which of the columns of numbers matter."""
    numbers = [column for column in schema.features if column.kind == "numeric"]
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

    names = [column.name for column in schema.features]
    encoding = InputEncoding.fit(inputs, names)
    x = encoding.transform(inputs)
    values = np.asarray(targets, np.float64).reshape(-1, 1)
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
        if column.name in chosen or column.kind != "numeric":
            kept.append(column)
        else:
            left_out.append((column.name, LEFT_OUT))
    return replace(schema, features=tuple(kept), left_out=tuple(left_out))
