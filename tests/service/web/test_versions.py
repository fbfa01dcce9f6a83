"""Versions side by side, their notes, and trials of versions."""

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.service.web.conftest import Site, copy_model, visit
from tests.service.web.tables import ATTACK, SCRIPT

MODEL = "trials"
PLACE = f"models/{MODEL}/1/versions"


@pytest.fixture(scope="module")
def model(site: Site, trained: dict[str, str]) -> str:
    copy_model(site, MODEL)
    copy_model(site, MODEL, rmse=2000.0, coverage_90=0.7)
    for number in (1, 2):
        body = {"version": number}
        place = f"/v1/models/{MODEL}/labels/label-{number}"
        assert site.client.put(place, json=body).is_success
    return MODEL


def labels(site: Site) -> dict[str, Any]:
    found = site.client.get(f"/v1/models/{MODEL}/labels").json()["labels"]
    return {label["label"]: label for label in found}


def row_of(page: Page, label: str) -> Locator:
    table = page.get_by_role("region", name=f"Labels of {MODEL}")
    return table.get_by_role("row").filter(has_text=label)


def test_a_canary_and_a_shadow_begin_and_end_by_buttons(
    page: Page, site: Site, model: str
) -> None:
    visit(page, site, PLACE)
    form = page.get_by_role("form", name="Try a version")
    form.get_by_label("For the label").select_option("label-1")
    form.get_by_label("Version to try").select_option("2")
    form.get_by_label("Share of the requests").fill("0")
    form.get_by_role("button", name="Start the trial").click()
    expect(form.locator(".problem:not(:empty)")).to_contain_text("less than 100")
    form.get_by_label("Share of the requests").fill("25")
    form.get_by_role("button", name="Start the trial").click()
    row = row_of(page, "label-1")
    expect(row).to_contain_text("1 75.0 %; canary 2 25.0 %")
    assert labels(site)["label-1"]["canary"]["weight"] == 0.25
    row.get_by_role("button", name="End the canary").click()
    expect(row).not_to_contain_text("canary")

    form.get_by_label("Version to try").select_option("2")
    form.get_by_label("How").select_option("shadow")
    expect(form.get_by_label("Share of the requests")).to_be_hidden()
    form.get_by_label("For the label").select_option("label-1")
    form.get_by_role("button", name="Start the trial").click()
    expect(row).to_contain_text("shadow 2")
    assert labels(site)["label-1"]["shadow"]["version"] == 2
    row.get_by_role("button", name="End the shadow").click()
    expect(row).not_to_contain_text("shadow")
    assert labels(site)["label-1"] | {"moved_at": None} == {
        **{"label": "label-1", "version": 1, "canary": None, "shadow": None},
        **{"moved_at": None, "feedback": None},
    }


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
