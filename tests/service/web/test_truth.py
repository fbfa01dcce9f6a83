"""What came true, as the page shows it, and the alarm of drift."""

import csv
import io

import pytest
from playwright.sync_api import expect

from tests.service.web.conftest import copy_model, visit
from tests.service.web.tables import houses

MODEL = "truths"
PLACE = f"models/{MODEL}/1/truth"


@pytest.fixture(scope="module")
def model(site, trained):
    copy_model(site, MODEL)
    return MODEL


def tell(site, rows, by=0):
    """Sends houses whose prices are those of the training, moved by a number."""
    _, *found = csv.reader(io.StringIO(houses(rows)))
    body = {
        "instances": [[float(area), street] for area, street, _ in found],
        "targets": [float(price) + by for *_, price in found],
    }
    answer = site.client.post(f"/v1/models/{MODEL}/versions/1/feedback", json=body)
    assert answer.json()["num_rows"] == rows, answer.text


def test_the_truth_is_compared_and_drift_is_said_everywhere(page, site, model):
    visit(page, site, PLACE)
    expect(page.locator("#main")).to_contain_text("Nothing is known yet")

    tell(site, 100)
    visit(page, site, PLACE)
    expect(page.locator(".notice.good")).to_contain_text("No drift")
    figures = page.get_by_role("region", name="Figures of what came true")
    expect(
        figures.get_by_role("row").filter(has_text="In 90 % interval")
    ).to_be_visible()

    tell(site, 150, by=200_000)
    visit(page, site, PLACE)
    alarm = page.locator(".notice.warning")
    expect(alarm).to_contain_text("no longer come like")
    expect(alarm.get_by_role("link", name="Train anew")).to_be_visible()
    page.get_by_role("link", name="Report").click()
    expect(page.locator(".notice.warning").first).to_contain_text("no longer come like")
    page.get_by_role("link", name="Versions and labels").click()
    versions = page.get_by_role("region", name=f"Versions of {MODEL}")
    expect(versions.get_by_role("link", name="drift")).to_be_visible()
    visit(page, site, "models")
    row = page.get_by_role("row").filter(has_text=MODEL)
    row.get_by_role("link", name="drift").click()
    expect(page.get_by_role("heading", name="What came true")).to_be_visible()
