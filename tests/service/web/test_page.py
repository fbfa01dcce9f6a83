"""The page in a browser, from dropping a file to a prediction and beyond."""

import csv
import io
import json
import re
import statistics
import time
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    Locator,
    Page,
    Route,
    expect,
)

from service.shared.database.tables import Job
from tests.service.serving import ADMIN_KEY
from tests.service.web.conftest import (
    MODEL,
    PATIENCE,
    PREDICTED,
    SPEC,
    TRAINING,
    Site,
    drop,
    signed_in_page,
    visit,
)
from tests.service.web.looking import NARROW, WIDE, Seen, look_at
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


def fill_job(page: Page, steps: str) -> None:
    """Fills in the form of a job that takes a few steps."""
    page.get_by_label("Target").select_option("price")
    page.get_by_label("Name of the model").fill(MODEL)
    open_training(page)
    page.get_by_label("Steps", exact=True).fill(steps)


def open_training(page: Page) -> None:
    """Opens the options of the training in the form of a job."""
    page.get_by_text("More", exact=True).click()
    page.get_by_text("Training", exact=True).first.click()


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
        # A network that is small, so that the test is short.
        page.get_by_text("Network, posterior and prior", exact=True).click()
        page.get_by_label("Hidden units", exact=True).fill("8")
        page.get_by_label("Networks trained together").fill("2")
        page.get_by_role("button", name="Start training").click()
        expect(page.get_by_role("heading", name=MODEL)).to_be_visible()
        expect(page.get_by_text("succeeded", exact=True)).to_be_visible(
            timeout=TRAINING
        )
        expect(page.locator(".notice.good")).to_contain_text(f"Version 2 of {MODEL}")
        expect(page).to_have_title(f"✓ {MODEL} · tfbbb")
        expect(page.get_by_text("Done: ")).to_contain_text("training")
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
        assert list(rows[0])[:11] == [*houses(1).splitlines()[0].split(","), *PREDICTED]
        assert float(rows[0]["lower"]) < float(rows[0]["mean"])


@pytest.fixture(scope="module")
def screens(browser: Browser, site: Site, trained: dict[str, str]) -> dict[str, Seen]:
    """Every screen, visited once."""
    found = {}
    with browser.new_context(viewport=WIDE) as context:
        context.set_default_timeout(PATIENCE)
        with signed_in_page(context, site) as page:
            for name, place in SCREENS.items():
                visit(page, site, place.format(**trained))
                found[name] = look_at(page)
    return found


def test_what_users_wrote_stays_text_on_every_screen(screens: dict[str, Seen]) -> None:
    for name, screen in screens.items():
        assert "hacked" not in screen.title.replace(f"{ATTACK}.csv", ""), name
        assert screen.num_foreign == 0, name
    seen = "".join(screen.text for screen in screens.values())
    for text in (f"{ATTACK}.csv", ATTACK, SCRIPT):
        assert text in seen


def test_axe_finds_nothing_on_any_screen_in_either_theme(
    screens: dict[str, Seen],
) -> None:
    for name, screen in screens.items():
        assert screen.violations == {"light": [], "dark": []}, name


@pytest.mark.parametrize("size", NARROW)
def test_every_screen_fits_a_narrow_window(screens: dict[str, Seen], size: str) -> None:
    widths = {name: screen.widths[size] for name, screen in screens.items()}
    assert widths == dict.fromkeys(screens, NARROW[size]["width"])


@pytest.mark.parametrize("size", NARROW)
def test_no_control_is_covered_where_a_person_scrolls_to_it(
    screens: dict[str, Seen], size: str
) -> None:
    assert {name: screen.covered[size] for name, screen in screens.items()} == {
        name: [] for name in screens
    }
    stuck = {name: screen.stuck[size] for name, screen in screens.items()}
    assert 0.0 < stuck.pop("ask") <= 0.2
    assert set(stuck.values()) == {0.0}


