"""What came true, dropped on the page, and the alarm of drift."""

import csv
import io

import pytest
from playwright.sync_api import Page, expect

from tests.service.web.conftest import Site, copy_model, drop, visit
from tests.service.web.tables import ATTACK, houses

MODEL = "truths"
PLACE = f"models/{MODEL}/1/truth"


@pytest.fixture(scope="module")
def model(site: Site, trained: dict[str, str]) -> str:
    copy_model(site, MODEL)
    return MODEL


def moved(rows: int, by: int) -> str:
    """Houses whose prices differ from those of the training."""
    found = list(csv.reader(io.StringIO(houses(rows))))
    text = io.StringIO()
    csv.writer(text).writerows(
        [
            found[0],
            *([area, street, int(price) + by] for area, street, price in found[1:]),
        ]
    )
    return text.getvalue()


def test_the_truth_is_compared_and_drift_is_said_everywhere(
    page: Page, site: Site, model: str
) -> None:
    visit(page, site, PLACE)
    expect(page.locator("#main")).to_contain_text("Nothing is known yet")
    drop(page, ".drop", "no.csv", f"area,{ATTACK}\n50,mill lane\n")
    expect(page.locator(".notice.error")).to_contain_text("lacks the column 'price'")

    drop(page, ".drop", "sold.csv", houses(100) + "50,mill lane,\n")
    done = page.locator(".notice.good")
    expect(done.first).to_contain_text("100 rows of sold.csv compared, 1 row left out")
    expect(done.last).to_contain_text("No drift")
    expect(page.locator("figure canvas")).to_have_count(2)
    figures = page.get_by_role("region", name="Figures of what came true")
    expect(
        figures.get_by_role("row").filter(has_text="In 90 % interval")
    ).to_be_visible()
    drop(page, ".drop", "sold.csv", houses(100) + "50,mill lane,\n")
    expect(page.locator(".notice").first).to_contain_text("was counted before")

    drop(page, ".drop", "later.csv", moved(150, 200_000))
    alarm = page.locator(".notice.warning")
    expect(alarm).to_contain_text("no longer come like")
    expect(alarm.get_by_role("button", name="Train anew")).to_be_visible()
    coverage = page.get_by_role("img", name="Share of the truth in its 90 % range")
    expect(coverage).to_have_attribute(
        "aria-label",
        "Share of the truth in its 90 % range. Of the last 50 rows, 0.0 % "
        "lie in their range. The dashed line marks the alarm of drift at row "
        f"{drift_row(site)}.",
    )
    page.get_by_role("link", name="Report").click()
    expect(page.locator(".notice.warning").first).to_contain_text("no longer come like")
    page.get_by_role("link", name="Versions and labels").click()
    for name in (f"Versions of {MODEL}", f"Labels of {MODEL}"):
        region = page.get_by_role("region", name=name)
        expect(region.get_by_role("link", name="drift")).to_be_visible()
    visit(page, site, "models")
    row = page.get_by_role("row").filter(has_text=MODEL)
    row.get_by_role("link", name="drift").click()
    expect(page.get_by_role("heading", name="What came true")).to_be_visible()


def drift_row(site: Site) -> int:
    found = site.client.get(f"/v1/models/{MODEL}/versions/1/feedback").json()
    row: int = found["drift"]["alarm_row"]
    return row
