"""Sessions of browsers, which end on the server."""

import pytest
from playwright.sync_api import Browser, Page, expect

from service.api.keys import keyring
from service.shared.database.tables import BrowserSession
from tests.service.serving import ADMIN_KEY
from tests.service.web.conftest import PATIENCE, Site


def session_cookie(page: Page) -> str:
    (cookie,) = page.context.cookies()
    assert cookie["httpOnly"]
    return cookie["value"]


def test_signing_out_ends_the_session_of_a_copied_cookie(
    browser: Browser, page: Page, site: Site
) -> None:
    token = session_cookie(page)
    assert ADMIN_KEY.split(".")[1] not in token
    with browser.new_context() as thief:
        thief.set_default_timeout(PATIENCE)
        thief.add_cookies(page.context.cookies())
        other = thief.new_page()
        other.goto(f"{site.url}/#/models")
        expect(other.get_by_role("heading", name="Models")).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("Key")).to_be_visible()
        assert page.context.cookies() == []
        other.reload()
        expect(other.get_by_label("Key")).to_be_visible()


def test_a_session_that_has_ended_leads_to_signing_in_and_back(
    page: Page, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyring, "_KNOWN_SECONDS", 0.0)
    prefix = session_cookie(page).partition(".")[0]
    database = site.database()
    with database.writing() as session:
        session.get_one(BrowserSession, prefix).expires_at = 1.0
    database.close()
    # Signing out, of whatever session, clears what the service remembers.
    other = f"tfbbb-session-{site.client.base_url.port}=nobody.0"
    headers = {"Cookie": other, "Sec-Fetch-Site": "same-origin"}
    assert site.client.delete("/v1/session", headers=headers).status_code == 204
    page.get_by_role("link", name="Keys").click()
    expect(page.locator(".notice.error")).to_contain_text("session has ended")
    page.get_by_label("Key").fill(ADMIN_KEY)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()
