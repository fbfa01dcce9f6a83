"""The page in a browser, from dropping a file to a prediction and beyond."""

import json
import re
import statistics
import time

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from service.shared.database.tables import Job
from tests.service.serving import ADMIN_KEY
from tests.service.web.conftest import (
    MODEL,
    PATIENCE,
    SPEC,
    answered,
    drop,
    visit,
    watched_page,
)
from tests.service.web.looking import CHECKED, NARROW, look_at
from tests.service.web.tables import ATTACK, SCRIPT, houses

SCREENS = {
    "data": "data",
    "dataset": "data/{dataset}",
    "new job": "new?dataset={dataset}",
    "jobs": "jobs",
    "job": "jobs/{job}",
    "models": "models",
    "report": f"models/{MODEL}/1",
    "ask": f"models/{MODEL}/1/ask",
    "file": f"models/{MODEL}/1/file",
    "truth": f"models/{MODEL}/1/truth",
    "versions": f"models/{MODEL}/1/versions",
    "keys": "keys",
    "audit": "audit",
}
STEPS = '{"training": {"steps": 77}}'


def fill_job(page, others):
    """Fills in the form of a job, with other fields as JSON."""
    page.get_by_label("Target").select_option("price")
    page.get_by_label("Name of the model").fill(MODEL)
    others_field(page).fill(others)


def others_field(page):
    """Opens the section of a job's other fields; returns that of its JSON."""
    page.locator("form > details").evaluate("it => { it.open = true; }")
    return page.get_by_label("Other fields of the job")


def test_a_person_gets_from_a_file_to_a_prediction(browser, site, trained):
    with browser.new_context(accept_downloads=True) as context:
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.goto(site.url)
        page.get_by_label("Key").fill(ADMIN_KEY)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Data")).to_be_visible()

        drop(page, ".drop", "sold.csv", houses(150))
        expect(page.get_by_role("heading", name="sold.csv")).to_be_visible()
        row = page.get_by_role("row").filter(has_text="area")
        expect(row.get_by_role("img", name="Histogram of area")).to_be_visible()
        page.get_by_label("Take area as").select_option("number")

        # Its job was trained before.
        sent = answered(page, "**/v1/jobs", status=201, json={"id": trained["job"]})
        page.get_by_role("link", name="Train a model").click()
        fill_job(page, json.dumps({name: SPEC[name] for name in ("training", "model")}))
        page.get_by_role("button", name="Start training").click()
        expect(page.get_by_role("heading", name=MODEL)).to_be_visible()
        (body,) = sent
        assert (SPEC | {"name": MODEL}).items() <= body.items()
        expect(page.get_by_text("succeeded", exact=True)).to_be_visible()
        expect(page.get_by_text(f"Version 1 of {MODEL} is ready after")).to_be_visible()
        expect(page.get_by_text("What is tried")).to_be_visible()
        expect(page.locator("figure canvas")).to_have_count(1)

        page.get_by_role("link", name="See version 1").click()
        expect(page.get_by_text("How good it is")).to_be_visible()
        for title in ("Intervals against the truth", "Which columns matter"):
            expect(page.get_by_role("heading", name=title)).to_be_visible()
        expect(page.get_by_role("table").first).to_contain_text("linear model")

        page.get_by_role("link", name="Ask it").click()
        result = page.locator(".result")
        expect(result).to_contain_text("±")
        before = result.inner_text()
        slider = page.get_by_label("area, slider")
        slider.focus()
        for _ in range(20):
            page.keyboard.press("ArrowRight")
        expect(result).not_to_have_text(before)
        expect(page.get_by_text("lack of data").first).to_be_visible()
        page.get_by_label("area", exact=True).fill("9000")
        expect(page.locator(".notice.warning")).to_contain_text("area")
        page.get_by_role("link", name="Predict a file").click()
        page.wait_for_selector("#rows", state="attached")


@pytest.fixture(scope="module")
def screens(context, site, trained):
    """Every screen, visited once."""
    found = {}
    with watched_page(context, site) as page:
        for name, place in SCREENS.items():
            visit(page, site, place.format(**trained))
            found[name] = look_at(page)
    return found


def test_what_users_wrote_stays_text_on_every_screen(screens):
    for name, screen in screens.items():
        assert "hacked" not in screen.title.replace(f"{ATTACK}.csv", ""), name
        assert screen.num_foreign == 0, name
    seen = "".join(screen.text for screen in screens.values())
    for text in (f"{ATTACK}.csv", ATTACK, SCRIPT):
        assert text in seen


def test_axe_finds_nothing_on_any_screen_in_either_theme(screens):
    for name, screen in screens.items():
        assert screen.violations == {"light": [], "dark": []}, name


