"""Writes the pictures of the page to `docs/`, by `make screenshots`.

Starts a service in a temporary directory, trains a model of the diabetes data set of
scikit-learn, and takes pictures of what a person sees.
"""

import io
import tempfile
import time
from pathlib import Path

import pyarrow.csv
from playwright.sync_api import sync_playwright

from service.shared.settings import Settings
from tests.service.serving import ADMIN_KEY, serving
from tests.service.web.conftest import CHROMIUM
from tfbbb.tables import samples

DOCS = Path(__file__).parents[3] / "docs"
NAME = "diabetes"
WIDE = {"width": 1100, "height": 800}
PHONE = {"width": 390, "height": 780}


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        (root / "models").mkdir()
        settings = Settings(data_dir=root / "data", models=root / "models", job_slots=1)
        with serving(settings) as client:
            dataset = train(client)
            take_all(str(client.base_url).rstrip("/"), dataset)


def train(client):
    """Trains a model with the defaults; returns the id of its table."""
    table = io.BytesIO()
    pyarrow.csv.write_csv(samples.diabetes(), table)
    named = {"name": f"{NAME}.csv"}
    answer = client.post("/v1/datasets", params=named, content=table.getvalue())
    dataset = answer.json()["id"]
    spec = {"dataset_id": dataset, "target": "progression", "name": NAME}
    job = client.post("/v1/jobs", json=spec).json()["id"]
    while (found := client.get(f"/v1/jobs/{job}").json())["version"] is None:
        if found["state"] == "failed":
            raise SystemExit(found["error"])
        time.sleep(1)
    return dataset


def take_all(url, dataset):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        page = browser.new_page(viewport=WIDE, reduced_motion="reduce")
        page.goto(f"{url}/?key={ADMIN_KEY}")
        take(page, url, f"data/{dataset}", "page_data.png")
        take(page, url, f"models/{NAME}/1", "page_report.png", height=1250)
        take(page, url, f"models/{NAME}/1/ask", "page_ask.png")
        page.emulate_media(color_scheme="dark")
        page.set_viewport_size(PHONE)
        take(page, url, f"models/{NAME}/1/ask", "page_phone.png", height=780)
        browser.close()


def take(page, url, place, name, height=800):
    page.set_viewport_size({"width": page.viewport_size["width"], "height": height})
    page.goto("about:blank")
    page.goto(f"{url}/#/{place}")
    page.wait_for_selector("#main > .screen h1")
    # The charts are drawn when their answers are there.
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(1500)
    page.screenshot(path=DOCS / name)


if __name__ == "__main__":
    main()
