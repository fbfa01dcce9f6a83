"""The columns that are chosen from more of them than rows."""

import numpy as np
import pyarrow as pa
import pytest

from tfbbb.tables import Schema
from tfbbb.training.preparation import choose_columns, prepare, remark_on_choice
from tfbbb.training.spec import JobSpec

ROWS, COLUMNS = 100, 150
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(ROWS, COLUMNS))
NOISE = 0.5 * GENERATOR.normal(size=ROWS)
FEW = 2.0 * X[:, 3] - 1.5 * X[:, 70] + NOISE


def table(y):
    columns = {f"x{number}": column for number, column in enumerate(X.T)}
    return pa.table({**columns, "word": ["a", "b"] * (ROWS // 2), "y": y})


def chosen(y):
    whole = table(y)
    schema = Schema.infer(whole, "y")
    return choose_columns(schema, schema.inputs(whole), schema.targets(whole))


@pytest.mark.parametrize("classes", [False, True])
def test_the_columns_that_matter_are_among_the_chosen(classes):
    found = chosen(np.where(FEW > 0, "up", "down") if classes else FEW)
    names = [column.name for column in found.features]
    assert {"x3", "x70", "word"} <= set(names)
    # By chance, one standard error lets few others in.
    assert len(names) < 30
    assert len(found.left_out) == COLUMNS + 1 - len(names)
    (remark,) = remark_on_choice(found)
    assert f"chose {len(names)} of {COLUMNS + 1}." in remark


def test_all_columns_are_kept_where_all_matter_a_little():
    common = GENERATOR.normal(size=ROWS)
    columns = {f"x{i}": common + 2 * x for i, x in enumerate(X.T)}
    whole = pa.table({**columns, "y": common})
    schema = Schema.infer(whole, "y")
    inputs, targets = schema.inputs(whole), schema.targets(whole)
    assert choose_columns(schema, inputs, targets) is None


def test_five_columns_are_kept_where_none_matters():
    assert len(chosen(GENERATOR.permutation(NOISE)).features) >= 5


def test_rows_that_the_choice_has_not_seen_measure_the_model():
    prepared = prepare(table(FEW), JobSpec(target="y"))
    assert len(prepared.held_out_rows) == ROWS // 5
    assert len(prepared.schema.features) < 30
    named = tuple(f"x{number}" for number in range(COLUMNS))
    prepared = prepare(table(FEW), JobSpec(target="y", features=named))
    assert len(prepared.schema.features) == COLUMNS
    assert not len(prepared.held_out_rows)
