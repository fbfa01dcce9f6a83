import numpy as np
import pytest

from tfbbb.tables.given_table import as_source
from tfbbb.tables.row_order import FirstRows, find_groups, find_time
from tfbbb.tables.schema import Schema
from tfbbb.training.rows_with_target import infer_schema
from tfbbb.training.spec import JobSpec

N = 240
GENERATOR = np.random.default_rng(0)
NOISE = GENERATOR.normal(size=N)
DAYS = np.datetime64("2020-01-01") + np.arange(N)
WALK = np.cumsum(NOISE)
GROUP = np.repeat(np.arange(40), 6)


def of_group(low, high):
    return np.repeat(GENERATOR.integers(low, high, 40), 6)


def warnings_of(columns, y=NOISE, **options):
    schema = Schema.infer({**columns, "y": y}, "y", **options)
    return {c.name: c.warnings for c in schema.features if c.warnings}


def test_a_column_of_dates_suggests_a_validation_by_time():
    columns = {"z": NOISE[::-1], "sold on": DAYS}
    ((name, (warning,)),) = warnings_of(columns, WALK).items()
    assert name == "sold on"
    start, end = warning.split(" times the error ")
    assert start.startswith(
        "It holds dates, and the rows are in its order. Rows that are held out at "
        "random lie between training rows in time, so the figures may be better than "
        "those of later rows: those of a linear model have "
    )
    assert float(start.split()[-1]) >= 1.1
    assert end == (
        "in the last fifth of the rows; measure the last rows instead, with a "
        "validation by time (--validation-time 'sold on')."
    )


def test_a_target_without_drift_suggests_no_validation_by_time():
    season = np.sin(2.0 * np.pi * np.arange(N) / 7.0)
    for y in (NOISE, season + 0.1 * NOISE, np.where(NOISE > 0, "a", "b")):
        assert not warnings_of({"z": NOISE[::-1], "sold on": DAYS}, y)


def test_of_several_dates_the_one_in_order_is_named():
    shuffled = GENERATOR.permutation(DAYS)
    columns = {"posted": shuffled, "sold": DAYS, "birth_date": DAYS[::-1]}
    assert list(warnings_of(columns, WALK)) == ["sold"]
    walk = WALK[np.argsort(np.argsort(shuffled))]
    (warning,) = warnings_of({"posted": shuffled, "z": NOISE[::-1]}, walk)["posted"]
    assert warning.startswith("It holds dates. Rows")
    assert not warnings_of({"birth_date": DAYS, "z": NOISE[::-1]})


@pytest.mark.parametrize(
    ("year", "part", "found"),
    [
        ("year", "month", True),
        ("Yr Sold", "Mo Sold", True),
        ("arrival_date_year", "arrival_date_month", True),
        ("Year Built", "Mo Sold", False),
        ("year", "monthly_rent", False),
    ],
)
def test_a_year_with_a_month_suggests_a_validation_by_time(year, part, found):
    columns = {
        year: FirstRows("numeric", 2010.0 + np.arange(N) // 60),
        part: FirstRows("numeric", np.arange(N) % 12.0),
    }
    name, said = find_time(columns) or (None, "")
    assert name == (year if found else None)
    assert (f"With {part!r} it tells a time, and the rows are in its" in said) is found


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
    ("kind", "low", "high"),
    # Columns of two values, such as the union of a person, count as well.
    [("numeric", 20, 80), ("categorical", 20, 80), ("numeric", 0, 2)],
)
def test_values_for_which_other_columns_are_constant_are_groups(kind, low, high):
    order = GENERATOR.permutation(N)
    columns = {
        "k": FirstRows(kind, GROUP[order].astype(float)),
        "first": FirstRows("numeric", of_group(low, high)[order].astype(float)),
        "second": FirstRows("numeric", of_group(low, high)[order].astype(float)),
        "z": FirstRows("numeric", NOISE),
    }
    name, said = find_groups(columns) or (None, "")
    assert name == "k"
    assert "in which 2 others are constant" in said
    del columns["second"]
    assert find_groups(columns) is None


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("rooms", GENERATOR.integers(0, 40, N)),
        ("years_at_company", GENERATOR.integers(0, 40, N)),
        ("subject", np.arange(N) % 4),
        ("id", GENERATOR.permutation(N)),
        ("id", NOISE),
    ],
)
def test_ordinary_columns_are_no_groups(name, values):
    columns = {
        name: FirstRows("numeric", values.astype(float)),
        "adult": FirstRows("numeric", (values > 17).astype(float)),
        "middle": FirstRows("numeric", ((values > 5) & (values < 30)).astype(float)),
        "rare": FirstRows("numeric", (np.arange(N) == 7).astype(float)),
        "rarer": FirstRows("numeric", (np.arange(N) == 9).astype(float)),
    }
    assert find_groups(columns) is None


def test_a_validation_that_names_a_column_silences_both():
    columns = {"subject": GROUP, "sold": DAYS}
    assert set(warnings_of(columns, WALK)) == {"subject", "sold"}
    assert not warnings_of(columns, WALK, held_out_at_random=False)


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