def test_no_screen_has_the_jargon_of_programs(screens: dict[str, Seen]) -> None:
    assert {name: screen.jargon for name, screen in screens.items()} == {
        name: [] for name in screens
    }
    # Deviations have the unit of the target; variances do not.
    for name in ("report", "ask"):
        # The name of a recalibration is no number.
        assert "variance" not in screens[name].text.replace("variance scaling", "")
        assert "±" in screens[name].text


def test_a_table_fades_on_a_phone_until_its_last_column(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    visit(page, site, SCREENS["dataset"].format(**trained))
    tables = page.locator(".scroll.more")
    expect(tables.first).to_be_visible()
    tables.evaluate_all("all => all.forEach((one) => { one.scrollLeft = 1e6; })")
    expect(tables).to_have_count(0)


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
    expect(field.locator(".problem")).to_have_text("Must be a whole number.")
    expect(page.get_by_label("Steps", exact=True)).to_be_focused()
    page.get_by_label("Steps", exact=True).fill("60")
    page.get_by_label("Name of the model").fill("")
    page.get_by_role("button", name="Start training").click()
    field = page.locator(".field").filter(has=page.get_by_label("Name of the model"))
    expect(field.locator(".problem")).to_contain_text("Must begin with a letter")
    page.get_by_label("Name of the model").fill("../houses")
    page.get_by_role("button", name="Start training").click()
    expect(field.locator(".problem")).to_contain_text("letters, digits, dots")
    # An error that names another field has the label of that field.
    page.get_by_label("Name of the model").fill(MODEL)
    page.get_by_label("Epochs", exact=True).first.fill("3")
    page.get_by_role("button", name="Start training").click()
    problem = page.get_by_role("alert").filter(has_text="not both")
    expect(problem).to_contain_text("“Epochs” or “Steps”")


def test_an_answer_that_is_refused_stands_beside_its_column(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
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
    open_training(page)
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


def test_a_training_that_diverges_says_what_to_change(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    spec = SPEC | {"dataset_id": trained["dataset"], "name": "diverges"}
    spec["training"] = {"steps": 60, "learning_rate": 1e9}
    job = site.client.post("/v1/jobs", json=spec).json()["id"]
    visit(page, site, f"jobs/{job}")
    failure = page.locator(".notice.error")
    expect(failure).to_contain_text("Training diverged", timeout=TRAINING)
    expect(failure).to_contain_text("lower learning_rate")
    expect(page.get_by_text("failed", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    expect(page.get_by_role("link", name=re.compile("See version"))).to_have_count(0)
    found = site.client.get(f"/v1/jobs/{job}").json()
    assert (found["state"], found["version"]) == ("failed", None)
    told = found["error"].partition(" Received")[0].replace("`", "")
    assert told in failure.inner_text()
    # The log is open, and tells more than the error.
    expect(page.get_by_label("Log", exact=True)).to_be_visible()
    expect(page.get_by_label("Log", exact=True)).not_to_have_text("Nothing yet.")


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
        open_training(page)
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
            "canaries": {"champion": {"version": "2", "weight": 0.1}},
            "shadows": {"champion": "3"},
            "versions": versions,
        }
        for number in range(50)
    ]
    page.route("**/v1/models", lambda route: route.fulfill(json={"models": models}))
    visit(page, site, "models")
    rows: Locator = page.locator("tbody tr")
    expect(rows).to_have_count(20)
    trials = "champion → 1, canary 2 10.0 %, shadow 3"
    expect(rows.first).to_contain_text(trials)
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_text("Page 2 of 3")).to_be_visible()
    page.get_by_label("Find").fill("model-49")
    expect(rows).to_have_count(1)


@pytest.mark.parametrize("has_rows", [True, False])
def test_drift_is_said_with_one_click_to_train_anew(
    page: Page, site: Site, trained: dict[str, str], has_rows: bool
) -> None:
    start = {"model": MODEL, "version": 1}
    body = {"name": MODEL, "start_from": start, "dataset_id": trained["dataset"]}
    now = "2030-01-01T00:00:00Z"
    drift = {"alarm": True, "alarm_row": 64, "alarm_at": now, "false_alarm_rate": 0.05}
    feedback = {
        **{"num_rows": 300, "started_at": now, "updated_at": now},
        **{"figures": {}, "over_time": []},
        "adapted": {"num_rows": 300, "factors": {"0.9": 1.25}, "groups": {}},
        "drift": {**drift, "reference_rows": 12},
        "retraining": {"sentence": "Rows differ.", "body": body if has_rows else None},
    }
    page.route("**/feedback", lambda route: route.fulfill(json=feedback))
    sent: list[Any] = []

    def submit(route: Route) -> None:
        sent.append(route.request.post_data_json)
        route.fulfill(status=201, json={"id": trained["job"]})

    visit(page, site, SCREENS["truth"])
    expect(page.locator("#main")).to_contain_text("Rows300")
    expect(page.locator("#main")).to_contain_text("25.0 % wider")
    expect(page.locator(".notice.warning")).to_contain_text("Row 64")
    if has_rows:
        page.route("**/v1/jobs", submit)
    page.get_by_role("button", name="Train anew from this version").click()
    if has_rows:
        page.wait_for_url(f"**/jobs/{trained['job']}")
        assert sent == [body]
        return
    expect(page.get_by_text(f"From version 1 of {MODEL}")).to_be_visible()
    expect(page.get_by_label("Name of the model")).to_have_value(MODEL)
    page.get_by_label("Target").select_option("price")
    page.route("**/v1/jobs", submit)
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(f"**/jobs/{trained['job']}")
    assert sent[0]["start_from"] == start


def test_a_version_without_a_report_says_so(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    missing = {"status": 404, "body": json.dumps({"error": "There is no report."})}
    page.route("**/report", lambda route: route.fulfill(**missing))
    visit(page, site, SCREENS["report"])
    expect(page.locator(".notice")).to_contain_text("has no report")
    expect(page.locator("dl.facts")).to_contain_text("Computed byNumPy")
    expect(page.get_by_role("table").first).to_contain_text("linear model")


@pytest.mark.parametrize("kind", ["numeric", "date"])
def test_a_slider_shows_that_its_value_is_missing(
    page: Page, site: Site, trained: dict[str, str], kind: str
) -> None:
    def change_kind(route: Route) -> None:
        found = route.fetch().json()
        (area,) = (
            feature
            for feature in found["metadata"]["manifest"]["features"]
            if feature["name"] == "area"
        )
        area["kind"] = kind
        if kind == "date":
            # Two years around 2020, in seconds.
            area |= {"low": 1.55e9, "high": 1.61e9}
        route.fulfill(json=found)

    page.route("**/metadata", change_kind)
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


def test_a_version_that_waits_becomes_latest_by_a_click(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    def add_waiting(route: Route) -> None:
        found = route.fetch().json()
        versions = found["model_version_status"]
        versions.insert(0, {**versions[0], "version": "99"})
        route.fulfill(json=found)

    page.route(f"**/v1/models/{MODEL}", add_waiting)
    judgement = {"becomes_latest": False, "verdict": "worse than version 1"}
    details = {"lineage": {"source": {"judgement": judgement}}}
    page.route("**/versions/99", lambda route: route.fulfill(json=details))
    moved: list[Any] = []

    def move(route: Route) -> None:
        moved.append(route.request.post_data_json)
        route.fulfill(json={})

    page.route("**/labels/latest", move)
    visit(page, site, SCREENS["versions"])
    expect(page.get_by_text("worse than version 1")).to_be_visible()
    button = page.get_by_role("button", name="Make it latest").first
    button.click()
    expect(button).to_be_enabled()
    assert moved == [{"version": 99}]


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
    visit(page, site, "audit")
    page.get_by_label("Changes of").select_option("key")
    made = page.get_by_role("row").filter(has_text=ATTACK).first
    expect(made).to_contain_text("create key")
    assert text not in page.content()


MODULE = """async (name) => {
    const start = document.querySelector("script[type=module]").src;
    window.found = await import(new URL(`${name}.js`, start));
}"""


FIELD = """async ([feature, column]) => {
    const start = document.querySelector("script[type=module]").src;
    const found = (name) => import(new URL(`${name}.js`, start));
    const { featureField } = await found("feature_fields");
    const [{ Form }, { Draft }] = [await found("form"), await found("drafts")];
    const usual = column?.most_common[0][0];
    const form = new Form(new Draft(`test:${feature.name}`));
    window.field = featureField(feature, form, usual, () => {}, column);
}"""


@pytest.mark.parametrize("cell", ["ja", "nein", "non", "faux", "нет"])
def test_one_of_two_values_is_asked_as_the_table_spells_it(
    page: Page, cell: str
) -> None:
    feature = {"name": "garden", "kind": "numeric", "notation": {"kind": "boolean"}}
    page.evaluate(FIELD, [feature, {"most_common": [["ja", 5], ["nein", 4]]}])
    asked = page.evaluate(
        "(cell) => (window.field.set(cell), window.field.read())", cell
    )
    assert asked == cell


def test_a_slider_of_counts_has_nothing_below_zero(page: Page) -> None:
    page.evaluate(FIELD, [{"name": "visits", "kind": "numeric", "low": 0, "high": 30}])
    least = "window.field.element.querySelector('input[type=range]').min"
    assert page.evaluate(least) == "0"


def test_the_only_column_of_dates_is_the_time(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    def date_area(route: Route) -> None:
        found = route.fetch().json()
        found["columns"][0]["kind"] = "date"
        route.fulfill(json=found)

    page.route(f"**/v1/datasets/{trained['dataset']}", date_area)
    visit(page, site, SCREENS["new job"].format(**trained))
    page.get_by_label("Do rows belong together").select_option("time")
    expect(page.get_by_label("Column of the time")).to_have_value("area")
    page.get_by_label("Do rows belong together").select_option("group")
    expect(page.get_by_label("Column of the group")).to_have_value("")


def test_the_focus_is_where_it_was_before_a_dialog(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    visit(page, site, SCREENS["versions"])
    button = page.get_by_role("button", name=re.compile("^Delete")).first
    button.click()
    page.get_by_role("dialog").get_by_role("button", name="Keep it").click()
    expect(button).to_be_focused()


def test_numbers_have_three_digits_and_a_common_unit(page: Page) -> None:
    page.evaluate(MODULE, "format")
    texts = {
        "number(1234567)": "1,234,567",
        "quantity(1234567)": "1.23 M",
        "quantity(213456)": "213,000",
        "quantity(0.0123456)": "0.0123",
        "quantity(2014.4)": "2014",
        "quantity(9307.2)": "9310",
        "quantity(-1.5e-7)": "−1.50 × 10⁻⁷",
        "plusMinus(1320000, 250000)": "1.32 M ± 0.25 M",
        "plusMinus(152.31, 54.1)": "152 ± 54",
        "plusMinus(2010.4, 3.2)": "2010.4 ± 3.2",
        "interval(0.91e6, 1.73e6)": "0.91 M to 1.73 M",
        "interval(-3.2, 54.04)": "−3.2 to 54.0",
        "alike([15.21, 71.4, 73.0]).join()": "15.2,71.4,73.0",
    }
    found = {call: page.evaluate(f"window.found.{call}") for call in texts}
    assert found == texts


# The shade in the row of pixels above the axis: the interval is darker than the rest.
SHADE = """() => {
    const canvas = document.querySelector(".answer canvas");
    const over = document.querySelector(".answer .u-over").getBoundingClientRect();
    const { left, top } = canvas.getBoundingClientRect();
    const row = canvas.getContext("2d").getImageData(
        over.left - left, over.bottom - top - 4, over.width, 1).data;
    // Outside, a shade is lighter; a line of the grid is opaque.
    const dark = [...Array(Math.floor(over.width)).keys()].filter(
        (x) => row[4 * x + 3] > 60 && row[4 * x + 3] < 200);
    return [dark[0] / over.width, dark.at(-1) / over.width];
}"""


def test_the_shade_is_the_interval_that_is_told(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    with page.expect_response("**/*:predict") as asked:
        visit(page, site, SCREENS["ask"])
    (answer,) = asked.value.json()["predictions"]
    low, high = answer["lower"][1][0], answer["upper"][1][0]
    page.evaluate(MODULE, "format")
    told = page.evaluate(f"window.found.interval({low}, {high})")
    expect(page.locator(".answer dl")).to_contain_text(told)
    quantiles = [value for (value,) in answer["quantiles"]]
    page.evaluate(MODULE, "density")
    curve = page.evaluate(
        "([values, ends]) => window.found.densityOf(values, ends)",
        [quantiles, [low, high]],
    )
    inside = [
        x for x, y in zip(curve["x"], curve["shade"], strict=True) if y is not None
    ]
    assert (inside[0], inside[-1]) == (low, high)
    expect(page.locator(".answer canvas")).to_be_visible()
    page.wait_for_timeout(300)
    first, last = curve["x"][0], curve["x"][-1]
    shares = [(end - first) / (last - first) for end in (low, high)]
    # Two of some 460 pixels.
    assert page.evaluate(SHADE) == pytest.approx(shares, abs=0.005)


def test_words_of_the_trade_are_explained_to_everyone(
    browser: Browser, site: Site, trained: dict[str, str]
) -> None:
    with browser.new_context(has_touch=True, viewport=NARROW["phone"]) as context:
        context.set_default_timeout(PATIENCE)
        with signed_in_page(context, site) as page:
            visit(page, site, SCREENS["ask"])
            for word in ("epistemic", "aleatoric"):
                term = page.get_by_role("button", name=word)
                tip = page.get_by_role("tooltip").filter(has_text=word.capitalize())
                expect(term).to_have_accessible_description(re.compile(r"rows"))
                term.hover()
                expect(tip).to_be_visible()
                page.locator("h1").hover()
                expect(tip).to_be_hidden()
                term.focus()
                expect(tip).to_be_visible()
                box = tip.bounding_box()
                assert box is not None
                assert box["x"] >= 0
                assert box["x"] + box["width"] <= 390
                page.keyboard.press("Escape")
                expect(tip).to_be_hidden()
                term.tap()
                expect(tip).to_be_visible()


def test_the_form_of_a_job_asks_little_and_has_the_rest_under_more(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    def leave_out_street(route: Route) -> None:
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
        *("When should it not answer?", "Name of the model"),
    ]
    expect(page.get_by_label("Steps", exact=True)).to_be_hidden()
    page.get_by_role("button", name="Start training").click()
    target = page.locator(".field").filter(has=page.get_by_label("Target"))
    expect(target.locator(".problem")).to_have_text("Choose the column to predict.")
    page.get_by_label("When should it not answer?").fill("120")
    page.get_by_label("Target").select_option("price")
    page.get_by_role("button", name="Start training").click()
    expect(page.locator(".problem").filter(has_text="percentage")).to_be_visible()

    sent: list[Any] = []

    def submit(route: Route) -> None:
        sent.append(route.request.post_data_json)
        route.fulfill(status=201, json={"id": trained["job"]})

    page.get_by_label("How long may it take?").select_option("quick")
    page.get_by_label("Minutes at most").fill("2")
    page.get_by_label("Do rows belong together").select_option("group")
    page.get_by_label("Column of the group").select_option("area")
    expect(page.get_by_role("checkbox", name="area")).to_have_count(0)
    page.get_by_label("When should it not answer?").fill("5")
    page.route("**/v1/jobs", submit)
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(f"**/jobs/{trained['job']}")
    (body,) = sent
    validation = {"group": "area"}
    assert body["training"] == {
        **{"effort": "quick", "max_seconds": 120},
        "validation": validation,
    }
    assert body["abstain_above"] == 95
    # The service chooses the rest, such as the columns and the posterior.
    assert set(body) == {
        *("dataset_id", "target", "name", "training", "abstain_above"),
    }


def test_who_has_no_table_gets_a_sample_by_one_click(page: Page, site: Site) -> None:
    empty = {"datasets": [], "next_cursor": None}
    page.route("**/v1/datasets?*", lambda route: route.fulfill(json=empty))
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
    assert dataset is not None
    url = f"/v1/datasets/{dataset[1]}"
    rows = site.client.get(f"{url}/preview?rows=800").json()["rows"]
    # It trains: the price follows the area, and the noise does not hide that.
    areas, prices = ([float(row[place]) for row in rows] for place in (0, 6))
    assert statistics.correlation(areas, prices) == pytest.approx(0.85, abs=0.1)
    assert site.client.delete(url).status_code == 204


def test_a_typical_value_is_one_that_rows_have(page: Page) -> None:
    page.evaluate(MODULE, "typical_row")
    number = {"kind": "numeric", "notation": None, "low": 1.0, "high": 2.0}
    day = {"kind": "date", "notation": None, "low": 0.0, "high": 86400.0 * 364}
    coded = {"histogram": {"edges": [0.5, 1.5, 2.5], "counts": [60, 40]}}
    halves = {
        "distinct": 3,
        "histogram": {"edges": [1.0, 1.5, 2.0], "counts": [4, 96]},
    }
    dates = {
        "histogram": {
            "edges": ["2020-01-01T00:00:00", "2020-01-03T00:00:00"],
            "counts": [7],
        }
    }
    text = {"kind": "categorical", "notation": None, "low": None, "high": None}
    common = {"most_common": [["b", 5], ["a", 2]]}
    cases = [
        (number, coded, None, 1),
        (number, halves, {"values": [1.0, 1.9, 2.0]}, 1.9),
        (number, None, {"values": [1.0, 1.25, 2.0]}, 1.25),
        (number, None, None, 1.5),
        (day, dates, None, "2020-01-02"),
        # Numbers that a person took as dates.
        (day, halves, None, "1970-07-02"),
        (text, common, {"values": ["a", "b"]}, "b"),
        (text, None, {"values": ["a", "b"]}, "a"),
    ]
    for feature, column, effect, typical in cases:
        given = [feature, column, effect]
        call = "(given) => window.found.typicalValue(...given)"
        assert page.evaluate(call, given) == typical, given


def test_sliders_start_at_a_typical_row_and_go_to_any_row(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    rows = [*csv.DictReader(io.StringIO(houses()))]
    visit(page, site, SCREENS["ask"])
    area = page.get_by_label("area", exact=True)
    street = page.locator(".field").filter(has_text=ATTACK)
    median = statistics.median(float(row["area"]) for row in rows)
    # The histogram has some 20 bins of the range.
    assert float(area.input_value()) == pytest.approx(median, abs=8)
    (mode,) = statistics.multimode(row[ATTACK] for row in rows)
    expect(street.locator("select").first).to_have_value(mode)

    row = page.get_by_label("Row", exact=True)
    row.fill("105")
    with page.expect_response("**/*:predict") as asked:
        row.press("Enter")
    expect(area).to_have_value(rows[104]["area"])
    expect(street.locator("select").first).to_have_value(rows[104][ATTACK])
    (instance,) = asked.value.request.post_data_json["instances"]
    assert instance == {"area": float(rows[104]["area"]), ATTACK: rows[104][ATTACK]}
    expect(page.locator(".answer")).to_contain_text("In row 105 of the table, price is")
    page.get_by_role("button", name="Next row").click()
    expect(area).to_have_value(rows[105]["area"])
    expect(row).to_have_value("106")
    row.fill("121")
    row.press("Enter")
    expect(page.get_by_text("numbered from 1 to 120")).to_be_visible()
    # A row that was changed is no row of the table.
    area.fill("77")
    expect(row).to_have_value("")
    expect(page.locator(".answer")).not_to_contain_text("of the table")
    page.get_by_role("button", name="Back to a typical row").click()
    expect(area).not_to_have_value("77")


def test_sliders_start_at_the_middles_where_no_typical_row_is_known(
    page: Page, site: Site, trained: dict[str, str]
) -> None:
    gone = {"status": 404, "json": {"error": {"message": "gone", "code": "gone"}}}
    for place in ("**/report", f"**/v1/datasets/{trained['dataset']}"):
        page.route(place, lambda route: route.fulfill(**gone))
    visit(page, site, SCREENS["ask"])
    expect(page.get_by_text("start at the middles of the ranges")).to_be_visible()


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
