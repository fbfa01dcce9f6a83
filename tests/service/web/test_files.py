"""Files that are predicted on the page."""

import io
import re

import pyarrow as pa
import pyarrow.csv
import pytest
from playwright.sync_api import expect

from tests.service.web.conftest import MODEL, PREDICTED, drop, visit
from tests.service.web.tables import ATTACK, houses
from tfbbb.tables import read_table
from tfbbb.tables.writing import write_rows

PLACE = f"models/{MODEL}/1/file"


def houses_in(format, rows):
    table = pa.csv.read_csv(io.BytesIO(houses(rows).encode()))
    file = io.BytesIO()
    write_rows(table.to_reader(), file, format)
    return file.getvalue()


def download(page, path):
    with page.expect_download() as saved:
        page.get_by_role("link", name=re.compile("Download")).click()
    assert saved.value.suggested_filename == path.name
    saved.value.save_as(path)
    return read_table(path)


@pytest.mark.parametrize("format", ["xlsx", "parquet"])
def test_a_file_comes_back_in_its_format(page, site, trained, tmp_path, format):
    visit(page, site, PLACE)
    drop(page, ".drop", f"new.{format}", houses_in(format, 30))
    rows = page.get_by_role("region", name="Some predicted rows")
    expect(rows.locator("tbody tr")).to_have_count(20)
    header = rows.locator("thead").inner_text()
    for name in ("area", ATTACK, "price", "Prediction", "90 % range", "Familiarity"):
        assert name in header
    found = download(page, tmp_path / f"new-predicted.{format}")
    own = houses(1).splitlines()[0].split(",")
    assert found.column_names[:11] == [*own, *PREDICTED]
    assert found.num_rows == 30
    assert found["area"].to_pylist()[0] == int(houses(1).splitlines()[1].split(",")[0])


def test_doubtful_rows_come_first_if_wanted(page, site, trained):
    visit(page, site, PLACE)
    drop(page, ".drop", "new.csv", houses(40) + "9000,mill lane,\n")
    rows = page.get_by_role("region", name="Some predicted rows")
    first = rows.locator("tbody tr").first
    expect(first.locator("th")).to_have_text("1")
    page.get_by_label("Show").select_option("doubtful")
    expect(first.locator("th")).to_have_text("41")
    expect(first).to_contain_text("area")


def test_a_file_that_does_not_fit_says_why_and_can_be_tried_again(page, site, trained):
    visit(page, site, PLACE)
    for name, content, reason in (
        ("a.pdf", "%PDF-1.7", "a PDF document"),
        ("a.csv", "x,y\n1,2\n", "none of the columns that the model reads"),
        ("a.csv", "area\n1\n", ATTACK),
    ):
        drop(page, ".drop", name, content)
        expect(page.locator(".notice.error")).to_contain_text(reason)
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
