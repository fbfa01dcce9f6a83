import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfbbb.tables.identifiers import Finding, examine_numbers, naming
from tfbbb.tables.notations.number import NumberNotation
from tfbbb.tables.parsed_column import ParsedColumn
from tfbbb.tables.schema import Schema

GENERATOR = np.random.default_rng(0)
COUNTER = GENERATOR.permutation(np.arange(1, 2001))
GROWING = np.cumsum(GENERATOR.integers(1, 900, 300))


def examine(values, name="k", notation=None):
    values = np.asarray(values, np.float64)
    column = ParsedColumn(name, "numeric", notation, values, np.isnan(values))
    return examine_numbers(column)


def is_identifier(values, name="k"):
    return examine(values, name).reason is not None


@pytest.mark.parametrize(
    ("name", "found"),
    [
        *[(name, "identifier") for name in ("id", "PassengerId", "ID_REF", "rownames")],
        *[(name, "identifier") for name in ("customer id", "Unnamed: 0", "index")],
        *[(name, "numbering") for name in ("house_no", "No.", "", "X", "obs", "lfd")],
        *[(name, "measurement") for name in ("age", "year_built", "odometer", "Rank")],
        *[(name, "other") for name in ("no_of_rooms", "humid", "x", "mean of no")],
    ],
)
def test_names_tell_identifiers_from_measurements(name, found):
    assert naming(name) == found


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.9])
@pytest.mark.parametrize("name", ["id", "rownames", "house_no", "k"])
def test_a_random_part_of_a_counter_is_an_identifier(share, name):
    part = COUNTER[: int(share * len(COUNTER))]
    assert is_identifier(part, name)
    kept_by_order = name == "k" and share < 0.5
    assert is_identifier(np.sort(part), name) is not kept_by_order


def test_rows_of_a_counter_may_come_in_blocks():
    blocks = np.concatenate([np.arange(1, 101), np.arange(401, 501)])
    assert is_identifier(GENERATOR.permutation(blocks))


@pytest.mark.parametrize("name", ["id", "house_id", "record no"])
def test_a_growing_column_named_as_identifier_is_one(name):
    assert is_identifier(GROWING, name)
    assert is_identifier(10**9 + GROWING, name)


@pytest.mark.parametrize("name", ["reading", "odometer", "timestamp"])
@pytest.mark.parametrize("start", [0, 1_600_000_000])
def test_other_growing_numbers_are_kept_with_a_remark(name, start):
    found = examine(start + GROWING, name)
    assert found.reason is None
    assert "a time or the reading of a meter" in found.remark


def test_an_identifier_may_repeat_in_a_few_rows():
    values = COUNTER[:100].copy()
    values[:4] = values[4:8]
    assert examine(values, "id").reason == (
        "96 of its 100 whole numbers differ, like an identifier, so a model learns "
        "nothing from it."
    )
    values[:8] = values[8:16]
    assert examine(values, "id") == Finding()


def test_named_identifiers_with_missing_values_are_found():
    values = COUNTER[:100].astype(float)
    values[:5] = np.nan
    assert is_identifier(values, "id")


@pytest.mark.parametrize(
    "notation",
    [NumberNotation(unit="kg"), NumberNotation(currency=True)],
)
def test_numbers_with_a_unit_are_measurements(notation):
    assert examine(COUNTER, "id", notation) == Finding()
    assert is_identifier(COUNTER, "id")


@pytest.mark.parametrize(
    "values",
    [
        GENERATOR.permutation(np.arange(0, 3000, 10)),
        GENERATOR.permutation(np.arange(1900, 2020)),
        np.arange(1900, 2020),
        GENERATOR.normal(size=100),
        GENERATOR.permutation(100) + 0.5,
        GENERATOR.permutation(100) - 50,
        COUNTER[:19],
        GENERATOR.permutation(10**6)[:100],
    ],
)
def test_grids_years_and_sparse_numbers_are_kept_without_remark(values):
    assert examine(values) == Finding()


MEASUREMENTS = {
    "square metres": lambda g, n: g.lognormal(4.5, 0.4, n),
    "population": lambda g, n: g.lognormal(9, 2, n),
    "price": lambda g, n: g.lognormal(12.5, 0.5, n),
    "uniform": lambda g, n: g.uniform(0, 10 * n, n),
    "dense": lambda g, n: g.uniform(0, n, n),
    "counts": lambda g, n: g.poisson(200, n),
    "cents": lambda g, n: 100 * g.lognormal(2, 1, n),
}


@given(
    kind=st.sampled_from(sorted(MEASUREMENTS)),
    number=st.integers(20, 3000),
    seed=st.integers(0, 2**32 - 1),
    name=st.sampled_from(["value", "sqft", "number of people", "code", "x1"]),
)
@settings(max_examples=200, deadline=None)
def test_independent_measurements_are_never_identifiers(kind, number, seed, name):
    generator = np.random.default_rng(seed)
    values = np.round(MEASUREMENTS[kind](generator, number))
    assert examine(values, name) == Finding()


def test_an_identifier_is_left_out_unless_it_is_asked_for():
    n = 200
    table = {
        "k": COUNTER[:n],
        "who": [f"person {i % 192}" for i in range(n)],
        "z": GENERATOR.normal(size=n),
        "y": GENERATOR.normal(size=n),
    }
    left_out = dict(Schema.infer(table, "y").left_out)
    assert set(left_out) == {"who"}
    table["k"] = COUNTER[COUNTER <= 250][:n]
    left_out = dict(Schema.infer(table, "y").left_out)
    assert left_out["k"].endswith(
        "Name it in `features` (or say --column k=number) to keep it."
    )
    assert "has 192 different texts in 200 rows" in left_out["who"]
    assert left_out["who"].endswith("(or say --column who=text) to keep it.")
    kept = Schema.infer(table, "y", columns={"k": "number", "who": "text"})
    assert [column.name for column in kept.features] == ["k", "who", "z"]
    assert "like an identifier" in kept.features[0].remarks[-1]
    assert Schema.infer(table, "y", features=["k", "who"]).left_out == ()
