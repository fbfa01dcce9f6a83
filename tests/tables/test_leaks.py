import numpy as np
import pytest

from tfbbb.tables.column_words import naming
from tfbbb.tables.given_table import as_source
from tfbbb.tables.leaks import FirstRows, find_groups, find_identifier, find_sum
from tfbbb.tables.notations.number import NumberNotation
from tfbbb.tables.parsed_column import ParsedColumn
from tfbbb.tables.schema import Schema
from tfbbb.training.spec import JobSpec
from tfbbb.training.split import infer_schema

GENERATOR = np.random.default_rng(0)
COUNTER = GENERATOR.permutation(np.arange(1, 2001))
GROWING = np.cumsum(GENERATOR.integers(1, 900, 300))


def examine(values, name="k", notation=None):
    values = np.asarray(values, np.float64)
    column = ParsedColumn(name, "numeric", notation, values, np.isnan(values))
    return find_identifier(column)


def is_identifier(values, name="k"):
    found = examine(values, name)
    return found is not None and found.kind == "reason"


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


@pytest.mark.parametrize("share", [0.2, 0.9])
@pytest.mark.parametrize("name", ["rownames", "house_no", "k"])
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
    assert found.kind == "remark"
    assert "a time or the reading of a meter" in found.text


def test_an_identifier_may_repeat_in_a_few_rows():
    values = COUNTER[:100].copy()
    values[:4] = values[4:8]
    assert examine(values, "id").text == (
        "96 of its 100 whole numbers differ, like an identifier, so a model learns "
        "nothing from it."
    )
    values[:8] = values[8:16]
    assert examine(values, "id") is None


def test_named_identifiers_with_missing_values_are_found():
    values = COUNTER[:100].astype(float)
    values[:5] = np.nan
    assert is_identifier(values, "id")


@pytest.mark.parametrize(
    "notation", [NumberNotation(unit="kg"), NumberNotation(currency=True)]
)
def test_numbers_with_a_unit_are_measurements(notation):
    assert examine(COUNTER, "id", notation) is None
    assert is_identifier(COUNTER, "id")


@pytest.mark.parametrize(
    "values",
    [
        GENERATOR.permutation(np.arange(0, 3000, 10)),
        GENERATOR.permutation(np.arange(1900, 2020)),
        np.arange(1900, 2020),
        GENERATOR.normal(size=100),
        COUNTER[:19],
        GENERATOR.permutation(10**6)[:100],
    ],
)
def test_grids_years_and_sparse_numbers_are_kept_without_remark(values):
    assert examine(values) is None


MEASUREMENTS = {
    "square metres": lambda g, n: g.lognormal(4.5, 0.4, n),
    "population": lambda g, n: g.lognormal(9, 2, n),
    "price": lambda g, n: g.lognormal(12.5, 0.5, n),
    "uniform": lambda g, n: g.uniform(0, 10 * n, n),
    "dense": lambda g, n: g.uniform(0, n, n),
    "counts": lambda g, n: g.poisson(200, n),
    "cents": lambda g, n: 100 * g.lognormal(2, 1, n),
}


@pytest.mark.parametrize("kind", MEASUREMENTS)
@pytest.mark.parametrize("number", [25, 400, 3000])
def test_independent_measurements_are_never_identifiers(kind, number):
    for seed in range(5):
        values = MEASUREMENTS[kind](np.random.default_rng(seed), number)
        assert examine(np.round(values), "number of people") is None


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


N = 240
DRAWS = np.random.default_rng(0)
NOISE = DRAWS.normal(size=N)
DAYS = np.datetime64("2020-01-01") + np.arange(N)
WALK = np.cumsum(NOISE)
GROUP = np.repeat(np.arange(40), 6)


def warnings_of(columns, y=NOISE, **options):
    schema = Schema.infer({**columns, "y": y}, "y", **options)
    return {c.name: c.warnings for c in schema.features if c.warnings}


def test_a_column_of_dates_suggests_a_validation_by_time():
    columns = {"z": NOISE[::-1], "sold on": DAYS}
    ((name, (warning,)),) = warnings_of(columns, WALK).items()
    assert name == "sold on"
    start, end = warning.split(" times as much ")
    assert start.startswith(
        "It holds dates, and the rows are in its order. Rows that are held out at "
        "random lie between training rows in time, so the figures may be better than "
        "those of later rows, as the target changes "
    )
    assert float(start.split()[-1]) >= 3.0
    assert end == (
        "between twentieths of the time as by chance; measure the last rows instead, "
        "with a validation by time (--validation-time 'sold on')."
    )


def test_a_target_without_drift_suggests_no_validation_by_time():
    season = np.sin(2.0 * np.pi * np.arange(N) / 7.0)
    for y in (NOISE, season + 0.1 * NOISE, np.where(NOISE > 0, "a", "b")):
        assert not warnings_of({"z": NOISE[::-1], "sold on": DAYS}, y)