@pytest.mark.parametrize("size", NARROW)
def test_every_screen_fits_a_narrow_window(screens, size):
    for name, screen in screens.items():
        assert screen.widths[size] == NARROW[size]["width"], name
        # No control is covered where a person scrolls to it.
        assert screen.covered[size] == [], name
    stuck = {name: screen.stuck[size] for name, screen in screens.items()}
    assert 0.0 < stuck.pop("ask") <= 0.2
    assert set(stuck.values()) == {0.0}


def test_no_screen_has_the_jargon_of_programs(screens):
    for name, screen in screens.items():
        assert screen.jargon == [], name
    # Deviations have the unit of the target; variances do not.
    for name in ("report", "ask"):
        # The name of a recalibration is no number.
        assert "variance" not in screens[name].text.replace("variance scaling", "")
        assert "±" in screens[name].text


def test_signing_in_works_in_both_themes_and_for_axe(browser, site):
    for theme, options in CHECKED.items():
        with browser.new_context(color_scheme=theme) as context:
            page = context.new_page()
            page.goto(site.url)
            expect(page.get_by_label("Key")).to_be_focused()
            assert not Axe().run(page, options=options).response["violations"]
            page.get_by_label("Key").fill("wrong.0123456789abcdef0123456789abcdef")
            page.keyboard.press("Enter")
            expect(page.locator(".problem").first).to_contain_text("no such key")


def test_the_error_of_the_api_stands_beside_its_field(page, site, trained):
    visit(page, site, SCREENS["new job"].format(**trained))
    fill_job(page, '{"training": {"steps": "many"}}')
    button = page.get_by_role("button", name="Start training")
    button.click()
    problem = page.locator("form .notice.error")
    expect(problem).to_contain_text("training.steps must be a whole number")
    others_field(page).fill("many")
    button.click()
    expect(page.get_by_role("alert").filter(has_text="Must be JSON")).to_be_visible()
    expect(others_field(page)).to_be_focused()
    others_field(page).fill("")
    page.get_by_label("Name of the model").fill("")
    button.click()
    field = page.locator(".field").filter(has=page.get_by_label("Name of the model"))
    expect(field.locator(".problem")).to_contain_text("Must begin with a letter")


def test_an_answer_that_is_refused_stands_beside_its_column(page, site, trained):
    visit(page, site, SCREENS["ask"])
    area = page.get_by_label("area", exact=True)
    area.fill("large")
    field = page.locator(".field").filter(has=area)
    expect(field.locator(".problem")).to_contain_text("number")
    expect(field.locator(".problem")).not_to_contain_text("Received")
    # What stands there is the answer to other values.
    expect(page.locator(".answer.outdated")).to_be_visible()
    area.fill("100")
    expect(field.locator(".problem")).to_be_empty()
    expect(page.locator(".answer.outdated")).to_have_count(0)


def test_nothing_typed_is_lost_by_a_reload_or_a_lost_connection(page, site, trained):
    visit(page, site, SCREENS["new job"].format(**trained))
    fill_job(page, STEPS)
    page.context.set_offline(True)
    page.get_by_role("button", name="Start training").click()
    expect(page.locator("form .notice.error")).to_contain_text("does not answer")
    expect(page.locator("#connection")).to_contain_text("No connection")
    expect(others_field(page)).to_have_value(STEPS)
    page.context.set_offline(False)
    expect(page.locator("#connection")).to_be_empty()
    page.reload()
    expect(others_field(page)).to_have_value(STEPS)
    expect(page.get_by_label("Target")).to_have_value("price")


def test_a_job_that_fails_says_why_and_can_be_tried_again(page, site, trained):
    job = add_jobs(site, 1, state="failed", error=f"{SCRIPT} did not fit", **trained)[0]
    visit(page, site, f"jobs/{job}")
    expect(page.locator(".notice.error")).to_contain_text(f"{SCRIPT} did not fit")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text(re.compile("queued|running")).first).to_be_visible()
    page.get_by_role("button", name="Cancel the job").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the job").click()
    expect(page.get_by_text(re.compile("cancelled")).first).to_be_visible()
    # Who looks at another page sees that it has ended.
    expect(page).to_have_title(f"✗ {MODEL} · tfbbb")


