import numpy as np
import pytest

from tfbbb.tables.schema import Schema
from tfbbb.tables.sums import find_sum

GENERATOR = np.random.default_rng(0)
COLUMNS = {f"x{i}": GENERATOR.normal(size=100) for i in range(30)}


@pytest.mark.parametrize(
    "terms",
    [
        ((1, "x3"), (1, "x20")),
        ((1, "x3"), (-1, "x20")),
        ((-1, "x3"), (1, "x20")),
        ((1, "x0"), (1, "x9"), (1, "x29")),
        ((1, "x0"), (-1, "x9"), (-1, "x29")),
        ((-1, "x0"), (-1, "x9"), (1, "x29")),
        ((1, "x1"), (-1, "x2"), (1, "x5"), (1, "x6"), (-1, "x8")),
    ],
)
@pytest.mark.parametrize("decimals", [None, 2])
def test_columns_that_add_up_are_found(terms, decimals):
    columns = COLUMNS
    if decimals is not None:
        columns = {name: np.round(x, decimals) for name, x in COLUMNS.items()}
    target = sum(sign * columns[name] for sign, name in terms)
    assert find_sum(columns, target) == terms


def test_a_sum_is_found_beside_sums_of_its_parts():
    parts = {**COLUMNS, "net": COLUMNS["x1"] - COLUMNS["x2"]}
    target = parts["x1"] + parts["x2"]
    assert find_sum(parts, target) == ((1, "x1"), (1, "x2"))


def test_one_row_off_is_no_sum():
    target = COLUMNS["x1"] + COLUMNS["x2"]
    target[50] += 0.01
    assert find_sum(COLUMNS, target) == ()
    assert find_sum(COLUMNS, COLUMNS["x1"] * COLUMNS["x2"]) == ()


def test_rows_with_missing_values_and_constants_are_passed_over():
    target = COLUMNS["x1"] - COLUMNS["x2"]
    gaps = {**COLUMNS, "empty": np.full(100, np.nan), "same": np.ones(100)}
    gaps["x1"] = np.where(np.arange(100) % 3 == 0, np.nan, gaps["x1"])
    assert find_sum(gaps, target) == ((1, "x1"), (-1, "x2"))


def test_small_whole_numbers_add_up_in_every_row_or_not_at_all():
    counts = {f"n{i}": GENERATOR.integers(0, 3, 60).astype(float) for i in range(40)}
    target = counts["n7"] + counts["n30"]
    assert find_sum(counts, target) == ((1, "n7"), (1, "n30"))
    assert find_sum(counts, GENERATOR.integers(0, 7, 60).astype(float)) == ()


def test_a_schema_warns_of_columns_that_add_up_to_the_target():
    table = {**COLUMNS, "count": COLUMNS["x4"] - COLUMNS["x2"]}
    schema = Schema.infer(table, "count")
    assert {c.name: c.warnings for c in schema.features if c.warnings} == {
        "x2": (
            "The target 'count' is 'x4' - 'x2' in each row; if they are not known "
            "before the target is, leave them out (--ignore x2 --ignore x4).",
        )
    }
    (said,) = schema.column_warnings
    assert said.startswith("Column 'x2': The target 'count' is 'x4' - 'x2' in each row")
    assert schema.features[2].remarks == schema.features[2].warnings
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.refitted(table, np.arange(50)).features[2].warnings
