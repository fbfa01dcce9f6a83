"""The page in a browser, from dropping a file to a prediction and beyond."""

import csv
import io
import json
import re
import time
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, Route, expect

from service.shared.database.tables import Job
from tests.service.serving import ADMIN_KEY
from tests.service.web.conftest import PATIENCE, Site, visit
from tests.service.web.tables import ATTACK, SCRIPT, houses

# For a training of few steps, with TensorFlow to import first.
TRAINING = 480_000
MODEL = "houses"
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
    "versions": f"models/{MODEL}/1/versions",
    "keys": "keys",
}


def drop(page: Page, zone: str, name: str, content: str) -> None:
    """Drops a file, as a file manager does."""
    transfer = page.evaluate_handle(
        """([name, content]) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([content], name, { type: "text/csv" }));
            return transfer;
        }""",
        [name, content],
    )
    page.dispatch_event(zone, "drop", {"dataTransfer": transfer})


def fill_job(page: Page, steps: str) -> None:
    """Fills in the form of a job that takes a few steps."""
    page.get_by_label("Target").select_option("price")
    page.get_by_label("Name of the model").fill(MODEL)
    page.get_by_text("Training", exact=True).first.click()
    page.get_by_label("Steps", exact=True).fill(steps)


@pytest.fixture(scope="module")
def trained(browser: Browser, site: Site) -> dict[str, str]:
    """The ids of a table and of its job, made by the API as the page makes them."""
    form = {"file": (f"{ATTACK}.csv", houses(), "text/csv")}
    dataset = site.client.post("/v1/datasets", files=form).json()["id"]
    spec: dict[str, Any] = {
        "dataset_id": dataset,
        "target": "price",
        "name": MODEL,
        "training": {"steps": 60, "kl_schedule": "constant"},
        "model": {"members": 2, "hidden_units": [8], "likelihood": "normal"},
    }
    answer = site.client.post("/v1/jobs", json=spec)
    assert answer.status_code == 201, answer.text
    job = answer.json()["id"]
    deadline = time.monotonic() + TRAINING / 1000
    while (state := site.client.get(f"/v1/jobs/{job}").json())["version"] is None:
        assert state["state"] != "failed", state["error"]
        assert time.monotonic() < deadline, state
        time.sleep(0.5)
    return {"dataset": dataset, "job": job}


def test_a_person_gets_from_a_file_to_a_prediction(
    browser: Browser, site: Site, trained: dict[str, str]
) -> None:
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

        page.get_by_role("link", name="Train a model").click()
        fill_job(page, "60")
        page.get_by_role("button", name="Start training").click()
        expect(page.get_by_role("heading", name=MODEL)).to_be_visible()
        expect(page.get_by_text("succeeded", exact=True)).to_be_visible(
            timeout=TRAINING
        )
        expect(page.get_by_text("What is tried")).to_be_visible()
        assert page.locator("figure canvas").count() == 1

        page.get_by_role("link", name="See version 2").click()
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
        expect(page.get_by_text("epistemic", exact=False).first).to_be_visible()
        page.get_by_label("area", exact=True).fill("9000")
        expect(page.locator(".notice.warning")).to_contain_text("area")

        page.get_by_role("link", name="Predict a file").click()
        page.wait_for_selector("#rows", state="attached")
        with page.expect_download() as saved:
            drop(page, ".drop", "new.csv", houses(7))
            page.get_by_role("link", name=re.compile("Download")).click()
        text = saved.value.path().read_text("utf-8-sig")
        rows = list(csv.DictReader(io.StringIO(text)))
        assert len(rows) == 7
        assert rows[0]["area"] == next(csv.DictReader(io.StringIO(houses(7))))["area"]
        assert float(rows[0]["lower_0.9"]) < float(rows[0]["mean"])


