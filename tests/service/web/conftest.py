"""One service and one browser for the tests of the page."""

import base64
import json
import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect, sync_playwright

import service
from service.shared.database import Database
from service.shared.settings import Settings
from tests.service.sandboxed import reading_here
from tests.service.serving import ADMIN_KEY, serving
from tests.service.web.tables import ATTACK, houses
from tests.trained import copy_of_export
from tests.waiting import wait_until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# Milliseconds for what takes no training, on a machine that does other things too.
PATIENCE = 120_000
# For a training of few steps, with TensorFlow to import first.
TRAINING_SECONDS = 480.0
MODEL = "houses"
SPEC = {
    "target": "price",
    "training": {"steps": 60, "kl_schedule": "constant"},
    "model": {"members": 1, "hidden_units": [8], "likelihood": "normal"},
}
# All that the kept service depends on, beside `tfbbb`.
SOURCES = "".join(
    path.read_text()
    for path in (
        *(Path(__file__), Path(__file__).with_name("tables.py")),
        *sorted(Path(service.__file__).parent.rglob("*.py")),
    )
)
# The columns of the predictions in a file.
PREDICTED = [
    *("mean", "std", "lower_90", "upper_90", "epistemic", "aleatoric"),
    "familiarity",
]


@dataclass(frozen=True)
class Site:
    """The service, as the page and the tests reach it."""

    url: str
    client: httpx.Client
    settings: Settings

    def database(self):
        return Database(self.settings.effective_database_url)


# Playwright keeps an event loop running, beside which no other test could run its own.
@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        reason = "there is no Chromium: `apt-get install chromium` installs it"
        # Where everything must be tested, nothing is left out in silence.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        # Its sandbox does not start for root, nor in most containers.
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    root = tmp_path_factory.mktemp("site")
    copy_of_export(SOURCES, train, root)
    with serving(settings_of(root)) as client:
        yield Site(str(client.base_url).rstrip("/"), client, settings_of(root))


def settings_of(root, **changes):
    return Settings(data_dir=root / "data", models=root / "models", **changes)


def train(root):
    """Trains a model by the API as the page does; the data is kept with its ids."""
    (root / "models").mkdir(parents=True)
    with reading_here(), serving(settings_of(root, job_slots=1)) as client:
        named = {"name": f"{ATTACK}.csv"}
        answer = client.post("/v1/datasets", params=named, content=houses())
        dataset = answer.json()["id"]
        spec = SPEC | {"dataset_id": dataset, "name": MODEL}
        answer = client.post("/v1/jobs", json=spec)
        assert answer.status_code == 201, answer.text
        job = answer.json()["id"]

        def is_over():
            state = client.get(f"/v1/jobs/{job}").json()
            assert state["state"] != "failed", state["error"]
            return state["version"] is not None

        wait_until(is_over, TRAINING_SECONDS)
    ids = {"dataset": dataset, "job": job}
    (root / "trained.json").write_text(json.dumps(ids))


@pytest.fixture(autouse=True)
def tables_here():
    """Reads and predicts tables in this process, not in one for each."""
    with reading_here():
        yield


@pytest.fixture(scope="session")
def trained(site):
    """The ids of a table and of its job."""
    return json.loads((site.settings.models.parent / "trained.json").read_text())


@pytest.fixture(scope="module")
def context(browser, site):
    """A browser profile that is signed in; each page has its own drafts."""
    with browser.new_context(viewport={"width": 1200, "height": 900}) as context:
        context.set_default_timeout(PATIENCE)
        with watched_page(context, site) as page:
            page.goto(f"{site.url}/?key={ADMIN_KEY}")
            page.wait_for_selector("h1")
        yield context


@pytest.fixture
def page(context, site):
    with watched_page(context, site) as page:
        yield page


@contextmanager
def watched_page(context, site):
    """Opens a page that may neither fail nor load from elsewhere."""
    page = context.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: check_origin(request.url, site, errors))
    page.on("console", lambda message: check_policy(message.text, errors))
    yield page
    page.close()
    assert not errors


def check_origin(url, site, errors):
    if not url.startswith((site.url, "blob:", "about:")):
        errors.append(f"the page loaded {url}")


def check_policy(text, errors):
    if "Content Security Policy" in text or "Trusted" in text:
        errors.append(text)


def drop(page, zone, name, content):
    """Drops a file, as a file manager does."""
    data = content.encode() if isinstance(content, str) else content
    transfer = page.evaluate_handle(
        """([name, content]) => {
            const bytes = Uint8Array.from(atob(content), (one) => one.charCodeAt(0));
            const transfer = new DataTransfer();
            transfer.items.add(new File([bytes], name));
            return transfer;
        }""",
        [name, base64.b64encode(data).decode()],
    )
    page.dispatch_event(zone, "drop", {"dataTransfer": transfer})


def visit(page, site, place):
    """Goes to a screen, and waits until it is there, and has its first answer."""
    page.goto("about:blank")
    page.goto(f"{site.url}/#/{place}")
    page.wait_for_selector("#main > .screen h1")
    if place.endswith("/ask"):
        page.wait_for_selector(".strip > p:not(:empty)", state="attached")


def answered(page, pattern, **answer):
    """Answers requests in place of the service; returns the list of their bodies."""
    sent = []

    def fulfill(route):
        sent.append(route.request.post_data_json)
        route.fulfill(**answer)

    page.route(pattern, fulfill)
    return sent


def copy_model(site, name):
    """Publishes the trained version again, as the first version of another model."""
    root = site.settings.models
    staging = root / ".staging" / name
    shutil.copytree(root / MODEL / "1", staging)
    (root / name).mkdir()
    staging.rename(root / name / "1")

    def is_latest():
        found = site.client.get(f"/v1/models/{name}").json()
        return found.get("labels", {}).get("latest") == "1"

    wait_until(is_latest)
