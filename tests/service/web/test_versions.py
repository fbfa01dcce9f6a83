"""Versions side by side, and their labels."""

import pytest
from playwright.sync_api import Page, expect

from tests.service.web.conftest import Site, copy_model, visit

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