def test_what_users_wrote_stays_text_on_every_screen(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    seen = ""
    for place in SCREENS.values():
        visit(page, site, place.format(**trained))
        seen += page.locator("#main").inner_text()
        assert "hacked" not in page.title().replace(f"{ATTACK}.csv", "")
        assert page.locator("#main img, #main script").count() == 0, place
    for text in (f"{ATTACK}.csv", ATTACK, SCRIPT):
        assert text in seen


def test_axe_finds_nothing_on_any_screen_in_either_theme(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    axe = Axe()
    for name, place in SCREENS.items():
        visit(page, site, place.format(**trained))
        page.locator("#main details").evaluate_all(
            "all => all.forEach((one) => { one.open = true; })"
        )
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            found = axe.run(page).response["violations"]
            what = [(one["id"], one["nodes"][0]["html"]) for one in found]
            assert not what, (name, theme, what)


def test_every_screen_fits_a_phone(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for name, place in SCREENS.items():
        visit(page, site, place.format(**trained))
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390, (name, width)


def test_signing_in_works_in_both_themes_and_for_axe(
    browser: Browser, site: Site
) -> None:
    for theme in ("light", "dark"):
        with browser.new_context(color_scheme=theme) as context:
            page = context.new_page()
            page.goto(site.url)
            expect(page.get_by_label("Key")).to_be_focused()
            assert not Axe().run(page).response["violations"]
            page.get_by_label("Key").fill("wrong.0123456789abcdef0123456789abcdef")
            page.keyboard.press("Enter")
            expect(page.locator(".problem").first).to_contain_text("no such key")


def test_the_error_of_the_api_stands_beside_its_field(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    visit(page, site, SCREENS["new job"].format(**trained))
    fill_job(page, "many")
    page.get_by_role("button", name="Start training").click()
    field = page.locator(".field").filter(has=page.get_by_label("Steps", exact=True))
    expect(field.locator(".problem")).to_contain_text("Received: 'many'")
    expect(page.get_by_label("Steps", exact=True)).to_be_focused()
    page.get_by_label("Steps", exact=True).fill("60")
    page.get_by_label("Name of the model").fill("../houses")
    page.get_by_role("button", name="Start training").click()
    field = page.locator(".field").filter(has=page.get_by_label("Name of the model"))
    expect(field.locator(".problem")).to_contain_text("Received: '../houses'")


def test_an_answer_that_is_refused_stands_beside_its_column(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    visit(page, site, SCREENS["ask"])
    area = page.get_by_label("area", exact=True)
    area.fill("large")
    field = page.locator(".field").filter(has=area)
    expect(field.locator(".problem")).to_contain_text("Received: 'large'")
    area.fill("100")
    expect(field.locator(".problem")).to_be_empty()


def test_nothing_typed_is_lost_by_a_reload_or_a_lost_connection(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    visit(page, site, SCREENS["new job"].format(**trained))
    fill_job(page, "77")
    page.context.set_offline(True)
    page.get_by_role("button", name="Start training").click()
    expect(page.locator("form .notice.error")).to_contain_text("does not answer")
    expect(page.locator("#connection")).to_contain_text("No connection")
    expect(page.get_by_label("Steps", exact=True)).to_have_value("77")
    page.context.set_offline(False)
    expect(page.locator("#connection")).to_be_empty()
    page.reload()
    page.get_by_text("Training", exact=True).first.click()
    expect(page.get_by_label("Steps", exact=True)).to_have_value("77")
    expect(page.get_by_label("Target")).to_have_value("price")


def test_a_live_view_survives_a_lost_connection(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    cut: list[str] = []

    def cut_once(route: Route) -> None:
        if cut:
            route.continue_()
            return
        cut.append(route.request.url)
        route.abort()

    page.route("**/events?after=*", cut_once)
    visit(page, site, SCREENS["job"].format(**trained))
    expect(page.locator("figure canvas")).to_be_visible()
    assert cut


def test_a_job_that_fails_says_why_and_can_be_tried_again(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    job = add_jobs(site, 1, state="failed", error=f"{SCRIPT} did not fit", **trained)[0]
    visit(page, site, f"jobs/{job}")
    expect(page.locator(".notice.error")).to_contain_text(f"{SCRIPT} did not fit")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text(re.compile("queued|running")).first).to_be_visible()
    page.get_by_role("button", name="Cancel the job").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the job").click()
    expect(page.get_by_text(re.compile("cancelled")).first).to_be_visible()


def test_a_revoked_key_leads_to_signing_in_and_back(
    browser: Browser, site: Site, trained: dict[str, str]
) -> None:
    body = {"name": "a person", "scopes": ["train"]}
    key = site.client.post("/v1/keys", json=body).json()
    with browser.new_context() as context:
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.goto(f"{site.url}/?key={key['key']}")
        page.wait_for_selector("h1")
        visit(page, site, SCREENS["new job"].format(**trained))
        fill_job(page, "88")
        assert site.client.delete(f"/v1/keys/{key['id']}").status_code == 200
        page.get_by_role("button", name="Start training").click()
        expect(page.locator(".notice.error")).to_contain_text("was revoked")
        page.get_by_label("Key").fill(ADMIN_KEY)
        page.keyboard.press("Enter")
        page.get_by_text("Training", exact=True).first.click()
        expect(page.get_by_label("Steps", exact=True)).to_have_value("88")


def test_five_hundred_jobs_come_in_pages(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    add_jobs(site, 500, state="cancelled", **trained)
    visit(page, site, "jobs?state=cancelled")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(25)
    first = rows.first.get_by_role("link").first.get_attribute("href")
    page.get_by_role("link", name="Older").click()
    expect(page.get_by_role("link", name="Newest")).to_be_visible()
    expect(rows).to_have_count(25)
    assert rows.first.get_by_role("link").first.get_attribute("href") != first


def test_fifty_models_come_in_pages_and_are_found(page: Page, site: Site) -> None:
    versions = [{"version": "1", "state": "AVAILABLE", "status": {}}]
    models = [
        {
            "name": f"model-{number}",
            "task": "regression",
            "target": ATTACK,
            "labels": {"latest": "1", "champion": "1"},
            "versions": versions,
        }
        for number in range(50)
    ]
    page.route("**/v1/models", lambda route: route.fulfill(json={"models": models}))
    visit(page, site, "models")
    rows: Locator = page.locator("tbody tr")
    expect(rows).to_have_count(20)
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_text("Page 2 of 3")).to_be_visible()
    page.get_by_label("Find").fill("model-49")
    expect(rows).to_have_count(1)


def test_a_version_without_a_report_says_so(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    missing = {"status": 404, "body": json.dumps({"error": "There is no report."})}
    page.route("**/report", lambda route: route.fulfill(**missing))
    visit(page, site, SCREENS["report"])
    expect(page.locator(".notice")).to_contain_text("has no report")
    expect(page.get_by_role("table").first).to_contain_text("linear model")


def test_only_the_newest_question_is_asked_and_drawn(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    visit(page, site, SCREENS["ask"])
    expect(page.locator(".result")).to_contain_text("±")
    asked: list[Any] = []

    def slowly(route: Route) -> None:
        asked.append(route.request.post_data_json["instances"][0]["area"])
        time.sleep(0.3)
        route.continue_()

    page.route("**/*:predict", slowly)
    page.get_by_label("area, slider").focus()
    for _ in range(15):
        page.keyboard.press("ArrowRight")
    last = float(page.get_by_label("area", exact=True).input_value())
    page.wait_for_timeout(1500)
    assert asked[-1] == last
    assert len(asked) < 15


def test_a_label_moves_through_its_gate(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    visit(page, site, SCREENS["versions"])
    page.get_by_label("Label", exact=True).fill("champion")
    page.get_by_label("To version").select_option("1")
    page.get_by_role("button", name="Move the label").click()
    labels = page.get_by_role("region", name="Labels of houses")
    expect(labels).to_contain_text("champion")
    assert "champion" in site.client.get(f"/v1/models/{MODEL}").json()["labels"]


def test_moving_a_label_asks_before_it_ends_a_trial(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    label = {
        "label": "pilot",
        "version": 1,
        "canary": {"version": 2, "weight": 0.1, "feedback": None},
        "shadow": {"version": 3, "feedback": None},
        "moved_at": None,
        "feedback": None,
    }
    page.route("**/labels", lambda route: route.fulfill(json={"labels": [label]}))
    moved: list[Route] = []
    page.route("**/labels/pilot", lambda route: moved.append(route))
    visit(page, site, SCREENS["versions"])
    labels = page.get_by_role("region", name="Labels of houses")
    expect(labels).to_contain_text("1 90.0 %; canary 2 10.0 %; shadow 3")
    page.get_by_label("Label", exact=True).fill("pilot")
    page.get_by_role("button", name="Move the label").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("ends the canary 2 and the shadow 3")
    dialog.get_by_role("button", name="Keep it").click()
    assert not moved


def test_another_category_is_asked_at_once(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    visit(page, site, SCREENS["ask"])
    expect(page.locator(".result")).to_contain_text("±")
    choice = page.locator("select").filter(has_text="another value")
    assert "" not in choice.locator("option").evaluate_all("xs => xs.map(x => x.value)")
    choice.select_option(label="another value…")
    expect(page.locator(".notice.warning")).to_contain_text("training")


def test_a_new_key_is_shown_once(page: Page, site: Site) -> None:
    visit(page, site, "keys")
    page.get_by_label("Name").fill(ATTACK)
    page.get_by_role("button", name="Make a key").click()
    text = page.get_by_label("The key").inner_text()
    headers = {"Authorization": f"Bearer {text}"}
    assert site.client.get("/v1/models", headers=headers).status_code == 200
    page.reload()
    expect(page.get_by_role("row").filter(has_text=ATTACK).first).to_be_visible()
    assert text not in page.content()


def add_jobs(
    site: Site, count: int, *, dataset: str, job: str, **columns: Any
) -> list[str]:
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
