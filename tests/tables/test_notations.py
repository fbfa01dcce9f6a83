import datetime
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfbbb.tables.notations import (
    infer_beside_odd_cells,
    infer_notation,
    notation_from_dict,
)
from tfbbb.tables.notations.date import DateNotation
from tfbbb.tables.notations.duration import DurationNotation
from tfbbb.tables.notations.notation import Texts
from tfbbb.tables.notations.number import NumberNotation
from tfbbb.tables.notations.ranges import find_levels
from tfbbb.tables.notations.words import OrderedNotation


def understood(cells):
    """The finding of a column, and the numbers of its cells."""
    texts = Texts.of(pa.array(cells, pa.string()))
    found = infer_notation(texts.distinct)
    if found.notation is None:
        return found, None
    # The record survives JSON.
    stored = notation_from_dict(json.loads(json.dumps(found.notation.to_dict())))
    assert stored == found.notation
    parsed = texts.parse(stored)
    assert found.share < 1.0 or not parsed.unreadable.any()
    return found, parsed.numbers


def assert_read(kind, cells, numbers):
    found, read = understood(cells)
    assert found.notation.kind == kind
    np.testing.assert_array_equal(read, numbers)


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["$1,234.50", "($7)", "-$8", "$ -9"], [1234.5, -7, -8, -9]),
        (["1.234,5 €", "1.000.000 €", "7 €"], [1234.5, 1e6, 7]),
        (["1\u00a0234,5", "12 345 678", "7,25"], [1234.5, 12345678, 7.25]),
        (["CHF 1'234.50", "CHF 2\u2019000"], [1234.5, 2000]),
        (["₹12,34,567", "₹1,000"], [1234567, 1000]),
        (["12.3%", "5 %", "-1%"], [12.3 / 100, 0.05, -0.01]),
        (["3.5 kg", "4 kg", "2kg"], [3.5, 4, 2]),
        (["€1.2M", "€800K", "€900"], [1.2e6, 8e5, 900]),
        (["−5", "+3", "4-", "1e3", ".5", "2."], [-5, 3, -4, 1000, 0.5, 2]),
        (["5", "?", "NA", "n/a", "-", "--", "None", "null", ""], [5] + [np.nan] * 8),
    ],
)
def test_numbers_are_read_as_people_write_them(cells, numbers):
    assert_read("number", cells, numbers)


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["800", "837", "900 - 950", "1,050"], [800, 837, 925, 1050]),
        (["900 - 950", "950 - 990"], [925, 970]),
        (["880 g", "1.20 kg", "2 kg"], [0.88, 1.2, 2]),
        (["20°C", "25°C", "68°F"], [20, 25, 20]),
        (["45.5°N", "12°S", "7°N"], [45.5, -12, 7]),
        (["12%", "0.12", "0.5", "0.25"], [0.12, 0.12, 0.5, 0.25]),
        (["12%", "13", "14", "15"], [0.12, 0.13, 0.14, 0.15]),
        # Fractions of three digits beside whole numbers below 1000 are thousands.
        (["300", "1.200", "145.200"], [300, 1200, 145200]),
        (["300", "1.200", "0.125"], [300, 1.2, 0.125]),
    ],
)
def test_numbers_of_several_forms_are_read_together(cells, numbers):
    assert_read("number", cells, numbers)


