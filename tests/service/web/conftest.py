"""One service and one browser for the tests of the page."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    expect,
    sync_playwright,
)

from service.shared.database import Database
from service.shared.settings import Settings
from tests.service.serving import ADMIN_KEY, REAL, serving, wait_until_ready

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# Milliseconds for what takes no training, on a machine that does other things too.
PATIENCE = 120_000


@dataclass(frozen=True)
class Site:
    """The service, as the page and the tests reach it."""

    url: str
    client: httpx.Client
    settings: Settings

    def database(self) -> Database:
        return Database(self.settings.effective_database_url)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
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


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("site")
    settings = Settings(
        data_dir=root / "data",
        models=root / "models",
        start_dispatcher=True,
        job_slots=1,
        # The tests are about the page; a busy machine must not restart the models.
        heartbeat_seconds=120.0,
    )
    settings.models.mkdir()
    with serving(settings, REAL) as client:
        wait_until_ready(client)
        yield Site(str(client.base_url).rstrip("/"), client, settings)


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser profile of its own."""
    with browser.new_context(viewport={"width": 1200, "height": 900}) as context:
        context.set_default_timeout(PATIENCE)
        yield context


@pytest.fixture
def page(context: BrowserContext, site: Site) -> Iterator[Page]:
    with signed_in_page(context, site) as page:
        yield page


@contextmanager
def signed_in_page(context: BrowserContext, site: Site) -> Iterator[Page]:
    """Opens a page that may neither fail nor load from elsewhere."""
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: check_origin(request.url, site, errors))
    page.on("console", lambda message: check_policy(message.text, errors))
    page.goto(f"{site.url}/?key={ADMIN_KEY}")
    page.wait_for_selector("h1")
    yield page
    assert not errors


def check_origin(url: str, site: Site, errors: list[str]) -> None:
    if not url.startswith((site.url, "blob:", "about:")):
        errors.append(f"the page loaded {url}")


def check_policy(text: str, errors: list[str]) -> None:
    if "Content Security Policy" in text or "Trusted" in text:
        errors.append(text)


def visit(page: Page, site: Site, place: str) -> None:
    """Goes to a screen, and waits until it is there."""
    page.goto("about:blank")
    page.goto(f"{site.url}/#/{place}")
    page.wait_for_selector("#main > .screen h1")