def test_of_several_dates_the_one_in_order_is_named():
    shuffled = DRAWS.permutation(DAYS)
    columns = {"posted": shuffled, "sold": DAYS, "birth_date": DAYS[::-1]}
    assert list(warnings_of(columns, WALK)) == ["sold"]
    walk = WALK[np.argsort(np.argsort(shuffled))]
    (warning,) = warnings_of({"posted": shuffled, "z": NOISE[::-1]}, walk)["posted"]
    assert warning.startswith("It holds dates. Rows")
    assert not warnings_of({"birth_date": DAYS, "z": NOISE[::-1]})


def test_a_named_group_of_rows_suggests_a_validation_by_group():
    found = warnings_of({"subject": GROUP, "z": NOISE[::-1]})
    assert found == {
        "subject": (
            "Each of its 40 values has 6 rows on average, like a person or a station "
            "that was measured several times. If rows to predict have other values "
            "than these, the figures are too good; hold whole groups out with a "
            "validation by group (--validation-group subject).",
        )
    }


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("rooms", DRAWS.integers(0, 40, N)),
        ("years_at_company", DRAWS.integers(0, 40, N)),
        ("subject", np.arange(N) % 4),
        ("id", DRAWS.permutation(N)),
        ("id", NOISE),
    ],
)
def test_ordinary_columns_are_no_groups(name, values):
    column = FirstRows("numeric", values.astype(float))
    assert find_groups({name: column}) is None


@pytest.mark.parametrize(
    ("validation", "found"),
    [({}, True), ({"fraction": 0.2}, True), ({"group": "who"}, False)],
)
def test_the_validation_of_a_job_decides_whether_an_order_is_said(validation, found):
    table = {"sold": DAYS, "who": GROUP % 7, "y": WALK}
    job = {"target": "y", "training": {"validation": validation}}
    schema = infer_schema(as_source(table), JobSpec.model_validate(job))
    said = [text for text in schema.column_warnings if "--validation-time" in text]
    assert len(said) == found


SUMMANDS = np.random.default_rng(0)
COLUMNS = {f"x{i}": SUMMANDS.normal(size=100) for i in range(30)}


@pytest.mark.parametrize(
    "terms",
    [
        ((1, "x3"), (-1, "x20")),
        ((-1, "x3"), (1, "x20")),
        ((1, "x0"), (-1, "x9"), (-1, "x29")),
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


def test_a_sum_is_rounded_after_it_was_added_up():
    prices = {name: np.exp(4.0 + x) for name, x in COLUMNS.items()}
    paid = np.round(prices["x1"] + prices["x2"] - prices["x5"], 2)
    rounded = {name: np.round(price, 2) for name, price in prices.items()}
    assert find_sum(rounded, paid) == ((1, "x1"), (1, "x2"), (-1, "x5"))
    paid[50] += 0.1
    assert find_sum(rounded, paid) == ()


def test_rows_with_missing_values_and_constants_are_passed_over():
    target = COLUMNS["x1"] - COLUMNS["x2"]
    gaps = {**COLUMNS, "empty": np.full(100, np.nan), "same": np.ones(100)}
    gaps["x1"] = np.where(np.arange(100) % 3 == 0, np.nan, gaps["x1"])
    assert find_sum(gaps, target) == ((1, "x1"), (-1, "x2"))


def test_small_whole_numbers_add_up_in_every_row_or_not_at_all():
    counts = {f"n{i}": SUMMANDS.integers(0, 3, 60).astype(float) for i in range(40)}
    target = counts["n7"] + counts["n30"]
    assert find_sum(counts, target) == ((1, "n7"), (1, "n30"))
    assert find_sum(counts, SUMMANDS.integers(0, 7, 60).astype(float)) == ()


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_a_target_that_is_a_linear_function_of_columns_is_said(noise):
    target = 2 * COLUMNS["x1"] - 0.5 * COLUMNS["x3"] + 7 + noise * COLUMNS["x9"] ** 2
    found = warnings_of(COLUMNS, target, held_out_at_random=False)
    said = (
        "The target 'y' is a linear function of 'x1' and 'x3' in each row; if they are "
        "not known before the target is, leave them out (--ignore x1 --ignore x3)."
    )
    assert found == ({} if noise else {"x1": (said,)})


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


OBSERVED = {
    "age": SUMMANDS.integers(20, 80, 120),
    "time": SUMMANDS.integers(1, 300, 120),
    "event": SUMMANDS.integers(0, 2, 120),
}


def follow_up_warnings(target, **names):
    columns = {names.get(name, name): values for name, values in OBSERVED.items()}
    schema = Schema.infer(columns, target)
    return {column.name: column.warnings for column in schema.features}


@pytest.mark.parametrize(
    ("time", "event"),
    [("time", "event"), ("follow_up_days", "status"), ("survivalMonths", "is_dead")],
)
def test_a_time_beside_its_event_is_said(time, event):
    (warning,) = follow_up_warnings(time, time=time, event=event)[event]
    assert "predicted times are too short" in warning
    (warning,) = follow_up_warnings(event, time=time, event=event)[time]
    assert f"--ignore {time}" in warning


@pytest.mark.parametrize(
    ("time", "event"),
    [("days_since_visit", "event"), ("time", "marital status"), ("price", "died")],
)
def test_other_times_and_events_are_not(time, event):
    for target in (time, event):
        assert not any(follow_up_warnings(target, time=time, event=event).values())