@pytest.mark.parametrize(
    ("cells", "years"),
    [
        (["03/31/62", "12/24/99", "07/14/05"], [1962, 1999, 2005]),
        (["31.12.58", "24.12.47"], [1958, 1947]),
        (["31 Mar 62", "24 Dec 99"], [1962, 1999]),
        # Dates of expiry.
        (["03/31/24", "12/31/31", "06/30/62"], [2024, 2031, 2062]),
        (["03/31/2062", "12/24/1999"], [2062, 1999]),
    ],
)
def test_short_years_of_birth_are_not_in_the_future(cells, years):
    found, read = understood(cells)
    assert found.notation.kind == "date"
    days = (read // 86400).astype("datetime64[D]")
    assert (days.astype("datetime64[Y]").astype(int) + 1970).tolist() == years


@pytest.mark.parametrize(
    "cells",
    [
        ["red", "green"],
        ["3 kg", "4 km"],
        # Codes: leading zeros, several letters, dots.
        ["007", "012"],
        ["1.2.3", "1.10.4"],
        ["(5", "6"],
        ["INV 17", "INV 18"],
        # One letter in twenty texts is no unit.
        ["10B", *map(str, range(19))],
        ["2022-13-01", "2022-02-30"],
        ["25:61", "1:99"],
        ["y", "z"],
    ],
)
def test_other_texts_are_categories(cells):
    found, _ = understood(cells)
    assert found.share < 1.0


@pytest.mark.parametrize(
    ("cells", "notation"),
    [
        (["1,234", "5,678"], NumberNotation(thousands=",")),
        (["$1.234", "$5.678"], NumberNotation(currency=True, thousands=",")),
        (["01/02/2022", "03/04/2022"], DateNotation("month-first")),
        (["01.02.2022", "03.04.2022"], DateNotation("day-first")),
        (["1:30", "2:45"], DurationNotation()),
        (["5%", "6%", "7"], NumberNotation(percent="sign")),
        (["$5", "€6"], NumberNotation(currency=True, thousands=",")),
    ],
)
def test_open_choices_are_said(cells, notation):
    found, _ = understood(cells)
    assert found.notation == notation
    assert found.remarks


@pytest.mark.parametrize(
    "cells", [["1,234.5", "5,678"], ["1,234", "5,67"], ["31.03.2022"], ["31/03/2022"]]
)
def test_one_cell_may_decide_the_whole_column(cells):
    found, _ = understood(cells)
    assert found.notation is not None
    assert not found.remarks


@pytest.mark.parametrize(
    "words", [["yes", "No"], ["t", "F"], ["on", "off"], ["Ja", "nein"], ["sí", "NO"]]
)
def test_booleans_are_read_in_every_spelling(words):
    assert_read("boolean", [*words, *words, "?"], [1.0, 0.0, 1.0, 0.0, np.nan])


@pytest.mark.parametrize(
    ("cells", "seconds"),
    [
        (["1:30:00", "0:00:01.5", "-1:00"], [5400, 1.5, -3600]),
        (["2 days 03:00:00", "1 day, 0:00:00"], [183600, 86400]),
        (["1h 30min", "5 min", "2 days"], [5400, 300, 172800]),
        (["P1DT2H", "PT30S"], [93600, 30]),
        (["1:02.5", "0:59.25", "58.5"], [62.5, 59.25, 58.5]),
        (["9:15 AM", "12:00 AM", "12:30 pm"], [33300, 0, 45000]),
        (["13h05", "0h00", "9 h 30 min"], [47100, 0, 34200]),
    ],
)
def test_durations_are_read_in_seconds(cells, seconds):
    assert_read("duration", cells, seconds)


_DATES = {
    "%Y-%m-%d": "year-first",
    "%Y-%m-%d %H:%M:%SZ": "year-first",
    "%d %B %Y": "year-first",
    "%B %d, %Y": "year-first",
    "%a, %d %b %Y %H:%M:%S": "year-first",
    "%m/%d/%Y %I:%M:%S %p": "month-first",
    "%d.%m.%Y": "day-first",
    "%d/%m/%y %H:%M": "day-first",
}
_SECONDS = np.random.default_rng(0).integers(0, 99 * 365 * 86400, 200).tolist()
_MOMENTS = [
    datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    for seconds in _SECONDS
]


@pytest.mark.parametrize("pattern", _DATES)
def test_dates_are_those_of_datetime(pattern):
    # Years of two digits that lie ahead are read as years of the last century.
    moments = [moment for moment in _MOMENTS if moment.year <= 2026]
    if "%y" not in pattern:
        moments = _MOMENTS
    # This one decides the order.
    moments = [datetime.datetime(2001, 7, 31, 13, 5, 9), *moments]
    cells = [moment.strftime(pattern) for moment in moments]
    found, read = understood(cells)
    assert found.notation == DateNotation(_DATES[pattern])
    expected = [
        datetime.datetime.strptime(cell, pattern)
        .replace(tzinfo=datetime.UTC)
        .timestamp()
        for cell in cells
    ]
    np.testing.assert_array_equal(read, expected)


def test_zones_are_converted_to_utc():
    minutes = np.random.default_rng(1).integers(-14 * 60, 14 * 60, 200).tolist()
    zones = [datetime.timezone(datetime.timedelta(minutes=m)) for m in minutes]
    pairs = zip(_MOMENTS, zones, strict=True)
    moments = [moment.replace(tzinfo=zone) for moment, zone in pairs]
    _, read = understood([moment.isoformat() for moment in moments])
    assert read.tolist() == [moment.timestamp() for moment in moments]


def _written(value, decimal, thousands, before, after, negative):
    text = f"{abs(value):,}".replace(",", "T").replace(".", "D")
    text = text.replace("T", thousands).replace("D", decimal)
    text = f"{before}{text}{after}"
    if value >= 0:
        return text
    return f"({text})" if negative == "(" else f"-{text}"


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.decimals(-(10**9), 10**9, places=2), min_size=1, max_size=30),
    st.sampled_from([(".", ""), (".", ","), (",", "."), (",", " "), (".", "'")]),
    st.sampled_from(["", "$", "€ ", "US$", "GBP "]),
    st.sampled_from(["", " kg", " km/h", "\u00a0€", " USD", "°C"]),
    st.sampled_from("(-"),
    st.sampled_from(["", "?", "NA", "-"]),
)
def test_written_numbers_are_read_to_the_last_bit(
    values, marks, before, after, negative, missing
):
    values = [value + 0 for value in values]
    cells = [_written(v, *marks, before, after, negative) for v in values]
    _, read = understood([*cells, missing])
    np.testing.assert_array_equal(read, [*map(float, values), np.nan])


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.one_of(st.text(max_size=12), st.from_regex(r"[\d.,:/%$() -]{1,12}")))
)
def test_any_texts_are_understood_without_an_error(cells):
    found, read = understood([cell.replace("\0", "") for cell in cells])
    assert read is None or (len(read) == len(cells) and 0 <= found.share <= 1)