def test_a_revoked_key_leads_to_signing_in_and_back(browser, site, trained):
    body = {"name": "a person", "scopes": ["train"]}
    key = site.client.post("/v1/keys", json=body).json()
    with browser.new_context() as context:
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.goto(f"{site.url}/?key={key['key']}")
        page.wait_for_selector("h1")
        visit(page, site, SCREENS["new job"].format(**trained))
        fill_job(page, STEPS)
        assert site.client.delete(f"/v1/keys/{key['id']}").status_code == 200
        page.get_by_role("button", name="Start training").click()
        expect(page.locator(".notice.error")).to_contain_text("was revoked")
        page.get_by_label("Key").fill(ADMIN_KEY)
        page.keyboard.press("Enter")
        expect(others_field(page)).to_have_value(STEPS)


def test_fifty_models_are_found_by_name(page, site):
    model = {
        **{"task": "regression", "target": ATTACK},
        "labels": {"latest": "1", "champion": "1"},
        "versions": [{"version": "1", "state": "AVAILABLE", "status": {}}],
    }
    models = [{"name": f"model-{number}", **model} for number in range(50)]
    answered(page, "**/v1/models", json={"models": models})
    visit(page, site, "models")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(50)
    expect(rows.first).to_contain_text("champion → 1")
    page.get_by_label("Find by name, target or label").fill("model-49")
    expect(rows).to_have_count(1)


def test_a_version_without_a_report_says_so(page, site, trained):
    answered(page, "**/report", status=404, json={"error": "There is no report."})
    visit(page, site, SCREENS["report"])
    expect(page.locator(".notice")).to_contain_text("has no report")
    expect(page.locator("dl.facts").first).to_contain_text("Computed byNumPy")
    expect(page.locator("dl.facts").nth(1)).to_contain_text("RMSE")


def test_a_slider_shows_that_its_value_is_missing(page, site, trained):
    visit(page, site, SCREENS["ask"])
    slider = page.get_by_label("area, slider")
    field = page.locator(".feature").filter(has=slider).locator("input.value")
    expect(page.locator(".slider.missing")).to_have_count(0)
    typed = field.input_value()
    field.fill("")
    expect(slider).to_have_attribute("aria-valuetext", "missing")
    expect(page.locator(".slider.missing .absent")).to_be_visible()
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".slider.missing")).to_have_count(0)
    assert field.input_value() not in ("", typed)


def test_a_label_moves_by_the_form_and_is_deleted(page, site, trained):
    visit(page, site, SCREENS["versions"])
    page.get_by_label("Label", exact=True).fill("champion")
    page.get_by_label("To version").select_option("1")
    page.get_by_role("button", name="Move the label").click()
    labels = page.get_by_role("region", name="Labels of houses")
    row = labels.get_by_role("row").filter(has_text="champion")
    expect(row.get_by_role("link")).to_have_text("1")
    assert "champion" in site.client.get(f"/v1/models/{MODEL}").json()["labels"]
    row.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)
    assert "champion" not in site.client.get(f"/v1/models/{MODEL}").json()["labels"]


def test_a_version_that_waits_becomes_latest_by_a_click(page, site, trained):
    def add_waiting(route):
        found = route.fetch().json()
        versions = found["model_version_status"]
        versions.insert(0, {**versions[0], "version": "99"})
        route.fulfill(json=found)

    page.route(f"**/v1/models/{MODEL}", add_waiting)
    judgement = {"becomes_latest": False, "verdict": "worse than version 1"}
    details = {"lineage": {"source": {"judgement": judgement}}}
    answered(page, "**/versions/99", json=details)
    moved = answered(page, "**/labels/latest", json={})
    visit(page, site, SCREENS["versions"])
    expect(page.get_by_text("worse than version 1")).to_be_visible()
    button = page.get_by_role("button", name="Make it latest").first
    button.click()
    expect(button).to_be_enabled()
    assert moved == [{"version": 99}]


def test_a_new_key_is_shown_once(page, site):
    visit(page, site, "keys")
    page.get_by_label("Name").fill(ATTACK)
    page.get_by_role("button", name="Make a key").click()
    text = page.get_by_label("The key").inner_text()
    headers = {"Authorization": f"Bearer {text}"}
    assert site.client.get("/v1/models", headers=headers).status_code == 200
    page.reload()
    expect(page.get_by_role("row").filter(has_text=ATTACK).first).to_be_visible()
    assert text not in page.content()
    visit(page, site, "audit")
    page.get_by_label("Changes of").select_option("key")
    made = page.get_by_role("row").filter(has_text=ATTACK).first
    expect(made).to_contain_text("create key")
    assert text not in page.content()


