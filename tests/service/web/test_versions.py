"""Versions side by side, their notes and labels."""

import pytest
from playwright.sync_api import Page, expect

from tests.service.web.conftest import Site, copy_model, visit
from tests.service.web.tables import ATTACK, SCRIPT

MODEL = "compared"
PLACE = f"models/{MODEL}/1/versions"


@pytest.fixture(scope="module")
def model(site: Site, trained: dict[str, str]) -> str:
    copy_model(site, MODEL)
    copy_model(site, MODEL, rmse=2000.0, coverage_90=0.7)
    return MODEL


def test_a_label_is_shown_with_its_version_and_deleted(
    page: Page, site: Site, model: str
) -> None:
    labels = f"/v1/models/{MODEL}/labels"
    assert site.client.put(f"{labels}/champion", json={"version": 1}).is_success
    visit(page, site, PLACE)
    table = page.get_by_role("region", name=f"Labels of {MODEL}")
    row = table.get_by_role("row").filter(has_text="champion")
    expect(row.get_by_role("link")).to_have_text("1")
    expect(row).to_contain_text("nothing yet")
    row.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)
    assert [x["label"] for x in site.client.get(labels).json()["labels"]] == ["latest"]


def test_two_versions_are_compared_in_words(page: Page, site: Site, model: str) -> None:
    visit(page, site, PLACE)
    part = page.locator("section").filter(has_text="Two versions side by side")
    expect(part).to_contain_text("Version 2 is")
    part.get_by_label("Compare").select_option("2")
    part.get_by_label("with", exact=True).select_option("1")
    expect(part).to_contain_text("worse in RMSE")
    part.get_by_label("Compare").select_option("1")
    expect(part).to_contain_text("Choose two versions")
    part.get_by_label("with", exact=True).select_option("2")
    expect(part).to_contain_text("Version 2 is better than version 1 in RMSE")
    expect(part).to_contain_text("worse in the share in 90 % intervals")
    expect(part).to_contain_text("trained with the same settings")


def test_notes_are_written_and_shown(page: Page, site: Site, model: str) -> None:
    visit(page, site, PLACE)
    page.get_by_label("Note about version 2").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("with weather")
    dialog.get_by_label("Note", exact=True).fill(SCRIPT)
    dialog.get_by_role("button", name="Save").click()
    versions = page.get_by_role("region", name=f"Versions of {MODEL}")
    expect(versions).to_contain_text("with weather")
    expect(versions).to_contain_text(SCRIPT)
    page.get_by_role("button", name="Add a note about the model").click()
    dialog.get_by_label("Name").fill(f"Prices {ATTACK}")
    dialog.get_by_role("button", name="Save").click()
    expect(page.locator(".subtitle")).to_have_text(f"Prices {ATTACK}")
    visit(page, site, f"models/{MODEL}/2")
    expect(page.get_by_role("heading", level=1)).to_contain_text(
        "version 2: with weather"
    )
    visit(page, site, "models")
    expect(page.get_by_role("row").filter(has_text=MODEL)).to_contain_text(ATTACK)