def read_beside_odd_cells(cells):
    """The finding of a column with odd cells, and the numbers of its cells."""
    texts = Texts.of(pa.array(cells, pa.string()))
    found = infer_beside_odd_cells(texts)
    if found.notation is None:
        return found, None
    stored = notation_from_dict(json.loads(json.dumps(found.notation.to_dict())))
    assert stored == found.notation
    return found, texts.parse(stored).numbers


WHOLE = [str(i) for i in range(20)]


@pytest.mark.parametrize(
    ("numbers", "odd"),
    [
        (["1.5", "2.5"], ["unknown", "Unknown"]),
        (["1", "2", "3"], ["****"]),
        (["1", "2", "3"], ["Indef.", "..", ":", "#DIV/0!", "n.d.", "(missing)"]),
        # Any word beside many numbers, at any share.
        (WHOLE, ["void"] * 40),
        (["$1.5", "$2", "$3", "$4", "$5"], ["call"] * 3),
        # A rare slip.
        (WHOLE, ["12a"]),
        (["2020-01-02", "2020-01-31"], ["0000-00-00", "unknown"]),
    ],
)
def test_odd_cells_among_numbers_are_missing_and_counted(numbers, odd):
    found, read = read_beside_odd_cells([*numbers, *odd])
    expected = infer_notation(pa.array(numbers)).notation.parse(pa.array(numbers))
    np.testing.assert_array_equal(read[: len(numbers)], expected.numbers)
    assert np.isnan(read[len(numbers) :]).all()
    known = {"n.a."}
    marks = sorted({text.lower() for text in odd} - known)
    assert list(found.notation.missing_marks) == marks
    number = len([text for text in odd if text not in known])
    assert f"in {number} cell" in found.remarks[0]