def test_the_form_of_a_job_asks_little_and_has_the_rest_under_more(page, site, trained):
    def leave_out_street(route):
        found = route.fetch().json()
        found["columns"][1]["role"] = "left out"
        route.fulfill(json=found)

    page.route(f"**/v1/datasets/{trained['dataset']}", leave_out_street)
    visit(page, site, SCREENS["new job"].format(**trained))
    expect(page.get_by_role("checkbox", name="price")).to_be_checked()
    expect(page.get_by_role("checkbox", name=ATTACK)).not_to_be_checked()
    labels = page.locator(".questions label:not(.check), .questions legend")
    visible = [label for label in labels.all() if label.is_visible()]
    assert [label.inner_text() for label in visible] == [
        *("Table", "Target", "How long may it take?", "Minutes at most"),
        "Which columns may it predict from?",
        "Do rows belong together, or follow in time?",
        "Is it a time, and are some rows still running?",
        "Is it a count? Per what?",
        "Name of the model",
    ]
    expect(page.get_by_label("Other fields of the job")).to_be_hidden()
    page.get_by_role("button", name="Start training").click()
    target = page.locator(".field").filter(has=page.get_by_label("Target"))
    expect(target.locator(".problem")).to_have_text("Choose the column to predict.")

    page.get_by_label("How long may it take?").select_option("quick")
    page.get_by_label("Minutes at most").fill("2")
    page.get_by_label("Do rows belong together").select_option("group")
    page.get_by_label("Column of the group").select_option("area")
    expect(page.get_by_role("checkbox", name="area")).to_have_count(0)
    sent = answered(page, "**/v1/jobs", status=201, json={"id": trained["job"]})
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(f"**/jobs/{trained['job']}")
    (body,) = sent
    validation = {"group": "area"}
    assert body["training"] == {
        **{"effort": "quick", "max_seconds": 120},
        "validation": validation,
    }
    # The service chooses the rest, such as the columns and the posterior.
    assert set(body) == {"dataset_id", "target", "name", "training"}


def test_who_has_no_table_gets_a_sample_by_one_click(page, site):
    empty = {"datasets": [], "next_cursor": None}

    def list_none(route):
        if route.request.method == "GET":
            route.fulfill(json=empty)
        else:
            route.continue_()

    page.route("**/v1/datasets?*", list_none)
    visit(page, site, "data")
    expect(page.locator("ol.steps li")).to_have_count(3)
    page.get_by_role("button", name="Load a sample table").click()
    expect(page.get_by_role("heading", name="houses.csv")).to_be_visible()
    expect(page.locator("dl.facts")).to_contain_text("Rows800")
    expect(page.locator(".notice.error")).to_have_count(0)
    page.unroute("**/v1/datasets?*")
    page.get_by_role("link", name="Train a model").click()
    expect(page.get_by_label("Target")).to_have_value("price")
    dataset = re.search("dataset=([0-9a-f]{24})", page.url)
    url = f"/v1/datasets/{dataset[1]}"
    rows = site.client.get(f"{url}/preview?rows=800").json()["rows"]
    # It trains: the price follows the area, and the noise does not hide that.
    areas, prices = ([float(row[place]) for row in rows] for place in (0, 6))
    assert statistics.correlation(areas, prices) == pytest.approx(0.85, abs=0.1)
    assert site.client.delete(url).status_code == 204


def test_values_start_at_the_median_and_the_commonest(page, site, trained):
    effects = [
        {"name": "area", "kind": "number", "values": [40, 77, 200]},
        {"name": ATTACK, "kind": "text", "values": ["mill lane", SCRIPT]},
    ]
    answered(page, "**/report", json={"effects": effects})
    visit(page, site, SCREENS["ask"])
    area = page.get_by_label("area", exact=True)
    street = page.locator(".field").filter(has_text=ATTACK).locator("select")
    expect(area).to_have_value("77")
    expect(street).to_have_value("mill lane")
    area.fill("90")
    street.select_option("a value that training did not see")
    expect(page.locator(".notice.warning")).to_contain_text(ATTACK)
    page.get_by_role("button", name="Back to the start").click()
    expect(area).to_have_value("77")
    expect(street).to_have_value("mill lane")


def add_jobs(site, count, *, dataset, job, **columns):
    """Adds copies of a job to the database; returns their ids."""
    database = site.database()
    with database.writing() as session:
        old = session.get_one(Job, job)
        given = {
            "name": old.name,
            "dataset_id": dataset,
            "dataset_sha256": old.dataset_sha256,
            "dataset_format": old.dataset_format,
            "spec": old.spec,
            "attempt": 1,
        }
        now = time.time()
        jobs = [
            Job(created_at=now + 1e-3 * number, finished_at=now, **given | columns)
            for number in range(count)
        ]
        session.add_all(jobs)
        session.flush()
        ids = [job.id for job in jobs]
    database.close()
    return ids