@pytest.mark.parametrize(
    "cells",
    [
        ["low", "high", "1", "2"],
        ["A", *map(str, range(2, 11)), "J", "Q", "K"],
        [*map(str, range(40)), "V57", "V22", "E88", "E89"],
        ["red", "blue", "unknown"],
        ["yes", "no", "unknown"],
        ["3-1", "2-2", "0-1"] * 3,
    ],
)
def test_codes_beside_numbers_are_categories(cells):
    assert read_beside_odd_cells(cells)[0].notation is None


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["<5", "872", ">1000", "≥ 7"], [5, 872, 1000, 7]),
        (["less than 2", "3.5", "10 or more", "~4"], [2, 3.5, 10, 4]),
        (["<1%", "5%", ">99 %"], [0.01, 0.05, 0.99]),
        (["0.5*", "1.5", "2.5†"], [0.5, 1.5, 2.5]),
        (["1,234[1]", "2,000", "3,100 [note 2]"], [1234, 2000, 3100]),
        (["12.5 p", "3.4", "7"], [12.5, 3.4, 7]),
    ],
)
def test_bounds_and_footnotes_leave_the_number_with_a_remark(cells, numbers):
    found, read = read_beside_odd_cells(cells)
    np.testing.assert_array_equal(read, numbers)
    assert "overrules this" in found.remarks[0]


@pytest.mark.parametrize(
    "levels",
    [
        ("<18", "18-24", "25-34", "35 to 64", "65+"),
        ("[0-10)", "[10-20)", "[20-30)"),
        ("(0, 10]", "(10, 20]", "(20, inf]"),
        ("Less than $40K", "$40K - $60K", "$60K - $80K", "$120K +"),
        ("0", "1-4", "5-9", "10 or more"),
        ("0-39g/day", "40-79", "80-119", "120+"),
        ("1,5-2,5", "2,5-3"),
    ],
)
def test_ranges_are_ordered_by_their_lower_ends(levels):
    assert find_levels(pa.array(levels[::-1])) == levels
    found, read = read_beside_odd_cells([*levels[::-1], "unknown"] * 3)
    assert found.notation == OrderedNotation(levels, missing_marks=("unknown",))
    assert read[: len(levels)].tolist() == [*range(len(levels))][::-1]


@pytest.mark.parametrize(
    "cells",
    [
        ["3-1", "0-2"],
        ["555-0100", "555-0101"],
        ["(40.7, -73.7)", "(40.8, -73.8)"],
        ["1-5", "3-8"],
    ],
)
def test_texts_that_do_not_divide_the_numbers_are_no_ranges(cells):
    assert find_levels(pa.array(cells)) == ()


def _seconds(*date):
    return datetime.datetime(*date, tzinfo=datetime.UTC).timestamp()


@pytest.mark.parametrize(
    ("cell", "date"),
    [
        ("20120701 01:00", (2012, 7, 1, 1)),
        ("20120701T010203Z", (2012, 7, 1, 1, 2, 3)),
        ("2010Q2", (2010, 4, 1)),
        ("Q4 2010", (2010, 10, 1)),
        # Weeks of ISO 8601: the first of 2019 begins in 2018.
        ("2019-W01", (2018, 12, 31)),
        ("2020-W53-7", (2021, 1, 3)),
        ("Feb-3-2010", (2010, 2, 3)),
        ("03/2019", (2019, 3, 1)),
        ("1935, October", (1935, 10, 1)),
        ("2019M12", (2019, 12, 1)),
        ("01/Mar/2019:13:00:11 +0100", (2019, 3, 1, 12, 0, 11)),
        ("Fri Mar  1 10:00:01 2019", (2019, 3, 1, 10, 0, 1)),
        ("2019-03-01 10h05", (2019, 3, 1, 10, 5)),
        ("201207", (2012, 7, 1)),
        ("20120701010203", (2012, 7, 1, 1, 2, 3)),
        ("01JAN2020", (2020, 1, 1)),
        ("Oct-98", (1998, 10, 1)),
        ("Oct '12", (2012, 10, 1)),
        ("12. März 2020", (2020, 3, 12)),
        ("Donnerstag, 12. Mär. 2020 um 14:05", (2020, 3, 12, 14, 5)),
        ("1er août 2019", (2019, 8, 1)),
        ("lundi 3 FÉVRIER 2020 à 14h05", (2020, 2, 3, 14, 5)),
        ("miércoles, 5 de mayo de 2021", (2021, 5, 5)),
        ("1º gennaio 2020", (2020, 1, 1)),
        ("segunda-feira, 7 de outubro de 2019", (2019, 10, 7)),
        ("le 3 févr. 2020", (2020, 2, 3)),
    ],
)
def test_dates_of_logs_quarters_weeks_and_months(cell, date):
    (seconds,) = DateNotation().parse(pa.array([cell])).numbers
    assert np.floor(seconds) == _seconds(*date)


@pytest.mark.parametrize(
    "cell", ["2019-W53", "2019-W00", "2010Q5", "20121301 01:00", "201213"]
)
def test_periods_that_no_calendar_has_are_unreadable(cell):
    assert DateNotation().parse(pa.array([cell])).unreadable.tolist() == [True]


@pytest.mark.parametrize(
    ("cells", "order"),
    [
        (["20120131", "20120229", "20130405"], "year-first"),
        (["01312018", "02282018", "12312019"], "month-first"),
        (["31012018", "28022018", "31122019"], "day-first"),
    ],
)
def test_dates_in_digits_are_the_same_as_texts_and_as_numbers(cells, order):
    found, read = understood(cells)
    assert found.notation == DateNotation(order, epoch="digits")
    assert "number overrules this" in found.remarks[0]
    as_numbers = found.notation.seconds(np.array([float(cell) for cell in cells]))
    np.testing.assert_array_equal(as_numbers, read)


@pytest.mark.parametrize(
    "cells",
    [
        ["20120131", "20120132", "20130405"],
        # One day of the year is a number of years.
        ["20120101", "20130101", "20140101"],
        ["20120131", "20120201"],
    ],
)
def test_other_numbers_of_eight_digits_stay_numbers(cells):
    assert understood(cells)[0].notation == NumberNotation()


_MONTHS = [year * 100 + month for year in (2011, 2012) for month in range(1, 13)]


@pytest.mark.parametrize("cells", [_MONTHS[:6], _MONTHS])
def test_years_with_months_in_digits_are_dates(cells):
    found, read = understood([*map(str, cells)])
    assert found.notation == DateNotation(epoch="digits")
    assert "are read as months, year first; number overrules" in found.remarks[0]
    as_numbers = found.notation.seconds(np.array(cells, float))
    np.testing.assert_array_equal(as_numbers, read)
    assert read[0] == _seconds(2011, 1, 1)


@pytest.mark.parametrize(
    "cells",
    [
        _MONTHS[:5],
        [*_MONTHS, 201213],
        # One month of the year is a number of years.
        [year * 100 + 1 for year in range(1990, 2020)],
        [month - 20_000 for month in _MONTHS],
    ],
)
def test_other_numbers_of_six_digits_stay_numbers(cells):
    assert understood([*map(str, cells)])[0].notation == NumberNotation()


def test_a_month_with_a_short_year_is_no_day_unless_its_numbers_are_those_of_days():
    found, read = understood(["Oct-12", "Nov-12", "Jan-13"])
    assert read[0] == _seconds(2012, 10, 1)
    assert not found.remarks
    days = [f"{month}-{day:02d}" for month in ("Oct", "Nov") for day in range(1, 31)]
    assert understood(days)[0].notation is None
    assert understood(["set-10", "set-11", "set-12"])[0].notation is None


def test_notations_of_earlier_versions_are_read():
    stored = {"kind": "number", "decimal": ",", "thousands": ".", "lenient": True}
    notation = notation_from_dict(stored)
    assert notation == NumberNotation(",", ".")
